"""What the paper does with a trained model before it is tested or used."""

"""What hooks of trainings that are stopped and resumed are made of."""

"""The plain expression: differentiated by autograd, and what every recording is made of."""

"""The configs that the toolboxes ship: finding them, building their models, training a step."""

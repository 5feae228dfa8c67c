"""A training run: the loop for every model, its folder, its saves, its pictures."""

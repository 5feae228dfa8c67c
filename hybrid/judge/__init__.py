"""How good a trained model is: rankings of held-out items, similarity of words."""

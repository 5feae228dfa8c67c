"""What a trained model is worth, in figures and in pictures."""

"""Evaluation of trained models, in figures and in pictures."""

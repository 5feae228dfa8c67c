"""Arithmetic with PyCUDA, twin of `cpu`. Imports anywhere: PyCUDA is imported inside functions only."""

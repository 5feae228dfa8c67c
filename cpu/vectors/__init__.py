"""Vectors and small matrices in registers; dense products."""

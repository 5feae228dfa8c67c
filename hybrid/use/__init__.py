"""Uses of trained models: recommendation, text continuation, nearest vectors. Thin layers over engines and tables."""

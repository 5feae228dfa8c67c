"""The two original implementations: their configurations and checkpoints, read as ours."""

"""The two original implementations: their configurations, checkpoints and recordings, read as ours."""

"""What is on disk: checkpoints, files that are there whole or not at all, locks, and vectors for other programs."""

"""Storage: checkpoints, atomically written files, locks, and vectors for other programs."""

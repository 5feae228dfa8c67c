"""Training runs: the loop for every model, run folders, checkpoints and pictures."""

"""What a trunk of PyTorch needs: where it computes, its tensors as arrays, the user's program that makes it."""

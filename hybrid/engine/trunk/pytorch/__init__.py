"""Support for PyTorch trunks: devices, tensors as arrays, and the user's program that builds them."""

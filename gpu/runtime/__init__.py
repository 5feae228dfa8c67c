"""The device: contexts, queues, memory, compiled kernels, libraries of the vendor."""

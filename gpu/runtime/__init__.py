"""The device: contexts, queues, memory, compiled kernels, libraries of the vendor."""

CUDA = "libcuda.so.1"  # the driver's library

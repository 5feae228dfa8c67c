"""The device: contexts, queues, memory, compiled kernels, vendor libraries."""

CUDA = "libcuda.so.1"  # the driver's library

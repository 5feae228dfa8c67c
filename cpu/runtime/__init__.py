"""The process: threads, memory, compiled kernels and their cache."""

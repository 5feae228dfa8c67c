"""The process: threads, memory, compiled kernels and where they are kept."""

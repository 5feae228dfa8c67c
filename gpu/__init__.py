"""PyCUDA kernels, the counterpart of `cpu`. Imports without CUDA: functions import PyCUDA themselves."""

"""The type of the arrays that kernels take, for annotations: NumPy's on the CPU, the device's own elsewhere."""

from typing import Any

Array = Any

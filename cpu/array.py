"""The type of the arrays that kernels take, for annotations: NumPy's; what dtype and order they have stands in docstrings."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

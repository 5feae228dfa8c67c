"""The packages that we are measured beside: each is used where it is installed, and said to be missing once where it is not."""

import functools
import importlib
from typing import Any


@functools.cache
def peer(module: str) -> Any:
    """The module of a rival; None where it cannot be imported, which is said: ours is then measured without it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        print(f"{module} is not measured: {error}; pip install 'hybrid-engine[bench]'", flush=True)
        return None

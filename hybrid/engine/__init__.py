"""A model under training: input rows, a trunk and a readout, and the queues on which their stages run.

Names are imported on first use, so that the readouts and the PVM can import one module of this package alone.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .embedding import Embedding as Embedding
    from .engine import Engine as Engine

_HOME = {"Embedding": "embedding", "Engine": "engine"}
__all__ = ["Embedding", "Engine"]  # found by __getattr__


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hybrid.engine' has no attribute {name!r}")
    return getattr(importlib.import_module(f"hybrid.engine.{_HOME[name]}"), name)

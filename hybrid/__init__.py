"""A hybrid CPU/GPU training engine: dense MLPs beside trees, rows and nearest neighbours.

Names are imported on first use, so that `import hybrid` is quick and needs neither Numba nor a GPU.
"""

import importlib

_HOME = {
    "Embedding": "embedding",
    "Engine": "engine",
    "FullReadout": "readout",
    "HistoryFeed": "feeds.histories",
    "LanguageFeed": "feeds.language",
    "NeighbourReadout": "readout",
    "PVM": "pvm.model",
    "PairFeed": "feeds.pairs",
    "SampledReadout": "readout",
    "TreeReadout": "readout",
    "Trunk": "trunk",
}
__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'hybrid' has no attribute {name!r}")
    return getattr(importlib.import_module(f"hybrid.{_HOME[name]}"), name)

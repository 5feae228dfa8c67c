"""A hybrid CPU/GPU training engine: dense MLPs combined with trees, embedding rows and nearest neighbours.

Names are imported on first use, so `import hybrid` is fast and needs neither Numba nor a GPU. `formats`, `ratings`, `stream`,
`text`, `trees` and `vectors` are modules: `from hybrid import text; text.read("book.txt")`.
"""

import importlib
from typing import Any

_NAMES = {
    "backend": "choose",
    "engine": "Embedding Engine Inputs",
    "engine.engine": "regrow",
    "engine.route": "Pipeline",
    "fast_head": "FastHead",
    "feeds.arrays": "ArrayFeed",
    "feeds.baskets": "BasketFeed",
    "feeds.histories": "HistoryFeed",
    "feeds.iterable": "IterableFeed",
    "feeds.language": "LanguageFeed",
    "feeds.pairs": "PairFeed",
    "feeds.sequences": "SequenceFeed",
    "feeds.text": "Corpus Text",
    "feeds.video.clips.synthetic": "Scene",
    "feeds.video.film": "Film",
    "feeds.video.frames": "Frames",
    "feeds.video.open": "open_clips",
    "feeds.vocabulary": "Vocabulary",
    "formats.vectors": "open_vectors",
    "neighbours": "Neighbours",
    "optimisers": "Adagrad Adam AdamW RowAdagrad SGD",
    "pvm.model": "PVM",
    "readout": "FullReadout HeadReadout MixtureReadout NeighbourReadout SampledReadout TreeReadout",
    "readout.head": "HeadParts",
    "readout.sampled": "GBCE NegativeSampling SampledSoftmax",
    "readout.tree": "Batched",
    "schedule.rates": "RateSchedule",
    "sparse_label_tree": "NodeSolver SparseLabelTree label_clusters",
    "train.runs": "open_run",
    "trunk.attention": "AttentionBlocks AttentionTrunk",
    "trunk.mlp": "MLP",
    "trunk.torch": "TorchTrunk",
    "units": "Units unit_layout",
    "use.language": "LanguageModel",
    "use.recommender": "Recommender",
    "use.vectors": "Vectors",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = {
    "formats": "formats",
    "plots": "train.plots",
    "ratings": "feeds.ratings",
    "stream": "feeds.stream",
    "text": "feeds.text",
    "trees": "trees",
    "vectors": "formats.vectors",
}
__all__ = sorted([*_HOME, *_MODULES])
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"hybrid.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'hybrid' has no attribute {name!r}")
    return getattr(importlib.import_module(f"hybrid.{_HOME[name]}"), name)

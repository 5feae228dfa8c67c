"""A hybrid CPU/GPU training engine: dense MLPs combined with trees, embedding rows and nearest neighbours.

Names are imported on first use, so `import hybrid` is fast and needs neither Numba nor a GPU. `formats`, `ratings`, `stream`,
`text`, `trees` and `vectors` are modules: `from hybrid import text; text.read("book.txt")`.
"""

import importlib
from typing import Any

_HOME = {
    "Adagrad": "optimisers",
    "Adam": "optimisers",
    "AdamW": "optimisers",
    "Annoy": "readout.neighbours",
    "ArrayFeed": "feeds.arrays",
    "AttentionBlocks": "trunk.attention",
    "AttentionTrunk": "trunk.attention",
    "Batched": "readout.tree",
    "BasketFeed": "feeds.baskets",
    "Corpus": "feeds.text",
    "Embedding": "engine.embedding",
    "Engine": "engine",
    "FastHead": "fast_head",
    "Film": "feeds.video.film",
    "Frames": "feeds.video.frames",
    "FullReadout": "readout",
    "GBCE": "readout.sampled",
    "HeadParts": "readout.head",
    "HeadReadout": "readout",
    "HistoryFeed": "feeds.histories",
    "Inputs": "engine.embedding",
    "IterableFeed": "feeds.iterable",
    "LabelTreeReadout": "readout",
    "LanguageFeed": "feeds.language",
    "LanguageModel": "use.language",
    "MLP": "trunk.mlp",
    "MixtureReadout": "readout",
    "NegativeSampling": "readout.sampled",
    "NeighbourReadout": "readout",
    "Neighbours": "neighbours",
    "NodeSolver": "sparse_label_tree",
    "PVM": "pvm.model",
    "PairFeed": "feeds.pairs",
    "Pipeline": "engine.route",
    "RateSchedule": "schedule.rates",
    "Recommender": "use.recommender",
    "RowAdagrad": "optimisers",
    "SGD": "optimisers",
    "SampledReadout": "readout",
    "SampledSoftmax": "readout.sampled",
    "Scene": "feeds.video.clips.synthetic",
    "SequenceFeed": "feeds.sequences",
    "SparseLabelTree": "sparse_label_tree",
    "Split": "readout.tree",
    "Text": "feeds.text",
    "TorchTrunk": "trunk.torch",
    "TreeReadout": "readout",
    "Units": "units",
    "Vectors": "use.vectors",
    "Vocabulary": "feeds.vocabulary",
    "choose": "backend",
    "label_clusters": "sparse_label_tree",
    "open_clips": "feeds.video.open",
    "open_run": "train.runs",
    "open_vectors": "formats.vectors",
    "regrow": "engine.engine",
    "unit_layout": "units",
}
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

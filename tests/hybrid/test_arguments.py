"""What public functions take where nothing is passed, and the least that they accept of each number.

A default is a promise: other numbers train other models. Who changes one changes it here, and says so in the CHANGELOG.
"""

import functools
import inspect
import pydoc

import numpy as np
import pytest

from hybrid import sparse_label_tree
from hybrid.engine import Embedding, Engine
from hybrid.feeds.arrays import ArrayFeed
from hybrid.feeds.video.clips.synthetic import Scene
from hybrid.feeds.video.film import Film
from hybrid.feeds.video.frames import Frames
from hybrid.neighbours import Neighbours
from hybrid.pvm.config import Config, Readout
from hybrid.pvm.model import PVM
from hybrid.readout import FullReadout, HeadReadout, MixtureReadout, NeighbourReadout, SampledReadout, TreeReadout
from hybrid.trunk.mlp import MLP
from hybrid.units import Units

DEFAULTS = """
hybrid/engine/embedding.py
    Embedding per_example=1 mean=False undivided=False rate=0.05 seed=0 weighted=False
hybrid/engine/engine.py
    Engine micro_batches=1 delay=0 warmup=0 tied=False
    Engine.best k=10
hybrid/feeds/arrays.py
    ArrayFeed weighted=True batch=512 epochs=1 seed=0 shuffle=True
hybrid/feeds/baskets.py
    BasketFeed length=50 batch=512 epochs=1 seed=0 shuffle=True
hybrid/feeds/histories.py
    Order length=5 decay=0.8
    HistoryFeed length=5 batch=512 epochs=1 seed=0 shuffle=True decay=0.8
hybrid/feeds/iterable.py
    IterableFeed epochs=1 seed=0
hybrid/feeds/language.py
    LanguageFeed context=4 batch=512 epochs=1 seed=0 shuffle=True
    StreamedLanguageFeed context=4 chunk=1048576 batch=512 epochs=1 seed=0 shuffle=True
hybrid/feeds/pairs.py
    PairFeed window=5 sample=0.001 mean_batch=1000 epochs=1 seed=0
hybrid/feeds/sequences.py
    SequenceFeed windows=32 start=True running=False epochs=1 seed=0 shuffle=True unlabelled=False
    transition_vectors seed=0
hybrid/feeds/splits.py
    split_by_ratio test=0.2 valid=0.1
    split_drawn test=0.2 valid=0.1 seed=0
    split_by_time test=0.2 valid=0.1
hybrid/feeds/stream.py
    stored lower=True eos=False min_count=1 unknown=True
    Lines every=False
hybrid/feeds/text.py
    Text lower=True eos=False
    Text.split valid=0.1 test=0.0 seed=0
    read lower=True eos=False
hybrid/feeds/video/clips/synthetic.py
    Scene length=1000 seed=0
hybrid/feeds/video/frames.py
    Frames streams=1
hybrid/feeds/vocabulary.py
    Vocabulary.build min_count=1 unknown=True
hybrid/formats/svm.py
    load named=False
    save header=True
hybrid/metrics.py
    propensities a=0.55 b=1.5
    figures k=10
    measures k=10
    analogies most_frequent=30000
hybrid/models/factors.py
    Options width=64 epochs=5 batch=512 micro_batches=2 delay=0 rate=0.02 rows_rate=0.2 biases=False readout_width=128
        history=5 tied=False
    Evaluation k=10
hybrid/models/labels.py
    Options valid_share=0.1 min_count=1 trees=3 C=10.0
    Use.predict k=5
hybrid/models/language.py
    Options width=64 epochs=4 batch=512 micro_batches=2 delay=0 rate=0.02 rows_rate=0.2 biases=False readout_width=128
        eos=False min_count=2 context=4
hybrid/models/words.py
    Options width=100 epochs=5 batch=0 micro_batches=1 delay=0 rate=0.025 rows_rate=0.025 biases=False min_count=5
        window=5 sample=0.001
hybrid/neighbours.py
    Neighbours recall=0.95 k=10 threads=1
    Neighbours.query k=10
    Neighbours.neighbours k=10
    Neighbours.figures k=10
hybrid/pvm/config.py
    Readout hidden=(100,) schedule=((0,0.01),) start=0 momentum=0.1
    Config grids=((12,12),(8,8),(6,6),(4,4),(2,2),(1,1)) block=(5,5) channels=3 hidden=(49,) fan_in=2 fan_in_radius=2.0
        lateral_radius=2.0 self_context=True two_layers_back=True top_to_all=True context_to_output=False
        features=('signal','past') tau=0.98 predict_steps=2 squeeze=True lateral_at=0 feedback_at=0
        schedule=((0,None,0.002,0.1),(1000000,None,0.001,None)) streams=1 sign_of_error=False ignore_depth=False
hybrid/pvm/figures.py
    count low=0.0 high=1.0
hybrid/pvm/model.py
    PVM streams=1 seed=0
    PVM.run every=1 ahead=0
hybrid/readout/head.py
    Options share=0.1
    HeadReadout share=0.1
hybrid/readout/mixture.py
    MixtureReadout pace=0.01
hybrid/readout/neighbours.py
    Options recall=0.95
    NeighbourReadout recall=0.95 trees=20 search=4000 threads=1
hybrid/readout/tree.py
    TreeReadout split=0
hybrid/sklearn/base.py
    Learner hidden_layers=(100,) width=100 epochs=20 batch=32 rate=0.1 warm_start=False verbose=0
hybrid/sklearn/label_trees.py
    Labeller.score k=1
    SparseLabelTreeClassifier threshold=0.5 C=10.0 trees=1 arity=2 leaves=100 tolerance=0.1 passes=10 least=0.05
    LabelTreeClassifier width=100 epochs=10 batch=32 rate=0.1 warm_start=False verbose=0 threshold=0.5
hybrid/sklearn/next_item.py
    NextItem epochs=5 batch=512 verbose=0
    NextItem.recommend k=10 exclude_seen=True
hybrid/sklearn/tree_classifier.py
    TreeClassifier hidden_layers=(100,) width=100 epochs=20 batch=32 rate=0.1 warm_start=False verbose=0
hybrid/sparse_label_tree.py
    SparseLabelTree trees=1 arity=2 leaves=100 C=10.0 tolerance=0.1 passes=10 least=0.05 seed=0
    label_clusters arity=2 leaves=100 seed=0
hybrid/storage/vectors.py
    save binary=False
    load binary=False
hybrid/torch/loss.py
    ReadoutLoss ignore_index=-100
    ReadoutLoss.follow group=0
    MadeLoss ignore_index=-100
hybrid/train/loop.py
    train save_every=60 patience=0
hybrid/train/options.py
    RunOptions seed=0 save_every=60 patience=0 tensorboard=False
hybrid/train/plots.py
    timeline ticks=3
hybrid/trees.py
    clustered seed=0
hybrid/trunk/attention.py
    Options dropout=0.2 trunk_rate=0.001
    AttentionTrunk every=True blocks=2 heads=1 dropout=0.2 rate=0.001 decay=0.0 seed=0
hybrid/trunk/mlp.py
    MLP bias=True dropout=0.0 layer_norm=False residual=False seed=0
    Options hidden=256 dropout=0.0 trunk_rate=0.2 momentum=0.9
hybrid/trunk/torch.py
    TorchTrunk seed=0
hybrid/units.py
    Units momentum=0.0 seed=0
    Units.step rate=0.1
hybrid/use/language.py
    LanguageModel lower=True eos=False
    LanguageModel.next k=10
    LanguageModel.continue_text tokens=20 temperature=1.0 seed=0
hybrid/use/recommender.py
    Recommender length=5 decay=0.8
    Recommender.recommend k=10 exclude_seen=True
    Recommender.recommend_to k=10 exclude_seen=True
    Recommender.recommendations k=10 exclude_seen=True
hybrid/use/vectors.py
    Vectors.most_similar topn=10
    Vectors.neighbours k=10 annoy=False
    Vectors.analogies most_frequent=30000
    Similar.similar k=10
"""


def _tables():
    """For each file the lines that belong to it."""
    tables: dict[str, list[str]] = {}
    for line in DEFAULTS.strip().splitlines():
        if not line.startswith(" "):
            tables[path := line] = []
        elif line.startswith(" " * 8):
            tables[path][-1] += " " + line.strip()
        else:
            tables[path].append(line.strip())
    return tables


@pytest.mark.parametrize(("path", "lines"), _tables().items())
def test_defaults(path, lines):
    if "/torch" in path:
        pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
    for line in lines:
        name, *expected = line.split()
        made = pydoc.locate(path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") + "." + name)
        each = inspect.signature(made).parameters.values()
        numbers = [one for one in each if isinstance(one.default, bool | int | float | tuple) and one.default != ()]
        assert [f"{one.name}={one.default!r}".replace(" ", "") for one in numbers] == expected, name


def _clusters(**given):
    return sparse_label_tree.label_clusters(np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32), **given)


def _full(**given):
    return FullReadout(**{"counts": 9, "width": 3} | given)


def _mixture(**given):
    return MixtureReadout([TreeReadout(np.ones(9), 3), TreeReadout(9, 3, tree="balanced")], **given)


def _config(**given):
    return Config(**{"grids": ((2, 2), (1, 1)), "name": "small"} | given)


SHAPE = (8, 8, 3)
# What is called, and of each number the least that it takes: one less is refused, and of a float any less.
LEAST = [
    (functools.partial(Embedding, 4, 3), {"per_example": 1, "rate": 0.0, "spread": 0.0, "seed": 0}),
    (lambda **given: Embedding(**{"rows": 4, "width": 3} | given), {"rows": 1, "width": 1}),
    (lambda **given: Engine(Embedding(4, 3), None, _full(), **given), {"micro_batches": 1, "warmup": 0, "delay": 0}),
    (_full, {"width": 1, "batch": 1, "seed": 0, "rate": 0.0}),
    (functools.partial(TreeReadout, np.ones(9), 3), {"split": 0}),
    (functools.partial(TreeReadout, np.ones(9), 3, mode="batch"), {"together": 1}),
    (functools.partial(SampledReadout, 9, 3), {"negatives": 1}),
    (functools.partial(SampledReadout, 9, 3, loss="gbce"), {"calibration": 0.0}),
    (functools.partial(HeadReadout, 9, 3, clusters=2), {"head": 0, "tail_scale": 0.0}),
    (_mixture, {"pace": 0.0}),
    (
        lambda **given: NeighbourReadout(_full(), **given),
        {"trees": 1, "search": 1, "threads": 1, "exact_below": 0, "every": 1, "moved": 0.0},
    ),
    (functools.partial(Neighbours, np.eye(9, 3, dtype=np.float32), index="exact"), {"k": 1, "threads": 1}),
    (_clusters, {"arity": 2, "leaves": 1, "seed": 0}),
    (functools.partial(Units, 2, 3, 3, 3), {"momentum": 0.0, "seed": 0}),
    (functools.partial(MLP, [3, 4]), {"rate": 0.0, "decay": 0.0, "dropout": 0.0, "seed": 0}),
    (functools.partial(ArrayFeed, np.zeros((4, 2)), [0, 1, 0, 1]), {"batch": 1, "epochs": 1, "seed": 0}),
    (functools.partial(Scene, SHAPE), {"length": 1, "seed": 0}),
    (functools.partial(Frames, [Scene(SHAPE)]), {"steps": 0}),
    (functools.partial(Frames, [Scene(SHAPE)], 4), {"streams": 1}),
    (functools.partial(Film, "film.gif"), {"rate": 0.01}),
    (functools.partial(Film, "film.gif", 5), {"zoom": 1}),
    (functools.partial(PVM, _config()), {"streams": 1, "seed": 0}),
    (
        _config,
        {"channels": 1, "fan_in": 1, "lateral_radius": 0.0, "tau": 0.0, "steps": 1, "streams": 1}
        | {"lateral_at": 0, "feedback_at": 0},
    ),
    (Readout, {"start": 0, "momentum": 0.0}),
]


@pytest.mark.parametrize(
    ("call", "name", "least"), [(call, name, least) for call, each in LEAST for name, least in each.items()]
)
def test_the_least_is_taken_and_less_is_refused(call, name, least):
    call(**{name: least})
    less = least - (1 if isinstance(least, int) else least or 1e-3)
    with pytest.raises(ValueError, match=f"{name}: found {less!r}, expected"):
        call(**{name: less})

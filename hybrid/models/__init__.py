"""Models as the command line offers them: options in; feed, engine and figures out.

Every module of this package has the same four functions:

    prepare(options) -> Job                             reads the data; raises ValueError or OSError for bad data
    keep(job, folder)                                   writes what the run's folder must know of the data
    evaluate(folder, options, engine, given) -> dict    figures of a trained run, for `hybrid eval`
    vectors(folder, engine) -> (names, rows)            what `hybrid export` writes
"""

import functools
import sys

from .. import backend, placement
from ..embedding import Embedding
from ..engine import Engine
from ..readout import FullReadout, SampledReadout, TreeReadout
from ..trunk import Trunk


def make_engine(options: dict, feed, *, per_example=1, mean=False, trunk=True) -> Engine:
    """The untrained engine that options name, for a feed.

    per_example, mean  see Embedding
    trunk              False: the rows are the hidden vectors, as in word2vec, and a sampled readout is word2vec's too
    """
    seed, spread = options["seed"], 0.1 if trunk else None
    rows = {"undivided": not trunk, "rate": options["rows_rate"], "spread": spread, "seed": seed}
    embedding = Embedding(feed.rows, options["width"], per_example=per_example, mean=mean, **rows)
    dense = None
    if trunk:
        settings = {"activation": options["activation"], "rate": options["trunk_rate"], "momentum": options["momentum"]}
        dense = Trunk(embedding.outputs, options["hidden"], options["readout_width"], seed=seed, **settings)
    width, loss = (dense.outputs, "softmax") if dense else (embedding.outputs, "logistic")
    readout = _readout(options, feed, width, loss, _place(options, feed, width, loss))
    names = ("device", "threads", "micro_batches", "delay")
    overlap = False if options["serial"] else None
    settings = {name: options[name] for name in names}
    return Engine(embedding, dense, readout, overlap=overlap, pin=bool(options.get("pin")), **settings)


def _place(options: dict, feed, width: int, loss: str):
    """The backend of the readout; where the user leaves it to us by name, say on stderr which it is and why."""
    named = options.get("readout_device") or "cpu"
    if named == "auto":
        make = functools.partial(_readout, options, feed, width, loss)
        named, line = placement.choose(make, feed, options["device"])
        print(f"hybrid: readout device auto: {line}", file=sys.stderr)
    return backend.choose(named)


def _readout(options: dict, feed, width: int, loss: str, place):
    common = {"batch": feed.batch, "rate": options["rate"], "seed": options["seed"], "backend": place}
    if options["readout"] == "tree":
        return TreeReadout(feed.counts, width, tree=options["tree"], mode=options["mode"], **common)
    if options["readout"] == "full":
        return FullReadout(feed.counts, width, **common)
    return SampledReadout(feed.counts, width, negatives=options["negatives"], loss=loss, **common)

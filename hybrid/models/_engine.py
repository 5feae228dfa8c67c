"""What models share that are an engine: rows, a trunk, a readout, each where the options or a measurement put it."""

import functools

from .. import backend, console
from ..engine import Engine
from ..engine.embedding import Embedding
from ..engine.trunk.mlp import Trunk
from ..placement import readouts, rows
from ..readout import FullReadout, SampledReadout, TreeReadout


def make_engine(options: dict, feed, *, per_example=1, mean=False, trunk=True) -> Engine:
    """The untrained engine that options name, for a feed.

    per_example, mean  see Embedding
    trunk              False: the rows are the hidden vectors, as in word2vec, and a sampled readout is word2vec's too
    """
    seed, spread = options["seed"], 0.1 if trunk else None
    settings = {"per_example": per_example, "mean": mean, "undivided": not trunk, "spread": spread, "seed": seed}
    make = functools.partial(Embedding, feed.rows, options["width"], rate=options["rows_rate"], **settings)
    embedding = make(backend=_rows_place(options, feed, make))
    dense = None
    if trunk:
        settings = {"activation": options["activation"], "rate": options["trunk_rate"], "momentum": options["momentum"]}
        dense = Trunk(embedding.outputs, options["hidden"], options["readout_width"], seed=seed, **settings)
    width, loss = (dense.outputs, "softmax") if dense else (embedding.outputs, "logistic")
    readout = _placed_readout(options, feed, width, loss)
    names = ("device", "threads", "micro_batches", "delay")
    overlap = False if options["serial"] else None
    settings = {name: options[name] for name in names}
    return Engine(embedding, dense, readout, overlap=overlap, pin=bool(options.get("pin")), **settings)


def _rows_place(options: dict, feed, make):
    """The backend of the rows; where the user leaves it to us by name, say on stderr which it is and why."""
    named = options.get("rows_device") or "cpu"
    if named == "auto":
        named, line = rows.choose(lambda place: make(backend=place), feed, options["device"], options["threads"])
        console.note(f"rows device auto: {line}")
    return backend.choose(named)


def _placed_readout(options: dict, feed, width: int, loss: str):
    """The readout where the options or, said on stderr, a measurement put it."""
    make = functools.partial(_readout, options, feed, width, loss)
    named, split = options.get("readout_device") or "cpu", options.get("split")
    if named == "auto":
        choice = _measured(options, feed, width, make)
        named, split = choice.device, choice.split
        console.note(f"readout device auto: {choice.line}")
    return make(backend.choose(named), split or 0)


def _measured(options: dict, feed, width: int, make) -> readouts.Choice:
    """The place that is measured to be the fastest: of a tree, cut trees too unless the user says --split 0."""
    where = feed, options["device"], options["threads"]
    if options["readout"] != "tree":
        return readouts.choose(make, *where)
    splits: tuple[int, ...] = ()
    note = ""
    if options["split"] is None:
        examples = -(-feed.batch // options["micro_batches"])
        splits, note = readouts.splits_of(feed.classes, options["rate"] * examples)
    full = functools.partial(_full, options, feed, width)
    return readouts.choose(make, *where, splits=splits, full=full, note=note)


def _readout(options: dict, feed, width: int, loss: str, place, split: int):
    if options["readout"] == "full":
        return _full(options, feed, width, place)
    common = {"batch": feed.batch, "rate": options["rate"], "seed": options["seed"], "backend": place}
    if options["readout"] == "tree":
        return TreeReadout(feed.counts, width, tree=options["tree"], mode=options["mode"], split=split, **common)
    return SampledReadout(feed.counts, width, negatives=options["negatives"], loss=loss, **common)


def _full(options: dict, feed, width: int, place):
    return FullReadout(feed.counts, width, batch=feed.batch, rate=options["rate"], seed=options["seed"], backend=place)

"""What models share that are an engine: rows, a trunk, a readout, each where the options or a measurement put it."""

import functools

from .. import backend, console, readout
from ..engine import Engine
from ..engine import trunk as trunks
from ..engine.embedding import Embedding
from ..placement import readouts, rows


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
        kind = options.get("trunk") or "mlp"
        dense = trunks.make(kind, embedding.outputs, options["readout_width"], options, seed=seed)
    width = dense.outputs if dense else embedding.outputs
    placed = _placed_readout(options, feed, width, trunk)
    names = ("device", "threads", "micro_batches", "delay")
    overlap = False if options["serial"] else None
    settings = {name: options[name] for name in names}
    return Engine(embedding, dense, placed, overlap=overlap, pin=bool(options.get("pin")), **settings)


def _rows_place(options: dict, feed, make):
    """The backend of the rows; where the user leaves it to us by name, say on stderr which it is and why."""
    named = options.get("rows_device") or "cpu"
    if named == "auto":
        named, line = rows.choose(lambda place: make(backend=place), feed, options["device"], options["threads"])
        console.note(f"rows device auto: {line}")
    return backend.choose(named)


def _placed_readout(options: dict, feed, width: int, trunk: bool):
    """The readout where the options or, said on stderr, a measurement put it."""

    def make(place, other):
        return readout.make(
            options["readout"], feed.counts, width, options | other, batch=feed.batch, trunk=trunk, backend=place
        )

    named, other = options.get("readout_device") or "cpu", {}
    if named == "auto":
        choice = _measured(options, feed, width, make)
        named, other = choice.device, choice.options
        console.note(f"readout device auto: {choice.line}")
    return make(backend.choose(named), other)


def _measured(options: dict, feed, width: int, make) -> readouts.Choice:
    """The place that is measured to be the fastest, among those that the kind of readout names."""
    examples = -(-feed.batch // options["micro_batches"])
    trials = readout.trials(options["readout"], options, feed.classes, examples)
    rival = None
    if trials.rival:
        rival = functools.partial(_untrained, trials.rival, options, feed, width)
    return readouts.choose(make, feed, options["device"], options["threads"], trials=trials, rival=rival)


def _untrained(kind: str, options: dict, feed, width: int, place):
    return readout.make(kind, feed.counts, width, options, batch=feed.batch, backend=place)

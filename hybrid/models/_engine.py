"""Common parts of engine models: rows, a trunk and a readout, each placed by the options."""

import argparse
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .. import backend, console, machine, readout
from .. import trunk as trunks
from ..engine import Embedding, Engine
from ..engine.engine import regrow
from ..engine.route import Pipeline, Route, routed
from ..feeds import Feed
from ..optimisers import ROWS, named
from ..readout import registry as readout_kinds
from ..readout.tree import CLUSTERED
from ..settings import number, option, positive
from ..storage import checkpoint
from ..train import plots
from ..train.job import Job, Watched
from ..train.runs import Trained
from ..trunk import registry as trunk_kinds

RATE: dict[str, Any] = {"group": "training", "type": number}


def place(text: str) -> str:
    """Parses the device of rows or readout. "auto" is rejected: `backend.choose` would take any GPU."""
    if text == "auto":
        raise argparse.ArgumentTypeError(f"found {text!r}, expected cpu or cuda:N")
    return text


PLACE: dict[str, Any] = {"free": True, "type": place, "metavar": "DEVICE"}


@dataclasses.dataclass(frozen=True)
class EngineOptions:
    """Options of every engine model."""

    width: int = option(64, "width of the input rows", type=positive)
    readout: str = option("tree", "the output layer", registry=readout_kinds)
    epochs: int = option(5, "passes over the data", group="training", type=positive)
    batch: int | None = option(512, "examples per batch", group="training", type=positive)
    micro_batches: int = option(2, "parts of a batch that overlap", group="training", type=positive)
    schedule: str = option(
        "linear", "decay of all learning rates", group="training", choices=("constant", "linear", "cosine", "step")
    )
    rate: float = option(0.02, "learning rate of the readout", by=("readout_optimiser", {}), **RATE)
    rows_rate: float = option(0.2, "learning rate of the input rows", by=("rows_optimiser", {}), **RATE)
    rows_optimiser: str = option("sgd", "optimiser of the input rows", group="training", choices=ROWS)
    readout_optimiser: str = option("sgd", "optimiser of the readout", group="training", choices=ROWS)
    biases: bool = option(False, "add a bias to every class, or to every node of a tree")


@dataclasses.dataclass(frozen=True)
class DenseOptions(EngineOptions):
    """Options of an engine with a trunk."""

    trunk: str = option("mlp", "the dense part before the readout", registry=trunk_kinds)
    readout_width: int = option(128, "width of the hidden vector", type=positive)
    rows_device: str = option("cpu", "device of the input rows: cpu, or the trunk's cuda:N", **PLACE)
    readout_device: str = option("cpu", "device of a tree, head or full readout: cpu, or the trunk's cuda:N", **PLACE)


def complete(chosen: dict[str, Any], explicit: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options with dependent ones filled in; ValueError for contradictory ones."""
    if chosen.get("tree") == CLUSTERED and chosen.get("start") != "counts":
        raise ValueError(f"--tree {CLUSTERED}: needs class vectors, which `train factors --start counts` alone makes")
    regrow, epochs = chosen.get("regrow"), chosen["epochs"]
    if regrow and regrow[-1] >= epochs:
        raise ValueError(f"--regrow: found {regrow[-1]}, expected epochs before the last one, {epochs} (--epochs)")
    batch, parts = chosen["batch"], chosen["micro_batches"]
    if not batch or parts <= batch:
        return chosen
    if explicit.get("micro_batches"):
        raise ValueError(f"--micro-batches: found {parts}, expected 1 to {batch}, the examples of a batch (--batch)")
    return chosen | {"micro_batches": batch}


class EngineJob(Job):
    """The training of an engine on a feed, with several measurements per epoch.

    A subclass defines the figures in `validate` and `final`; form: see `make_engine`.
    """

    evaluations = 4  # per epoch
    rows_are_classes = False  # True: row v of the input table is that of class v
    feed: Any

    def __init__(
        self,
        options: dict[str, Any],
        feed: Any,
        *,
        watched: Watched | None = None,
        data: str | None = None,
        **form: Any,
    ):
        self.options, self.feed, self.watched, self.data, self.form = options, feed, watched, data, form

    def make(self) -> Engine:
        """Returns the untrained engine."""
        return make_engine(self.options, self.feed, **self.form)

    def amend(self, model: Engine) -> None:
        """Replaces the readout's tree after the epochs that --regrow names."""
        epoch, rest = divmod(model.tick, self.feed.ticks_per_epoch)
        if rest or epoch not in (self.options.get("regrow") or ()):
            return
        start, nodes = time.perf_counter(), model.readout.classes - 1
        kept = regrow(model, self.feed, model.embedding.vectors()[: nodes + 1] if self.rows_are_classes else None)
        spent = time.perf_counter() - start
        console.note(f"tree replaced after epoch {epoch}: {kept:,} of {nodes:,} nodes kept, {spent:.1f} s")

    def due(self, model: Engine) -> int | None:
        """Returns the tick at `evaluations` points per epoch, including its last tick."""
        size, parts = self.feed.ticks_per_epoch, self.evaluations
        wanted = {0, *(size * part // parts for part in range(1, parts))}
        return model.tick if model.tick % size in wanted else None

    def measure(self, model: Engine, facts: dict[str, Any]) -> dict[str, Any]:
        """Returns the running mean of the training loss, the validation figures, and the readout's own figures."""
        return super().measure(model, facts) | self.validate(model) | readout_figures(model, build=False)

    def validate(self, model: Engine) -> dict[str, float]:
        """Returns the validation figures of the model by name."""
        return {}

    def report(self, model: Engine, facts: dict[str, Any], rate: float) -> dict[str, Any]:
        """Returns the last point, the speed, the places, the seconds of every stage, and the curve."""
        return {
            "readout": self.options["readout"],
            **facts["curve"][-1],
            **readout_figures(model),
            "examples_per_second": rate,
            "parameters": model.size,
            "peak_memory_bytes": machine.peak_memory(),
            "threads": model.threads,
            "device": model.dense.name,
            "rows_device": model.embedding.backend.name,
            "readout_device": model.readout.backend.name,
            "pace": model.cores.line() if model.cores else None,
            "stages": model.trace.summary(),
            "curve": facts["curve"],
        }

    def draw(self, folder: Path, report: dict[str, Any], model: Engine) -> None:
        """Draws the curve, and writes the trace of the last steps."""
        label = f"{self.options['kind']}, {self.options['readout']}"
        plots.curve(folder / "curve.png", {label: report["curve"]}, self.drawn)
        model.trace.write_chrome(folder / "timeline.json")


def readout_figures(model: Engine, build: bool = True) -> dict[str, Any]:
    """Returns figures of an approximate readout, {} of an exact one; build: it may first spend time to improve itself."""
    tell = getattr(model.readout, "figures", None)
    return tell(build=build) if tell else {}


def outputs(run: Trained, names: list[str]) -> tuple[list[str], np.ndarray]:
    """Returns class names, and vectors (V, D) float32 whose products with `hidden_vectors` rank as the readout does.

    Biases are an additional column, which multiplies a 1 there. Raises ValueError for a readout without such vectors.
    """
    model: Any = run.load()
    inner = getattr(model.readout, "readout", model.readout)
    weights = inner.parameters().get("weights")
    if weights is None:
        kind = run.options["readout"]
        raise ValueError(f"{run.folder}: {kind} has no vector for every class; expected full, sampled or neighbours")
    weights = weights[: inner.classes]  # a tied readout may have a padding row
    rows = weights if inner.biases is None else np.column_stack([weights, inner.biases[: inner.classes]])
    return names, rows[: len(names)]


def hidden_vectors(engine: Engine, questions: Iterable[Mapping[str, Any]]) -> np.ndarray:
    """Returns the hidden vectors of all questions, to be multiplied with those of `outputs`."""
    hidden = np.concatenate([engine.hidden(**question).copy() for question in questions])
    inner: Any = getattr(engine.readout, "readout", engine.readout)
    biased = inner.biases is not None
    return np.column_stack([hidden, np.ones(len(hidden), np.float32)]) if biased else hidden


def load(source: Path, options: dict[str, Any]) -> tuple[Engine, dict[str, Any]]:
    """Returns the engine of a checkpoint, placed by the options, and the facts saved with it.

    If the checkpoint keeps only part of a trunk, the program that the run names makes the trunk.
    """
    with checkpoint.rebuilding(source):
        facts = checkpoint.read_facts(source)["engine"]["trunk"]
        trunk = trunks.remade(facts, options) if facts else None
    places = {name: options.get(name, "cpu") for name in ("rows_device", "readout_device")}
    device, threads = options["device"], options["threads"]
    return Engine.load(source, trunk=trunk, device=device, threads=threads, route=_route(), **places)


def _route() -> Callable[[Engine], Route]:
    """Returns the route of batches through the engines of this run; MPI is imported only if a launcher started ranks."""
    if not machine.launched():
        return routed
    from ..mpi.engine import ranked
    from ..mpi.group import Group

    return ranked(Group())


def make_engine(
    options: dict[str, Any], feed: Feed, *, trunk: bool = True, tied: bool = False, update: str = "batch", **form: Any
) -> Engine:
    """Returns the untrained engine that the options select, for a feed.

    trunk  False: the rows are the hidden vectors, as in word2vec, and a sampled readout follows word2vec too
    tied, update   see Engine and Pipeline
    form   per_example, bags: see Embedding
    """
    seed, spread = options["seed"], 0.1 if trunk else None
    form |= {"optimiser": named(options["rows_optimiser"], ROWS, rate=options["rows_rate"])}
    rows = backend.choose(options.get("rows_device", "cpu"))
    embedding = Embedding(feed.rows, options["width"], spread=spread, seed=seed, backend=rows, **form)
    dense = None
    if trunk:
        dense = trunks.make(options["trunk"], embedding.outputs, options["readout_width"], options, seed=seed)
    hidden = dense.outputs if dense else embedding.outputs
    beside = backend.choose(options.get("readout_device", "cpu"))
    output = readout.make(
        options["readout"], feed.counts, hidden, options, batch=feed.batch, trunk=trunk, backend=beside
    )
    settings = {name: options[name] for name in ("device", "threads", "schedule")}
    settings["pipeline"] = Pipeline(options["micro_batches"], update=update, route=_route())
    return Engine(embedding, dense, output, tied=tied, **settings)

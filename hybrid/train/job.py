"""What the training loop knows of a model and its data."""

import abc
import contextlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from .. import machine


class Model(Protocol):
    """What learns.

    tick   how many ticks it has made
    torn   why its parameters are no longer those of a finished tick; None while they are
    """

    tick: int
    torn: str | None

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write a checkpoint; see hybrid/storage/checkpoint.py. ValueError where it is torn or has diverged.

        All ranks call it after the same tick; rank 0 writes, and an error there is raised on all.
        """


class Feed(Protocol):
    """All ticks of a run, in order.

    describe()  facts that JSON can say; equal facts give equal batches
    """

    def __len__(self) -> int: ...

    def describe(self) -> dict[str, Any]: ...


class Watched(NamedTuple):
    """A figure of the curve that says how good a model is, and whether less of it is better."""

    name: str
    lowest: bool = True

    def better(self, value: float, than: float | None) -> bool:
        """Whether a value is better than another; anything is better than nothing, and nothing is a NaN."""
        if math.isnan(value):
            return False
        return than is None or (value < than if self.lowest else value > than)


class Job(abc.ABC):
    """A model on its data. A model's file makes a subclass of it; the loop asks it in this order:

    make, chosen, keep        before the run is there
    begin                     when training starts or goes on
    note, amend, due, measure  after every tick
    ending, report, final, draw   at the end

    Of several ranks each has such a job, of the same options and data, and asks it the same at the same ticks.

    feed      all ticks of the run
    data      digest of the data that are measured on, kept in run.json; None: there are none
    watched   the figure that --patience and the best checkpoint go by; None: there is none
    unit      what one tick is called, in curves, reports and messages
    length    the option that says how far the run goes: "epochs", "steps" or "trees"
    logged    whether every point of the curve is a line of a log; otherwise there is a line a minute
    """

    unit: ClassVar[str] = "tick"
    length: ClassVar[str] = "epochs"
    logged: ClassVar[bool] = True
    feed: Feed
    data: str | None = None
    watched: Watched | None = None

    @abc.abstractmethod
    def make(self) -> Any:
        """The untrained model; ValueError for options that it cannot have. Nothing is written before it."""

    def chosen(self, model: Any) -> dict[str, Any]:
        """Options whose value was measured or follows from the data: a run that goes on does not ask again."""
        return {}

    def keep(self, folder: Path) -> None:  # noqa: B027
        """Write what a run must know of its data, into its folder: of several ranks on rank 0 alone. The model's file names
        these files in FILES.
        """

    def open(self) -> contextlib.AbstractContextManager[Any]:
        """What is open while the job runs, of several ranks on rank 0 alone; entered before its folder is touched, so that it
        may refuse. It yields nothing.
        """
        return contextlib.nullcontext()

    def begin(self, model: Any, facts: dict[str, Any]) -> None:
        """Training starts, or goes on. `facts`, JSON-able, travels in checkpoints: what the job counts is kept there."""
        facts.setdefault("loss", None)

    def ticks(self, model: Any) -> Iterator[Any]:
        """The ticks that are left, each as soon as it is finished."""
        ticks: Iterator[Any] = model.run(self.feed)
        return ticks

    def busy(self, model: Any) -> bool:
        """Whether ticks beyond the one given are under way, so that the model cannot be saved now."""
        return False

    def note(self, tick: Any, facts: dict[str, Any]) -> int:
        """Count a finished tick and return how many examples it learned from.

        Here ticks have `examples` and `loss`, their mean; kept is a running mean over about the last 50 that had examples.
        """
        if tick.examples:
            before = facts["loss"]
            facts["loss"] = tick.loss if before is None else before + (tick.loss - before) / 50
        examples: int = tick.examples
        return examples

    def amend(self, model: Any) -> None:  # noqa: B027
        """Change the model between two ticks, before it is measured or saved; a function of the model as it stands there.

        It is called once after every tick, and not again by a run that goes on from the save of that tick.
        """

    def due(self, model: Any) -> int | None:
        """The tick of a point of the curve, where one is due now."""
        return model.tick if self.ends_epoch(model.tick) else None

    def ending(self, model: Any, facts: dict[str, Any]) -> int | None:
        """The tick of a last point of the curve, where one is still missing after the last tick."""
        return None

    def measure(self, model: Any, facts: dict[str, Any]) -> dict[str, Any]:
        """Figures of a point of the curve, by name."""
        return {"loss": facts["loss"]}

    def postfix(self, point: Mapping[str, Any], rate: float) -> str:
        """A point of the curve, in the progress bar; rate: examples a second."""
        shown = {name: f"{value:.4g}" for name, value in self.figures(point).items() if name != "loss"}
        return ", ".join(f"{name}={value}" for name, value in (shown | {"examples/s": f"{rate:,.0f}"}).items())

    def figures(self, point: Mapping[str, Any]) -> dict[str, float]:
        """The numbers of a point of the curve that say how good the model is: for the bar and for TensorBoard."""
        return {name: value for name, value in point.items() if name not in self.clocks and isinstance(value, float)}

    def pictures(self, point: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Pictures that go with a point of the curve, for TensorBoard: (rows, columns, 3) uint8 by name."""
        return {}

    def report(self, model: Any, facts: dict[str, Any], rate: float) -> dict[str, Any]:
        """Figures of the run, JSON-able: here the last point, the speed, memory, the curve."""
        return {
            **facts["curve"][-1],
            "examples_per_second": rate,
            "peak_memory_bytes": machine.peak_memory(),
            "curve": facts["curve"],
        }

    def final(self, model: Any) -> dict[str, Any]:
        """Figures of the trained model on test data, for the report alone: nothing is chosen by them."""
        return {}

    def draw(self, folder: Path, report: dict[str, Any], model: Any) -> None:
        """Draw the pictures of the finished run, of several ranks on rank 0 alone; here the curve."""
        from . import plots

        plots.curve(folder / "curve.png", {report["model"]: report["curve"]}, self.drawn)

    def ends_epoch(self, tick: int) -> bool:
        """Whether an epoch ends with this many ticks: then there is a save."""
        size = getattr(self.feed, "ticks_per_epoch", None)
        return size is not None and tick % size == 0

    @property
    def drawn(self) -> str:
        """The figure that the picture of the curve shows."""
        return self.watched.name if self.watched else "loss"

    @property
    def reached(self) -> int:
        """How far the run goes, as its option `length` says it."""
        return int(getattr(self.feed, "epochs", None) or len(self.feed))

    @property
    def clocks(self) -> tuple[str, ...]:
        """What points of a curve hold beside figures."""
        return (self.unit, "seconds", "processor_seconds", "evaluation_seconds", "examples")

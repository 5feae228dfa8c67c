"""The interface of a model and its data to the training loop."""

import abc
import contextlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from .. import machine


class Model(Protocol):
    """A trainable model.

    tick   number of finished steps
    torn   the reason why parameters are inconsistent, after an aborted step; otherwise None
    """

    tick: int
    torn: str | None

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Writes a checkpoint; see hybrid/storage/checkpoint.py. ValueError if it is inconsistent or has diverged.

        All ranks call it after the same step; rank 0 writes, and its errors are raised on all.
        """


class Feed(Protocol):
    """The batches of all steps of a run, in order.

    describe()  JSON-able facts; equal facts give equal batches
    """

    def __len__(self) -> int: ...

    def describe(self) -> dict[str, Any]: ...


class Watched(NamedTuple):
    """A figure of the curve that measures a model's quality; `lowest`: lower is better."""

    name: str
    lowest: bool = True

    def better(self, value: float, than: float | None) -> bool:
        """True if a value is better than another; any is better than None, and NaN is never better."""
        if math.isnan(value):
            return False
        return than is None or (value < than if self.lowest else value > than)


class Job(abc.ABC):
    """A model on its data. A model's module subclasses it; the loop calls its methods in this order:

        make, chosen, keep        before the run exists
        begin                     when training starts or resumes
        note, amend, due, measure  after every step
        ending, report, final, draw   at the end

    Each of several ranks has such a job, with the same options and data, and makes the same calls at the same steps.

    feed      the batches of all steps
    data      digest of the evaluation data, kept in run.json; None: no such data
    watched   the figure used by --patience and the best checkpoint; None: no such figure
    unit      the name of a step in curves, reports and messages
    length    the option that sets the length of the run: "epochs", "steps" or "trees"
    logged    True if every curve point is a log line; otherwise one line a minute
    compiles  True if the first step mostly compiles kernels, so that its time is no time of training
    """

    unit: ClassVar[str] = "tick"
    length: ClassVar[str] = "epochs"
    logged: ClassVar[bool] = True
    compiles: ClassVar[bool] = True
    feed: Feed
    data: str | None = None
    watched: Watched | None = None

    @abc.abstractmethod
    def make(self) -> Any:
        """Returns the untrained model; ValueError for unsupported options. Called before anything is written."""

    def chosen(self, model: Any) -> dict[str, Any]:
        """Returns options that were measured or derived from the data, fixed for resumed runs."""
        return {}

    def keep(self, folder: Path) -> None:  # noqa: B027
        """Writes a run's data facts to its folder, on rank 0 only. The model's module lists these files in FILES."""

    def open(self) -> contextlib.AbstractContextManager[Any]:
        """A context for the duration of the job, on rank 0 only; it yields nothing.
        It is entered before the run's folder is modified, so that it may reject the job."""
        return contextlib.nullcontext()

    def begin(self, model: Any, facts: dict[str, Any]) -> None:
        """Starts or resumes training. `facts`, JSON-able, is saved in checkpoints and holds the job's counters."""
        facts.setdefault("loss", None)

    def ticks(self, model: Any) -> Iterator[Any]:
        """Yields the remaining steps, each when it is finished."""
        return model.run(self.feed)

    def busy(self, model: Any) -> bool:
        """True if later steps are in flight, so that the model cannot be saved now."""
        return False

    def note(self, tick: Any, facts: dict[str, Any]) -> int:
        """Counts a finished step; returns its number of training examples.

        The default expects `examples` and their mean `loss`, and keeps a running mean over about the last 50 non-empty steps.
        """
        if tick.examples:
            before = facts["loss"]
            facts["loss"] = tick.loss if before is None else before + (tick.loss - before) / 50
        return tick.examples

    def amend(self, model: Any) -> None:  # noqa: B027
        """Changes the model between two steps, before evaluation or saving, depending only on the model's state.

        It is called once after every step; a run resumed from the save of that step does not repeat it.
        """

    def due(self, model: Any) -> int | None:
        """Returns the step of a curve point if one is due now."""
        return model.tick if self.ends_epoch(model.tick) else None

    def ending(self, model: Any, facts: dict[str, Any]) -> int | None:
        """Returns the step of a final curve point if one is missing after the last step."""
        return None

    def measure(self, model: Any, facts: dict[str, Any]) -> dict[str, Any]:
        """Returns the figures of a curve point, by name."""
        return {"loss": facts["loss"]}

    def postfix(self, point: Mapping[str, Any], rate: float) -> str:
        """Returns the progress bar's text for a curve point; rate: examples/s."""
        shown = {name: f"{value:.4g}" for name, value in self.figures(point).items() if name != "loss"}
        return ", ".join(f"{name}={value}" for name, value in (shown | {"examples/s": f"{rate:,.0f}"}).items())

    def figures(self, point: Mapping[str, Any]) -> dict[str, float]:
        """Returns the figures of a curve point that measure quality, for the bar and TensorBoard."""
        return {name: value for name, value in point.items() if name not in self.clocks and isinstance(value, float)}

    def report(self, model: Any, facts: dict[str, Any], rate: float) -> dict[str, Any]:
        """Returns the run's figures, JSON-able: by default the last point, the speed, memory, the curve."""
        speed = {"examples_per_second": rate, "peak_memory_bytes": machine.peak_memory()}
        return facts["curve"][-1] | speed | {"curve": facts["curve"]}

    def final(self, model: Any) -> dict[str, Any]:
        """Returns test figures of the trained model, only for the report: no choice depends on them."""
        return {}

    def draw(self, folder: Path, report: dict[str, Any], model: Any) -> None:
        """Draws the pictures of the finished run, on rank 0 only; by default the curve."""
        from . import plots

        plots.curve(folder / "curve.png", {report["model"]: report["curve"]}, self.drawn)

    def ends_epoch(self, tick: int) -> bool:
        """True if an epoch ends after this many steps, which triggers a save."""
        size = getattr(self.feed, "ticks_per_epoch", None)
        return size is not None and tick % size == 0

    @property
    def drawn(self) -> str:
        """The figure shown in the picture of the curve."""
        return self.watched.name if self.watched else "loss"

    @property
    def reached(self) -> int:
        """The length of the run, in the unit of its option `length`."""
        return int(getattr(self.feed, "epochs", None) or len(self.feed))

    @property
    def clocks(self) -> tuple[str, ...]:
        """The names of curve point entries other than figures."""
        return (self.unit, "seconds", "processor_seconds", "evaluation_seconds", "examples")

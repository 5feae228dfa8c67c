"""The output layer of a model: a learned distribution over classes. Hidden vectors in, losses and gradients out.

Every readout implements the Protocol below and updates its own parameters. Names are imported on first use, without Numba.

A kind of readout is a file of this package, or of another distribution, which registers it by an entry point of the group
"hybrid.readouts". The file exports:

    rebuild(**facts, backend)   the readout that `describe()` described, without "kind"

and for the command line:

    Options     a frozen dataclass, a field for each option of its own, see hybrid/settings.py
    make(counts, width, options, *, batch, trunk, backend)
                the untrained readout. options: those of the command line by name, including "rate" and "seed";
                trunk: False if the hidden vectors are rows of the input table, as in word2vec

and optionally:

    least(**facts)     minimum number of values in its checkpoint, checked before memory is allocated

It imports Numba, SciPy and cpu inside functions, so that its options load quickly.
"""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..schedule.schedule import Buffers, Copies, Stage
from ..settings import Registry

if TYPE_CHECKING:
    from .full import FullReadout as FullReadout
    from .head import HeadReadout as HeadReadout
    from .mixture import MixtureReadout as MixtureReadout
    from .neighbours import NeighbourReadout as NeighbourReadout
    from .sampled import SampledReadout as SampledReadout
    from .tree import TreeReadout as TreeReadout


_HOME = {
    "FullReadout": "full",
    "HeadReadout": "head",
    "MixtureReadout": "mixture",
    "NeighbourReadout": "neighbours",
    "SampledReadout": "sampled",
    "TreeReadout": "tree",
}
__all__ = ["Readout", "least", "make", "rebuild", "registry", *sorted(_HOME)]

registry = Registry("hybrid.readout", "hybrid.readouts", "readout")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hybrid.readout' has no attribute {name!r}")
    return getattr(importlib.import_module(f"hybrid.readout.{_HOME[name]}"), name)


class Readout(Protocol):
    """A distribution over `classes` classes, given hidden vectors of `width` numbers; hidden (B, D) float32.

    Its constructor takes class counts (one per class) or, if they are not needed, the number of classes. pickle and copy make a
    readout with its own arrays on a device of the same name, which continues with the same bytes.

    batch       maximum rows of a step
    rate        step size of SGD
    rate_scale  multiplier of the rate
    backend     the device that computes, see hybrid/backend.py
    ready       names of the stages after which the gradient of the hidden vectors is complete

    and if classes can be initialised from vectors:

    begin_with(vectors)  (V, D) float32: log p(v | h) is then about vectors[v] . h + constant, for small h. For an untrained
                         readout; learned values are lost. ValueError for other arrays

    All methods raise ValueError for arrays of another shape, dtype or order and for numbers that are not finite, and IndexError
    for an id out of range. They raise RuntimeError while a call of another thread is in flight. Nothing is then updated.
    """

    classes: int
    width: int
    backend: Any
    batch: int
    rate: float
    rate_scale: float
    ready: tuple[str, ...]

    def step(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None) -> float:
        """Learns from up to `batch` rows, at rate_scale times rate, and returns their mean loss in nats.

        grad    (B, D) float32, written: d loss / d hidden of each row, not averaged over B
        target  (B,) int32 class ids
        weight  (B,) float32 of at least 0, default 1: multiplies each row's loss, gradient and part of every update

        Raises FloatingPointError, naming the row, for a loss that is not finite; the parameters are then already updated.
        """

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        """Runs the computation of `step` without its checks, on arrays of `backend.device` (NumPy's on the CPU).

        Writes grad (B, D) and loss (B,), in nats. It is called within the work of a queue of that device, and without weight if
        the examples have none. It checks nothing, does not wait, and after the first call on a queue allocates nothing.
        """

    def log_prob(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Returns the log-probability of each row's target, (B,) float32; any number of rows."""

    def scores(self, hidden: np.ndarray) -> np.ndarray:
        """Returns the log-probabilities of all classes, (B, V) float32: 4 B V bytes, so the caller chooses B.

        They equal those of log_prob, up to rounding: exp of them sums to 1 in every row. Under a full softmax, a tree and
        sampled softmax they are the model's probabilities. Under negative sampling they are a softmax of dot products that were
        not trained to be normalised: only their order is meaningful. Computed on the host, one matrix product for each chunk of
        the parameters; those of a GPU are first fetched, once per call.
        """

    def best(self, hidden: np.ndarray, k: int, exclude: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k most likely classes of each row, most likely first: ids (B, k) int32 and log-probabilities (B, k).

        exclude  scipy.sparse CSR (B, V): row b excludes the classes with a stored entry, whatever its value. The probabilities
                 are still those among all classes. If fewer than k classes are left, ids ends with -1 and log-probabilities
                 with -inf. The search is on the host, to which the parameters of a GPU are fetched

        Raises ValueError for k outside 1 to V, and for an `exclude` that is no CSR array (B, V).
        """

    def buffers(self) -> Buffers:
        """Returns the arrays of a slot that its stages need."""

    def finish(self, copy: Copies) -> list[Stage]:
        """Returns the stages from the hidden vectors to their gradient, which is complete after those named in `ready`."""

    def last(self, copy: Copies) -> list[Stage]:
        """Returns the stages that nothing waits for. After them `slot.loss` is the mean loss of the micro-batch."""

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns the current arrays of a checkpoint by name; on the CPU the live ones."""

    def send(self) -> None:
        """Copies parameters() to the device after they were filled; needed if the device does not share the host's memory."""

    def describe(self) -> dict[str, Any]:
        """Returns JSON-compatible facts from which `rebuild` makes a readout of the same kind and shape."""

    def state(self) -> dict[str, Any]:
        """Returns the other content of a checkpoint, JSON-compatible and small."""

    def restore(self, state: dict[str, Any]) -> None:
        """Restores a state; call it after the parameters have been filled, which it sends."""


def make(
    kind: str, counts: Any, width: int, options: dict[str, Any], *, batch: int, trunk: bool = True, backend: Any = None
) -> Readout:
    """Returns the untrained readout of a kind, from options of the command line; see above.

    Raises ValueError for a kind that is unknown or not offered by the command line, for an optimiser or biases that this kind
    does not support, and the errors of its file.
    """
    module = registry.load(kind)
    if not hasattr(module, "make"):
        raise ValueError(f"readout: found {kind!r}, which is made in Python only; expected another kind")
    made: Readout = module.make(counts, width, options, batch=batch, trunk=trunk, backend=backend)
    _check_taken(kind, options, made)
    return made


def rebuild(facts: dict[str, Any], backend: Any = None) -> Readout:
    """Returns the untrained readout of a description: fill its parameters(), then restore its state().

    backend  the device, from hybrid.backend.choose (None: the CPU); it is independent of the description

    Raises ValueError for an invalid description, and for a readout that the backend does not support.
    """
    module, facts = _loaded(facts)
    return module.rebuild(**facts, backend=backend)


def least(facts: dict[str, Any]) -> int:
    """Returns the minimum number of values in a checkpoint of the described readout."""
    module, facts = _loaded(facts)
    return int(module.least(**facts)) if hasattr(module, "least") else 0


def _check_taken(kind: str, options: Mapping[str, Any], made: Readout) -> None:
    """Raises ValueError if a user requests an update rule that this kind does not support."""
    facts = made.describe()
    wrapped = [*facts.get("readouts", ()), facts.get("readout", {})]  # within a mixture, or with an index
    taken = facts.keys() | {name for part in wrapped for name in part}
    for name, value in (("biases", options.get("biases")), ("optimiser", options.get("readout_optimiser"))):
        if value and name not in taken and value != "sgd":
            option = "--biases" if name == "biases" else f"--readout-{name}"
            raise ValueError(f"{option}: not used by a {kind} readout; leave it out")


def _loaded(facts: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    facts = dict(facts)
    return registry.load(facts.pop("kind", None)), facts

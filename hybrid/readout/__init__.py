"""The output layer of a model: a distribution over classes that learns. Hidden vectors in, losses and gradients out.

Every readout keeps the Protocol below and moves its own parameters. Names are imported on first use, so that importing
this package needs no Numba.

A kind of readout is a file of this package, or of another distribution, which offers it by an entry point of the group
"hybrid.readouts". The file exports:

    rebuild(**facts, backend)   the readout that `describe()` told of, without "kind"

and so that the command line offers it:

    Options     a frozen dataclass, a field for each option of its own, see hybrid/settings.py
    make(counts, width, options, *, batch, trunk, backend)
                the untrained readout. options: those of the command line by name, "rate" and "seed" among them;
                trunk: False where the hidden vectors are rows of the input table, as in word2vec

and where it has reason to:

    least(**facts)                       how many numbers a checkpoint of it holds at least: an altered one is then refused
                                         before it takes memory
    trials(options, classes, examples)   what else to measure where its place is left open, see Trials

It imports Numba, SciPy and cpu inside functions, so that its options are quick to read.
"""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .. import sparse
from ..schedule.schedule import Buffers, Copies, Stage
from ..settings import Registry

if TYPE_CHECKING:
    from .full import FullReadout as FullReadout
    from .head import HeadReadout as HeadReadout
    from .label_tree import LabelTreeReadout as LabelTreeReadout
    from .mixture import MixtureReadout as MixtureReadout
    from .neighbours import NeighbourReadout as NeighbourReadout
    from .sampled import SampledReadout as SampledReadout
    from .split_tree import SplitTreeReadout as SplitTreeReadout
    from .tree import TreeReadout as TreeReadout


class Trial(NamedTuple):
    """Other values of a readout's options, and what to say of them if they are taken."""

    options: dict[str, Any]
    remark: str


class Trials(NamedTuple):
    """What else is measured where a user leaves open whether a readout is on the CPU or beside the trunk on its GPU.

    tried  measured on the GPU, beside the readout with the options that the user gave
    note   why others are not tried; "" for no reason
    rival  a kind of readout whose time is told beside the others, but which is never taken: it is another model; "" for none
    """

    tried: tuple[Trial, ...] = ()
    note: str = ""
    rival: str = ""


_HOME = {
    "FullReadout": "full",
    "HeadReadout": "head",
    "LabelTreeReadout": "label_tree",
    "MixtureReadout": "mixture",
    "NeighbourReadout": "neighbours",
    "SampledReadout": "sampled",
    "SplitTreeReadout": "split_tree",
    "TreeReadout": "tree",
}
__all__ = ["Readout", "least", "make", "rebuild", "registry", "trials", *sorted(_HOME)]

registry = Registry("hybrid.readout", "hybrid.readouts", "readout")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hybrid.readout' has no attribute {name!r}")
    return getattr(importlib.import_module(f"hybrid.readout.{_HOME[name]}"), name)


class Readout(Protocol):
    """A distribution over `classes` classes, given hidden vectors of `width` numbers; hidden (B, D) float32.

    It is constructed from how often each class is met (counts, one a class) or, where that is not needed, from how many
    classes there are. pickle and copy make a readout with arrays of its own, which goes on with the same bytes, on a device
    of the same name.

    batch       most rows of a step
    rate        step of SGD
    rate_scale  by which the rate is multiplied
    backend     where it computes, see hybrid/backend.py
    ready       names of the stages after which the gradient of the hidden vectors is whole

    and where classes can begin alike:

    begin_with(vectors)  (V, D) float32: log p(v | h) is then about vectors[v] . h + constant, for small h. Of an untrained
                         readout; what it has learned is lost. ValueError for other arrays

    and where an example may have any number of targets, and its loss is not their mean:

    counts_unlabelled  True: it learns also from examples without a target, and they count in the mean over a batch
    label_losses(hidden, target, target_at)  the loss of each example, (B,) float32, that `step` would find; nothing learns

    All methods raise ValueError for arrays of another shape, dtype or order and for numbers that are not finite, IndexError
    for an id out of range, and RuntimeError while a call of another thread is under way; then nothing has moved.
    """

    classes: int
    width: int
    backend: Any
    batch: int
    rate: float
    rate_scale: float
    ready: tuple[str, ...]

    def step(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None) -> float:
        """Learn from up to `batch` rows, at rate_scale times rate, and return their mean loss in nats.

        grad    (B, D) float32, written: d loss / d hidden of each row, not averaged over B
        target  (B,) int32 class ids
        weight  (B,) float32 of at least 0: multiplies the loss of each row, its gradient and its part of every move; None: 1

        Raises FloatingPointError, naming the row, for a loss that is not finite; then the parameters have moved.
        """

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        """What `step` does between its checks, with arrays of `backend.device` (NumPy's on the CPU).

        grad (B, D) and loss (B,), in nats, are written. It is called within the work of a queue of that device, and without
        weight where the examples have none. Nothing is checked or waited for, and after the first call on a queue nothing is
        allocated.
        """

    def log_prob(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The log-probability of each row's target, (B,) float32; any number of rows."""

    def scores(self, hidden: np.ndarray) -> np.ndarray:
        """The log-probabilities of all classes, (B, V) float32: 4 B V bytes, so the caller chooses B.

        They are those of log_prob, up to rounding: exp of them sums to 1 in every row. Under a full softmax, a tree and
        sampled softmax they are the model's probabilities. Under negative sampling they are a softmax of dot products that
        were not trained to be normalised: good for their order only. Computed on the host, one matrix product for each chunk
        of the parameters; those of a GPU are fetched first, once a call.
        """

    def best(self, hidden: np.ndarray, k: int, exclude: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The k most likely classes of each row, most likely first: ids (B, k) int32 and log-probabilities (B, k).

        exclude  scipy.sparse CSR (B, V): row b leaves out the classes with a stored entry, whatever its value. The
                 probabilities are still those among all classes. Where fewer than k classes are left, ids ends with -1 and
                 log-probabilities with -inf. The search is on the host, to which the parameters of a GPU are fetched

        Raises ValueError for k outside 1 to V, and for an `exclude` that is no CSR array (B, V).
        """

    def buffers(self) -> Buffers:
        """The arrays of a slot that its stages need."""

    def finish(self, copy: Copies) -> list[Stage]:
        """The stages from the hidden vectors to their gradient, which is whole after those named in `ready`."""

    def last(self, copy: Copies) -> list[Stage]:
        """The stages that nothing waits for. After them `slot.loss` is the mean loss of the micro-batch."""

    def parameters(self) -> dict[str, np.ndarray]:
        """The arrays that a checkpoint keeps, by name, as they stand now; on the CPU the live ones."""

    def send(self) -> None:
        """Go on from parameters() as they were filled; needed where the device does not share the host's memory."""

    def describe(self) -> dict[str, Any]:
        """JSON-able facts from which `rebuild` makes a readout of the same kind and shape."""

    def state(self) -> dict[str, Any]:
        """What else a checkpoint keeps, JSON-able and small."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; call it after the parameters have been filled, which it sends."""


def make(
    kind: str,
    counts: Any,
    width: int,
    options: Mapping[str, Any],
    *,
    batch: int,
    trunk: bool = True,
    backend: Any = None,
) -> Readout:
    """The untrained readout of a kind, from options of the command line; see above.

    Raises ValueError for a kind that is not known or not offered by the command line, for an optimiser or biases
    that this kind does not take, and what its file raises.
    """
    module = registry.load(kind)
    if not hasattr(module, "make"):
        raise ValueError(f"readout: found {kind!r}, which is made in Python only; expected another kind")
    made: Readout = module.make(counts, width, options, batch=batch, trunk=trunk, backend=backend)
    _check_taken(kind, options, made)
    return made


def rebuild(facts: dict[str, Any], backend: Any = None) -> Readout:
    """The readout that describe() told of, untrained: fill its parameters(), then restore its state().

    backend  where it computes, from hybrid.backend.choose (None: the CPU): no fact of the readout, any will do

    Raises ValueError for facts that tell of no readout, and for one that does not compute there.
    """
    module, facts = _loaded(facts)
    made: Readout = module.rebuild(**facts, backend=backend)
    return made


def least(facts: dict[str, Any]) -> int:
    """How many numbers a checkpoint of the readout that describe() told of holds at least."""
    module, facts = _loaded(facts)
    return int(module.least(**facts)) if hasattr(module, "least") else 0


def trials(kind: str, options: Mapping[str, Any], classes: int, examples: int) -> Trials:
    """What else to measure where the place of a readout of this kind is left open.

    options   of the command line
    classes   of the feed
    examples  of a micro-batch
    """
    module = registry.load(kind)
    made: Trials = module.trials(options, classes, examples) if hasattr(module, "trials") else Trials()
    return made


def _check_taken(kind: str, options: Mapping[str, Any], made: Readout) -> None:
    """ValueError where a user asks for rows to move as those of this kind cannot."""
    facts = made.describe()
    wrapped = [*facts.get("readouts", ()), facts.get("readout", {})]  # within a mixture, or beside an index
    taken = facts.keys() | {name for part in wrapped for name in part}
    for name, value in sorted(sparse.readout_named(options).items()):
        if name not in taken and value != "sgd":
            option = "--biases" if name == "biases" else f"--readout-{name}"
            raise ValueError(f"{option}: not used by a {kind} readout; leave it out")


def _loaded(facts: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The file of the kind that describe() told of, and the other facts."""
    facts = dict(facts)
    return registry.load(facts.pop("kind", None)), facts

"""What stands on the hidden vector: a distribution over classes that learns. Hidden in, loss and gradient out.

Every readout keeps the Protocol below and moves its own parameters. Names are imported on first use, so that importing
this package needs no Numba.
"""

import importlib
from typing import Any, Protocol

import numpy as np

_HOME = {
    "FullReadout": "full",
    "NeighbourReadout": "neighbours",
    "SampledReadout": "sampled",
    "TreeReadout": "tree",
}
__all__ = ["Readout", "rebuild", *sorted(_HOME)]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'hybrid.readout' has no attribute {name!r}")
    return getattr(importlib.import_module(f"hybrid.readout.{_HOME[name]}"), name)


class Readout(Protocol):
    """A distribution over `classes` classes, given hidden vectors of `width` numbers; hidden (B, D) float32.

    Constructed from how often each class is met (counts, one a class) or, where that is not needed, from how many
    classes there are. All raise ValueError for arrays of other shapes, dtypes or order and for numbers that are not
    finite, IndexError for an id out of range, RuntimeError for a call while another thread's is under way: a readout is one
    thread's at a time; then nothing has moved. pickle and copy make a readout of its own arrays, which goes on with the same
    bytes, on a device of the same name.
    """

    classes: int
    width: int
    backend: Any
    batch: int
    rate: float
    rate_scale: float

    def step(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray) -> float:
        """Learn from up to `batch` rows, at rate_scale times rate, and return their mean loss in nats.

        grad    (B, D) float32, written: d loss / d hidden of each row, not averaged over B
        target  (B,) int32 class ids

        Raises FloatingPointError, naming the row, for a loss that is not finite; then the parameters have moved.
        """

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any) -> None:
        """What `step` does between its checks, with arrays of the device `backend.device` (NumPy's on the CPU).

        grad (B, D) and loss (B,), in nats, are written. Called within the work of a queue of that device: nothing is
        checked or waited for, and after the first call on a queue nothing is allocated.
        """

    def log_prob(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The log-probability of each row's target, (B,) float32; any number of rows."""

    def scores(self, hidden: np.ndarray) -> np.ndarray:
        """The log-probabilities of all classes, (B, V) float32: 4 B V bytes, so the caller chooses B.

        As log_prob gives them, up to rounding: exp of them sums to 1 in every row. Those of a full softmax and of a tree are
        the model's own. So are those of sampled softmax, whose weights are learned for it; under negative sampling they are
        the same softmax of dot products that were not trained to be normalised: good for their order. One matrix product a
        chunk of the parameters; computed on the host, to which those of a GPU are fetched first, once a call.
        """

    def best(self, hidden: np.ndarray, k: int, exclude: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The k most likely classes of each row, most likely first: ids (B, k) int32 and log-probabilities (B, k).

        exclude  scipy.sparse CSR (B, V): row b leaves out the classes with a stored entry, whatever its value. The
                 probabilities stay those among all classes; where fewer than k are left, ids ends with -1 and
                 log-probabilities with -inf. Searched on the host, to which the parameters of a GPU are fetched

        Raises ValueError for k outside 1 to V, and for an `exclude` that is no CSR array (B, V).
        """

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


def rebuild(facts: dict[str, Any], backend=None) -> Readout:
    """The readout that describe() told of, untrained: fill its parameters(), then restore its state().

    backend  where it computes, from hybrid.backend.choose (None: the CPU): no fact of the readout, any will do

    Raises ValueError for facts that tell of no readout, and for one that does not compute there.
    """
    facts = dict(facts)
    kind = facts.pop("kind", None)
    if kind not in _HOME.values():
        raise ValueError(f"readout kind: found {kind!r}, expected one of {', '.join(sorted(_HOME.values()))}")
    return importlib.import_module(f"hybrid.readout.{kind}").rebuild(**facts, backend=backend)

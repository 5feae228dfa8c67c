"""What a backend promises of a Predictive Vision Model; see hybrid/contract/__init__.py."""

from typing import Any, NamedTuple, Protocol

from .array import Array


class State(NamedTuple):
    """What a tick of a PVM writes. B streams share the weights; sizes as in hybrid/pvm/layout.py.

    world (B, W)         what the units publish is written; the frame, at its front, is not
    tape (B, T)          all activations of this tick
    signals (B, S)       what the units see
    integral (B, S)      moved to tau i + (1 - tau) s where that is a feature; else (B, 0)
    delta (B, T)         written where a unit learns, in the places of predictions and hidden vectors: the gradient before the
                         activation that `Past.record` has there, pointing downhill (target - prediction)
    low, high (B, W)     the range of what is published, which adapts and scales it; None: published as it is
    miss (U,)            the sum of |error| over a unit's predictions and the streams
    weights, velocity    one after another the dense layers, see the layout; velocity None: plain SGD
    """

    world: Any
    tape: Any
    signals: Any
    integral: Any
    delta: Any
    low: Any
    high: Any
    miss: Any
    weights: Any
    velocity: Any


class Past(NamedTuple):
    """What a tick of a PVM reads of the ticks before it.

    world (B, W)    the frame, and what the units published in the tick before
    tape (B, T)     of the tick before: its prediction of what is seen now makes the feature "error"
    record (B, T)   the tape whose prediction is compared with what is seen now, and learned from
    signals (B, S)  of the tick before
    """

    world: Any
    tape: Any
    record: Any
    signals: Any


class Learning(NamedTuple):
    """Which units of a PVM learn in a tick, and how far they move.

    rate, momentum  (U,), in the dtype of the weights
    learns, adapts  (U,) uint8: does the unit learn, does its range adapt
    predict_first   True: the new activations are computed with the weights before they move, False: with those after
    """

    rate: Any
    momentum: Any
    learns: Any
    adapts: Any
    predict_first: bool


class Gathering(NamedTuple):
    """The numbers by which the units of a PVM make their inputs from the world.

    scale, offset      a signal is scale v + offset, for v in the world
    tau                how much of the feature "integral" is kept
    lateral, feedback  factors of the context, beside scale and offset
    """

    scale: float
    offset: float
    tau: float
    lateral: float
    feedback: float


class Pvm(Protocol):
    """One tick of a Predictive Vision Model. All units of all layers are computed at once: each reads only the tick before.

    B streams share the weights; the arrays are those of hybrid/pvm/layout.py: world (B, W), tape (B, T), signals (B, S).
    """

    def plan(self, layout: Any) -> Any:
        """The layout in the form that `tick` takes; made once."""

    def show(self, world: Array, frame: Array, scale: float) -> None:
        """Write a frame to the front of the world: world[b, :F] = scale frame[b]; frame (B, F) uint8, or as the world."""

    def tick(
        self, state: State, layout: Any, past: Past, learning: Learning, gathering: Gathering, activation: str,
        first: int, last: int,
    ) -> None:  # fmt: skip
        """The units first:last gather their inputs, learn, predict and publish.

        A unit gathers its signals from the world and writes its features and its context to the tape. Its error is what it
        sees now less what it predicted in `past.record`: the prediction of the newest frame is compared with the new
        signals, the other one with `past.signals`. Where the unit learns, its dense layers move against that error, by the
        gradient at the activations in `past.record` and the present weights, summed over the streams:
        velocity <- momentum velocity + rate delta x^T, weights <- weights + velocity (velocity None: plain SGD).

        state       a State, written in the places of these units; all else of it is left alone
        past        a Past, read
        learning    a Learning
        gathering   a Gathering
        activation  "logistic", "rational", "tanh", or "rational2023": the rational one with the wrong slope of an original
        first, last  a range of units, 0 <= first < last <= U. Units are independent: a tick by ranges writes the same bytes
        """

    def collect(self, out: Array, source: Array, index: Array) -> None:
        """out[b, n] = source[b, index[n]]; out (B, N), source (B, M), index (N,) int32; N may be 0."""

    def spread(self, out: Array, source: Array, index: Array) -> None:
        """out[b, index[n]] = source[b, n]; out (B, M), source (B, N), index (N,) int32, each place once at most; N may be 0."""

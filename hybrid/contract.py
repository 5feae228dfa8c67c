"""What a backend promises: `cpu` keeps it with Numba, `gpu` with PyCUDA.

These Protocols are structural: a backend keeps them without importing them. tests/hybrid/test_contract.py compares names,
order and defaults of the arguments of every backend with them.

Order of arguments, everywhere: what is written first, then layout or tree, then what is read, then scalars.
Kernels do not check their arguments: hybrid has checked them. Arrays are those of the backend's device: NumPy's on the CPU,
arrays in device memory on a GPU. Floating arrays are float32 and C-contiguous (float64 too where `Device.float64` says so);
ids are int32.
Every call is made by the work of a queue (Queue.run), to which the number of threads or the stream belongs. Results do not
depend on them, bit for bit, except in the mode "hogwild".
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from numpy.typing import DTypeLike, NDArray

Array = Any  # NumPy's on the CPU, the device's own elsewhere
Shape = int | tuple[int, ...]
Note = Callable[[float, float], object]


class Event(Protocol):
    """A point on a queue. It is past once everything that was put on the queue before it is done."""

    def wait(self) -> Any:
        """Block the caller until the point is past; return what the work returned, raise what it raised."""


class Queue(Protocol):
    """Does work in the order given: a CUDA stream, a worker thread."""

    name: str

    def run(
        self, work: Callable[..., Any], *arguments: Any, after: Sequence[Event] = (), note: Note | None = None
    ) -> Event:
        """Do `work(*arguments)` after all earlier work of this queue and after the events in `after`.

        note(start, end) is called with the time when the work ran, in seconds of time.perf_counter: from any thread, at the
        latest before a wait for the event returns.
        """

    def copy(self, target: Array, source: Array, after: Sequence[Event] = (), note: Note | None = None) -> Event:
        """Copy an array into another one; costs nothing where both are the same."""

    def close(self) -> None:
        """Finish what was put on the queue."""


class Device(Protocol):
    """Where arrays live and queues run.

    name         "cpu", "cuda:0"
    host_memory  True where the device computes on NumPy's own arrays: then nothing needs to be copied
    float64      True where the kernels also take arrays of float64
    threads      True where its queues use threads of this machine: then they share its cores with all other work
    closed       True once `close` was called
    """

    name: str
    host_memory: bool
    float64: bool
    threads: bool
    closed: bool

    def queue(self, name: str, threads: int, cores: Sequence[int] | None = None) -> Queue:
        """A new queue.

        name     shown in the trace
        threads  of the CPU, for its work
        cores    the numbers of the cores that its threads are pinned to; None: any
        """

    def inline(self, name: str, threads: int) -> Queue:
        """A queue whose work is done when `run` returns."""

    def empty(self, shape: Shape, dtype: DTypeLike) -> Any:
        """An uninitialised array on the device."""

    def host_empty(self, shape: Shape, dtype: DTypeLike) -> Any:
        """An uninitialised NumPy array from which the device copies asynchronously (page-locked on a GPU)."""

    def mirror(self, array: NDArray[Any]) -> Any:
        """An uninitialised array on the device, of the shape and dtype of a NumPy array (the same array on the CPU)."""

    def from_host(self, array: NDArray[Any]) -> Any:
        """A copy of the array on the device (the same array on the CPU)."""

    def to_host(self, array: Array) -> Any:
        """The array as a NumPy array, once all queues have done their work (the same array on the CPU)."""

    def copy(self, target: Array, source: Array) -> None:
        """Copy between host and device or within either, in the work of a queue; nothing where both are the same array."""

    def write(self, array: Array, source: NDArray[Any]) -> None:
        """Copy a NumPy array into one of the device, once all queues have done their work."""

    def close(self) -> None:
        """Finish all queues and release what the device holds."""


class Units(Protocol):
    """Collections of MLPs: inputs -> hidden -> outputs; both layers have a bias and the same activation.

    Shapes: weights (layout.w_at[-1],), x (B, X), hidden (B, H), y and target (B, Y), see hybrid/layout.py.
    activation: "logistic" 1/(1+exp(-s)), "rational" s/(2(|s|+1)) + 1/2, "tanh", "relu".
    Tolerance against a float64 oracle: a float32 sum of n products drifts by about sqrt(n) roundings.
    """

    def plan(self, layout: Any) -> Any:
        """The layout in the form that the other functions take; made once."""

    def forward(self, y: Array, hidden: Array, layout: Any, weights: Array, x: Array, activation: str) -> None:
        """Write hidden and y."""

    def backward(
        self, x_grad: Array | None, weight_grad: Array, y_grad: Array, hidden_grad: Array, layout: Any,
        weights: Array, y: Array, hidden: Array, x: Array, activation: str,
    ) -> None:  # fmt: skip
        """Write x_grad (None: not wanted); add the sum over the batch to weight_grad, laid out like the weights.

        y_grad (B, Y) comes in as d loss / d y; it and hidden_grad (B, H) leave as the gradients before the activation.
        """

    def update(self, weights: Array, velocity: Array | None, weight_grad: Array, rate: float, momentum: float) -> None:
        """velocity <- momentum velocity - rate weight_grad; weights <- weights + velocity; weight_grad <- 0.

        velocity None: plain SGD.
        """

    def step(
        self, loss: Array, y: Array, hidden: Array, weights: Array, velocity: Array | None, y_grad: Array,
        hidden_grad: Array, layout: Any, x: Array, target: Array, rate: float, momentum: float, activation: str,
    ) -> None:  # fmt: skip
        """One online step, fused: forward, squared error, backward and update read and write each weight once.

        loss (U,) is written: half the squared error of each unit, summed over its outputs and the batch.
        y_grad (B, Y) and hidden_grad (B, H) are written: the gradients before the activation, one row an example.
        The gradient of the weights is summed over the batch. velocity None: plain SGD.
        """


class Rows(Protocol):
    """Tables of vectors, one row an id; table (R, D)."""

    def gather(self, out: Array, table: Array, ids: Array) -> None:
        """out[n] = table[ids[n]]; out (N, D), ids (N,)."""

    def scatter_add(self, table: Array, ids: Array, grad: Array, scale: float) -> None:
        """table[ids[n]] += scale * grad[n], in the order of n. Equal ids are summed; the same bits at any number of threads."""

    def gather_mean(self, out: Array, table: Array, bag_at: Array, ids: Array) -> None:
        """out[b] = mean of table[ids[bag_at[b]:bag_at[b+1]]], zero for an empty bag; out (B, D), bag_at (B+1,) int64."""

    def scatter_mean(self, table: Array, bag_at: Array, ids: Array, grad: Array, scale: float) -> None:
        """The reverse of gather_mean: scale / size(b) * grad[b] is added to every row of bag b, in the order of b."""


class Softmax(Protocol):
    """The full softmax over V classes, computed in chunks: a (B, V) array never exists. weights (V, D), hidden (B, D)."""

    def workspace(self, batch: int, width: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows need; made once."""

    def step(
        self, grad: Array, loss: Array, weights: Array, work: Any, hidden: Array, target: Array, rate: float
    ) -> None:
        """Write grad (B, D) = d loss / d hidden and loss (B,) in nats; weights -= rate * gradient summed over B."""

    def log_prob(self, out: Array, weights: Array, work: Any, hidden: Array, target: Array) -> None:
        """out[b] = log p(target[b] | hidden[b])."""

    def best(self, ids: Array, log_probs: Array, weights: Array, work: Any, hidden: Array) -> None:
        """Write the k most likely classes of each row, most likely first; ids and log_probs (B, k)."""


class SampledSoftmax(Protocol):
    """The softmax over the target of each row and negatives that the whole batch shares; weights (V, D), hidden (B, D)."""

    def log_uniform(self, classes: int) -> Any:
        """A sampler that draws approximately by Zipf's law; classes are numbered by falling frequency."""

    def unigram(self, counts: Array, power: float = 0.75) -> Any:
        """A sampler that draws class v in proportion to counts[v]^power."""

    def workspace(self, batch: int, width: int, negatives: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows and `negatives` draws need; made once."""

    def step(
        self, grad: Array, loss: Array, weights: Array, work: Any, sampler: Any, hidden: Array, target: Array,
        rate: float, seed: int, tick: int,
    ) -> Array:  # fmt: skip
        """Write grad (B, D) = d loss / d hidden and loss (B,) in nats; weights -= rate * gradient summed over B.

        The draws are a function of seed and tick. Returns the negatives: distinct class ids, valid until the next step.
        """


class TreeSoftmax(Protocol):
    """Hierarchical softmax: nodes (V - 1, D), one logistic regression a node of a binary tree over V classes."""

    def plan(self, tree: Any) -> Any:
        """The tree in the form that the other functions take; made once."""

    def workspace(self, batch: int, width: int, depth: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows and paths up to `depth` need; made once."""

    def step(
        self, grad: Array, loss: Array, nodes: Array, work: Any, tree: Any, hidden: Array, target: Array,
        rate: float, mode: str,
    ) -> None:  # fmt: skip
        """Learn from a batch: write grad (B, D) = d loss / d hidden and loss (B,) in nats, move the nodes.

        mode "deterministic": a node moves for the rows of the batch in order, one after another, so the result equals the
        serial loop over rows, bit for bit, at any number of threads. mode "grouped": the same, but neighbouring rows of one
        target learn together, from the nodes before any of them moves. mode "hogwild": threads race.
        grad is summed over the path, not averaged over B.
        """

    def log_prob(self, out: Array, nodes: Array, tree: Any, hidden: Array, target: Array) -> None:
        """out[b] = log p(target[b] | hidden[b]); sums to 1 over all classes."""


class Split(Protocol):
    """The top of a tree over V classes, computed by dense products: nodes (K, D), the first K in breadth-first order."""

    def workspace(self, batch: int, top: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows and `top` nodes need; made once."""

    def step(
        self, grad: Array, loss: Array, nodes: Array, work: Any, tree: Any, hidden: Array, target: Array, rate: float
    ) -> None:
        """Learn from a batch: add d loss / d hidden to grad (B, D), write loss (B,) in nats, move nodes (K, D).

        tree: TreeSoftmax.plan of the tree's top. All examples use the nodes before the step, and a node moves once, by rate
        times the sum over its examples: the semantics of a mini-batch, not of the serial loop.
        """


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
        """out[b, n] = source[b, index[n]]; out (B, N), source (B, M), index (N,) int32."""

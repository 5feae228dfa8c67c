"""The interface of a backend: `cpu` implements it with Numba, `gpu` with PyCUDA.

These Protocols are structural: a backend implements them without importing them. tests/hybrid/test_contract.py compares the
names, order and defaults of every backend's arguments with them.

The order of arguments is always: outputs, layout or tree, inputs, scalars.
Kernels do not check their arguments; hybrid has checked them. Arrays belong to the backend's device: NumPy arrays on the CPU,
device memory on a GPU. Floating arrays are float32 and C-contiguous (float64 too if `Device.float64`); ids are int32.
Every call runs on a queue (Queue.run), which owns the thread count or the stream. Results are bit-identical for all of them.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from numpy.typing import DTypeLike, NDArray

Array = Any  # a NumPy array on the CPU, a device array elsewhere
Shape = int | tuple[int, ...]
Note = Callable[[float, float], object]


class Event(Protocol):
    """A point on a queue, reached when all work submitted before it is done."""

    def wait(self) -> Any:
        """Blocks until the point is reached; returns the result of the work or raises its exception."""


class Queue(Protocol):
    """An in-order work queue: a CUDA stream or a worker thread.

    apart  True if `run` returns before the work is done
    """

    name: str
    apart: bool

    def run(
        self, work: Callable[..., Any], *arguments: Any, after: Sequence[Event] = (), note: Note | None = None
    ) -> Event:
        """Runs `work(*arguments)` after all earlier work of this queue and after the events in `after`.

        note(start, end) receives the times of the work, in seconds of time.perf_counter. It may be called from any thread,
        but always before a wait for the event returns.
        """

    def close(self) -> None:
        """Completes the submitted work."""


class Recorder(Protocol):
    """A cache of repeated pieces of work: a GPU submits all launches of one as a single graph."""

    def run(self, key: Hashable, work: Callable[..., Any], *arguments: Any) -> None:
        """Runs `work(*arguments)` within the work of a queue.

        key  identifies the launches with their arrays and scalars, but not the contents of arrays: work recorded under an
             equal key may be replayed without calling `work`
        """


class Device(Protocol):
    """A processor with its arrays and queues.

    name         "cpu", "cuda:0"
    host_memory  True if the device computes on NumPy arrays: nothing needs to be copied
    float64      True if the kernels also take float64 arrays
    threads      True if its queues use threads of this machine and compete for its cores
    closed       True after `close`
    """

    name: str
    host_memory: bool
    float64: bool
    threads: bool
    closed: bool

    def queue(self, name: str, threads: int) -> Queue:
        """Returns a new queue.

        name     shown in the trace
        threads  CPU threads for its work
        """

    def inline(self, name: str, threads: int) -> Queue:
        """Returns a synchronous queue: its `run` returns when the work is done."""

    def recorder(self) -> Recorder:
        """Returns a new Recorder; it must not outlive the arrays of its work."""

    def empty(self, shape: Shape, dtype: DTypeLike) -> Any:
        """Returns an uninitialised device array."""

    def host_empty(self, shape: Shape, dtype: DTypeLike) -> Any:
        """Returns an uninitialised NumPy array for asynchronous copies to the device (page-locked on a GPU)."""

    def mirror(self, array: NDArray[Any]) -> Any:
        """Returns an uninitialised device array with the shape and dtype of a NumPy array (the same array on the CPU)."""

    def from_host(self, array: NDArray[Any]) -> Any:
        """Returns a copy of the array on the device (the same array on the CPU)."""

    def to_host(self, array: Array) -> Any:
        """Returns the array as a NumPy array after all queues have finished (the same array on the CPU)."""

    def copy(self, target: Array, source: Array) -> None:
        """Copies between or within host and device memory, in the work of a queue; no-op if both are the same array."""

    def write(self, array: Array, source: NDArray[Any]) -> None:
        """Copies a NumPy array into a device array after all queues have finished."""

    def close(self) -> None:
        """Completes all queues and releases the device's resources."""


class Units(Protocol):
    """Collections of MLPs: inputs -> hidden -> outputs; both layers have a bias and the same activation.

    Shapes: weights (layout.w_at[-1],), x (B, X), hidden (B, H), y and target (B, Y), see hybrid/units.py.
    activation: "logistic" 1/(1+exp(-s)), "rational" s/(2(|s|+1)) + 1/2, "tanh", "relu".
    Tolerance against a float64 oracle: a float32 sum of n products has an error of about sqrt(n) roundings.
    """

    def plan(self, layout: Any) -> Any:
        """Returns the layout in the form that the other functions take; called once."""

    def forward(self, y: Array, hidden: Array, layout: Any, weights: Array, x: Array, activation: str) -> None:
        """Writes hidden and y."""

    def backward(
        self, x_grad: Array | None, weight_grad: Array, y_grad: Array, hidden_grad: Array, layout: Any,
        weights: Array, y: Array, hidden: Array, x: Array, activation: str,
    ) -> None:  # fmt: skip
        """Writes x_grad (None: not computed); adds the sum over the batch to weight_grad, laid out like the weights.

        y_grad (B, Y) holds d loss / d y on entry; on exit it and hidden_grad (B, H) hold the gradients before the activation.
        """

    def update(self, weights: Array, velocity: Array | None, weight_grad: Array, rate: float, momentum: float) -> None:
        """Computes velocity <- momentum velocity - rate weight_grad; weights <- weights + velocity; weight_grad <- 0.

        velocity None: plain SGD.
        """

    def step(
        self, loss: Array, y: Array, hidden: Array, weights: Array, velocity: Array | None, y_grad: Array,
        hidden_grad: Array, layout: Any, x: Array, target: Array, rate: float | Array, momentum: float, activation: str,
    ) -> None:  # fmt: skip
        """Runs one fused online step: forward, squared error, backward and update read and write each weight once.

        Writes loss (U,): half the squared error of each unit, summed over its outputs and the batch.
        Writes y_grad (B, Y) and hidden_grad (B, H): the gradients before the activation, one row per example.
        Weight gradients are summed over the batch. velocity None: plain SGD.
        rate: a scalar for all units, or (U,) float32. Each unit is updated as if it were alone with its rate as the scalar:
        bit-identical if both use the same kernel, see the backends.
        """


class Layer(NamedTuple):
    """A layer of an MLP: linear -> activation -> dropout.

    inputs, outputs  sizes
    at               offset of its parameters in the weights: matrix (outputs, inputs) | bias (outputs,)
    bias             True if the linear map has one
    activation       one of those of Units, or "linear"
    dropout          the fraction of activations zeroed in training; the others are divided by 1 - dropout
    """

    inputs: int
    outputs: int
    at: int
    bias: bool
    activation: str
    dropout: float


class Mlp(Protocol):
    """Layers of an MLP. weights is flat, x (B, inputs), out (B, outputs).

    key: seed of the dropout masks, a whole number from 0 to 2^63 - 1; None: no dropout. The activation at position p of (B,
    outputs) is dropped if the p-th number of SplitMix64 (cpu/vectors/splitmix.py), seeded with `key`, is below dropout. Masks
    are the same on all backends and take no memory.
    Tolerance against a float64 oracle: that of Units.
    """

    def workspace(self, widest: int, dtype: DTypeLike) -> Any:
        """Returns the scratch arrays for `backward` of layers with up to `widest` outputs; allocated once."""

    def forward(self, out: Array, layer: Layer, weights: Array, x: Array, key: int | None) -> None:
        """Writes out, which `backward` reads."""

    def backward(
        self, x_grad: Array | None, weight_grad: Array, out_grad: Array, work: Any, layer: Layer, weights: Array,
        out: Array, x: Array, key: int | None,
    ) -> None:  # fmt: skip
        """Writes x_grad (None: not computed); adds the sum over the batch to weight_grad, laid out like the weights.

        out_grad (B, outputs) holds d loss / d out on entry; on exit it holds the gradient of the matrix product.
        """


class Move(NamedTuple):
    """Scalars of a weight update.

    rate   learning rate
    scale  factor on the gradient, applied first: 1 / examples turns a sum into a mean
    decay  weight decay
    cut    the workspace that `Optimiser.clip` wrote; None: no clipping
    """

    rate: float
    scale: float
    decay: float
    cut: Any


class Optimiser(Protocol):
    """Updates of dense weights: one pass over weights, state and gradient, which it clears; no device synchronisation.

    g is the gradient after `scale` and `cut`, plus decay * weights unless decay is decoupled. Formulas and epsilons are
    PyTorch's. All arrays are flat and of equal length; a state starts at 0.
    """

    def workspace(self, size: int) -> Any:
        """Returns the scratch arrays for `clip` of `size` numbers; allocated once."""

    def clip(self, work: Any, grad: Array, scale: float, most: float) -> None:
        """Writes to the workspace the factor that limits the norm of scale * grad to about `most`.

        It is min(1, most / (norm + 1e-6)); sums use a fixed partition.
        """

    def merge(self, grad: Array, part: Array) -> None:
        """Computes grad <- grad + part; part <- 0: one step of the sum over micro-batches, see hybrid/trunk/__init__.py."""

    def sgd(self, weights: Array, velocity: Array | None, grad: Array, move: Move, momentum: float) -> None:
        """Computes velocity <- momentum velocity - rate g; weights <- weights + velocity; velocity None: plain SGD.

        The velocity accumulates rate * gradient, PyTorch's the gradient alone: equal while the rate is constant. Without
        decay and cut the bytes are those of Units.update.
        """

    def adam(
        self, weights: Array, mean: Array, squares: Array, grad: Array, move: Move, betas: tuple[float, float],
        updates: int, decoupled: bool,
    ) -> None:  # fmt: skip
        """Updates mean and squares, averages of g and g^2 by betas; then weights <- weights - rate m / (sqrt(s) + 1e-8).

        m and s are mean and squares / (1 - beta^updates), updates being 1 the first time (Kingma and Ba 2015,
        arXiv:1412.6980). decoupled: first weights <- weights (1 - rate decay), and g has no decay (Loshchilov and Hutter
        2019, arXiv:1711.05101).
        """


class Learned(NamedTuple):
    """Trainable rows and their optimiser state. If all but `rows` is None, they use plain SGD.

    rows          (R, D)
    biases        (R,): added to the product of its row and a hidden vector; None: no biases
    squares       None: SGD. (R,): row-wise Adagrad, per row the sum of its gradients' mean squares over the D numbers, or D +
                  1 with its bias. (R, D): Adagrad, the sum of squares per number
    bias_squares  (R,): Adagrad state of the biases, if squares is (R, D) and there are biases; otherwise None

    A visit updates a row w by its gradient g, which includes the bias gradient: SGD w <- w - rate g; Adagrad s <- s + g^2, w
    <- w - rate g / (sqrt(s) + 1e-10). Row-wise Adagrad uses the mean of g^2 over the row.
    In a scatter, a visit is one occurrence of an id. In a tree or for sampled classes, it is one example at a node or class;
    in TreeBatch, a group of examples. In full and sampled softmax and in a head, it is the batch sum at
    each participating row. The gradient of hidden vectors uses the rows before the visit.

    Duchi et al. 2011, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization"; row-wise: Mudigere et
    al. 2022, arXiv:2104.05158.
    """

    rows: Any
    biases: Any = None
    squares: Any = None
    bias_squares: Any = None


class Rows(Protocol):
    """Tables of vectors, one row per id; table (R, D)."""

    def gather(self, out: Array, table: Array, ids: Array) -> None:
        """Computes out[n] = table[ids[n]]; out (N, D), ids (N,)."""

    def scatter(self, learned: Learned, ids: Array, grad: Array, rate: float) -> None:
        """Updates row ids[n] by grad[n] (N, D), in the order of n: bit-identical for all thread counts. No biases."""

    def gather_mean(self, out: Array, table: Array, bag_at: Array, ids: Array, values: Array | None) -> None:
        """Computes out[b] = mean of table[ids[bag_at[b]:bag_at[b+1]]], 0 for an empty bag; out (B, D), bag_at (B+1,) int64.

        values  (N,): out[b] is the sum of values[n] * table[ids[n]] over the bag instead; None: the mean
        """

    def scatter_mean(
        self, learned: Learned, bag_at: Array, ids: Array, values: Array | None, grad: Array, rate: float
    ) -> None:
        """Updates every row of bag b by grad[b] / size(b), in the order of b: the reverse of gather_mean.

        values  (N,): by values[n] * grad[b] instead; None: the mean
        """


class Softmax(Protocol):
    """The full softmax over V classes, computed in chunks with bounded scratch. Rows (V, D), hidden (B, D)."""

    def workspace(self, batch: int, width: int, dtype: DTypeLike) -> Any:
        """Returns the scratch arrays for calls with up to `batch` rows; allocated once."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Writes grad (B, D) = d loss / d hidden and loss (B,) in nats; updates every row by the gradient summed over B.

        weight  (B,): multiplies an example's loss and gradients; None: all 1
        """

    def log_prob(self, out: Array, learned: Learned, work: Any, hidden: Array, target: Array) -> None:
        """Computes out[b] = log p(target[b] | hidden[b])."""

    def best(self, ids: Array, log_probs: Array, learned: Learned, work: Any, hidden: Array) -> None:
        """Writes the k most likely classes of each row, most likely first; ids and log_probs (B, k)."""


class SampledSoftmax(Protocol):
    """The softmax over each row's target and negatives shared by the batch; rows (V, D), hidden (B, D)."""

    def log_uniform(self, classes: int) -> Any:
        """Returns a sampler of an approximate Zipf distribution; classes are numbered by descending frequency."""

    def unigram(self, counts: Array) -> Any:
        """Returns a sampler that draws class v in proportion to counts[v]^0.75."""

    def uniform(self, classes: int) -> Any:
        """Returns a uniform sampler of classes."""

    def workspace(self, batch: int, width: int, negatives: int, dtype: DTypeLike) -> Any:
        """Returns the scratch arrays for calls with up to `batch` rows and `negatives` negatives; allocated once."""

    def draw(self, work: Any, sampler: Any, count: int, target: Array, seed: int, tick: int) -> int:
        """Writes the distinct negatives of a batch to the scratch, with the log-probability that a class is among them.

        Draws `count` classes with replacement, determined by seed and tick. Returns the number of negatives, at most count.
        """

    def learn(
        self, grad: Array, loss: Array, learned: Learned, work: Any, count: int, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> Array:  # fmt: skip
        """Writes grad (B, D) = d loss / d hidden and loss (B,) in nats; updates rows by the gradient summed over B.

        count   of negatives that `draw` wrote to the scratch
        weight  as in Softmax.step

        Returns the negatives: distinct class ids, valid until the next `draw`.
        """


class SampledLogistic(Protocol):
    """One logistic regression per class, over each row's target and negatives shared by the batch."""

    def calibrated(self, draws: int, classes: int, calibration: float) -> float:
        """Returns gBCE's beta, the factor of the positive loss term, for uniform draws; calibration: t from 0 to 1."""

    def learn(
        self, grad: Array, loss: Array, learned: Learned, work: Any, count: int, hidden: Array, target: Array,
        weight: Array | None, rate: float, positive: float,
    ) -> Array:  # fmt: skip
        """Computes SampledSoftmax.learn with loss = -positive log p(yes | target) - sum of log p(no | negative)."""


class TreeSoftmax(Protocol):
    """Hierarchical softmax: nodes (V - 1, D), one logistic regression per node of a binary tree over V classes."""

    def plan(self, tree: Any) -> Any:
        """Returns the tree in the form that the other functions take; called once."""

    def workspace(self, batch: int, width: int, depth: int, dtype: DTypeLike) -> Any:
        """Returns the scratch arrays for calls with up to `batch` rows and paths up to `depth`; allocated once."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, tree: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Learns from a batch: writes grad (B, D) = d loss / d hidden and loss (B,) in nats, updates the nodes.

        A node is updated row by row in batch order. The result is bit-identical to the serial loop for all thread counts.
        grad is summed over the path, not averaged over B. weight as in Softmax.step.
        """

    def log_prob(self, out: Array, learned: Learned, tree: Any, hidden: Array, target: Array) -> None:
        """Computes out[b] = log p(target[b] | hidden[b]); probabilities sum to 1 over all classes."""


class TreeBatch(Protocol):
    """The same tree with updates per group of examples at a node instead of per example; on GPUs alone.

    `TreeSoftmax.log_prob` takes its plans too.
    """

    def plan(self, tree: Any) -> Any:
        """Returns the tree in the form that `step` takes; called once."""

    def workspace(self, batch: int, width: int, depth: int, together: int, dtype: DTypeLike) -> Any:
        """Returns the scratch arrays for up to `batch` rows and paths up to `depth`; allocated once per `together`."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, tree: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float, together: int,
    ) -> None:  # fmt: skip
        """Learns from a batch: writes grad (B, D) = d loss / d hidden and loss (B,) in nats, updates the nodes.

        The examples at a node are processed in batch order, in groups of up to `together`. A group's gradients use the node
        before its update and are summed into one update. together 1: the semantics of the serial loop; B: those of a
        mini-batch. Bit-identical in every run and for all thread counts.
        grad is summed over the path, not averaged over B. weight as in Softmax.step.
        """


class Head(Protocol):
    """A full softmax over S slots, each of one class or a cluster of classes; rows (S, D), slot (V,) int32."""

    def workspace(self, batch: int, width: int, dtype: DTypeLike) -> Any:
        """Returns the scratch arrays for calls with up to `batch` rows; allocated once."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, slot: Array, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Learns from a batch: adds d loss / d hidden to grad (B, D), writes loss (B,) in nats, updates the slot rows.

        target (B,) int32 classes. Every row is updated once, by the gradient summed over B. weight as in Softmax.step.
        """

    def log_prob(self, out: Array, learned: Learned, work: Any, slot: Array, hidden: Array, target: Array) -> None:
        """Computes out[b] = log p(the slot of target[b] | hidden[b])."""


class State(NamedTuple):
    """Arrays that a PVM step writes. B streams share the weights; sizes as in hybrid/pvm/layout.py.

    world (B, W)         outputs that the units publish; the frame at its front is not written
    tape (B, T)          all activations of this step
    signals (B, S)       the units' input signals
    integral (B, S)      updated to tau i + (1 - tau) s if that is a feature; otherwise (B, 0)
    delta (B, T)         for learning units, at predictions and hidden vectors: the negative gradient (target - prediction)
                         before the activation of `Past.record`
    low, high (B, W)     the adaptive range that scales the published outputs; None: published unscaled
    miss (U,)            the sum of |error| over a unit's predictions and the streams
    weights, velocity    the dense layers in sequence, see the layout; velocity None: plain SGD
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
    """Arrays of earlier steps that a PVM step reads.

    world (B, W)    the frame, and the outputs published in the previous step
    tape (B, T)     of the previous step: its prediction of the current signals gives the feature "error"
    record (B, T)   the tape whose prediction is compared with the current signals and trained
    signals (B, S)  of the previous step
    """

    world: Any
    tape: Any
    record: Any
    signals: Any


class Learning(NamedTuple):
    """Learning settings of the units of a PVM in a step.

    rate, momentum  (U,), in the dtype of the weights
    learns, adapts  (U,) uint8: 1 if the unit learns, 1 if its range adapts
    predict_first   True: new activations use the weights before the update; False: those after it
    """

    rate: Any
    momentum: Any
    learns: Any
    adapts: Any
    predict_first: bool


class Gathering(NamedTuple):
    """Scalars by which the units of a PVM compute their inputs from the world.

    scale, offset      a signal is scale v + offset, for v in the world
    tau                decay factor of the feature "integral"
    lateral, feedback  factors of the context, in addition to scale and offset
    """

    scale: float
    offset: float
    tau: float
    lateral: float
    feedback: float


class Pvm(Protocol):
    """One step of a Predictive Vision Model. Units of all layers run in parallel: each reads only the previous step.

    B streams share the weights; the arrays are those of hybrid/pvm/layout.py: world (B, W), tape (B, T), signals (B, S).
    """

    def plan(self, layout: Any) -> Any:
        """Returns the layout in the form that `tick` takes; called once."""

    def show(self, world: Array, frame: Array, scale: float) -> None:
        """Writes a frame to the front of the world: world[b, :F] = scale frame[b]; frame (B, F) uint8 or the world's dtype."""

    def tick(
        self, state: State, layout: Any, past: Past, learning: Learning, gathering: Gathering, activation: str,
        first: int, last: int,
    ) -> None:  # fmt: skip
        """Runs the units first:last: they gather inputs, learn, predict and publish.

        A unit gathers its signals from the world and writes features and context to the tape. Its error is its current
        signals minus its prediction in `past.record`; the prediction of the newest frame is compared with the new signals,
        the other with `past.signals`. A learning unit updates its dense layers by the gradient at the activations in
        `past.record` and the current weights, summed over the streams:
        velocity <- momentum velocity + rate delta x^T, weights <- weights + velocity (velocity None: plain SGD).

        state       a State; only the entries of these units are written
        past        a Past, read
        learning    a Learning
        gathering   a Gathering
        activation  "logistic", "rational", "tanh", or "rational2023": "rational" with the incorrect slope of an original
        first, last  a range of units, 0 <= first < last <= U. Units are independent: steps by ranges write the same bytes
        """

    def collect(self, out: Array, source: Array, index: Array) -> None:
        """Computes out[b, n] = source[b, index[n]]; out (B, N), source (B, M), index (N,) int32; N may be 0."""

    def spread(self, out: Array, source: Array, index: Array) -> None:
        """Computes out[b, index[n]] = source[b, n]; out (B, M), source (B, N), index (N,) int32, distinct; N may be 0."""

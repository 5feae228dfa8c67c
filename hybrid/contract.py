"""What a backend promises: `cpu` keeps it with Numba, `gpu` with PyCUDA.

These Protocols are structural: a backend keeps them without importing them. tests/hybrid/test_contract.py compares names,
order and defaults of the arguments of every backend with them.

Order of arguments, everywhere: what is written first, then layout or tree, then what is read, then scalars.
Kernels do not check their arguments: hybrid has checked them. Arrays are those of the backend's device: NumPy's on the CPU,
arrays in device memory on a GPU. Floating arrays are float32 and C-contiguous (float64 too where `Device.float64` says so);
ids are int32.
Every call is made by the work of a queue (Queue.run), to which the number of threads or the stream belongs. Results do not
depend on them, bit for bit.
"""

from collections.abc import Callable, Hashable, Sequence
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
    """Does work in the order given: a CUDA stream, a worker thread.

    apart  whether `run` returns before the work is done
    """

    name: str
    apart: bool

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


class Recorder(Protocol):
    """Does pieces of work that come again: a GPU is told of all that one launches at once."""

    def run(self, key: Hashable, work: Callable[..., Any], *arguments: Any) -> None:
        """Do `work(*arguments)` within the work of a queue.

        key  all that decides what the work launches, and with which arrays and numbers, but not what the arrays hold: what was
             done under an equal key may be done again without a call of `work`
        """


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

    def queue(self, name: str, threads: int) -> Queue:
        """A new queue.

        name     shown in the trace
        threads  of the CPU, for its work
        """

    def inline(self, name: str, threads: int) -> Queue:
        """A queue whose work is done when `run` returns."""

    def recorder(self) -> Recorder:
        """Something that does pieces of work that come again; it lives no longer than their arrays."""

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

    Shapes: weights (layout.w_at[-1],), x (B, X), hidden (B, H), y and target (B, Y), see hybrid/units.py.
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
        hidden_grad: Array, layout: Any, x: Array, target: Array, rate: float | Array, momentum: float, activation: str,
    ) -> None:  # fmt: skip
        """One online step, fused: forward, squared error, backward and update read and write each weight once.

        loss (U,) is written: half the squared error of each unit, summed over its outputs and the batch.
        y_grad (B, Y) and hidden_grad (B, H) are written: the gradients before the activation, one row an example.
        The gradient of the weights is summed over the batch. velocity None: plain SGD.
        rate: one number for all units, or (U,) float32, one a unit. A unit learns as it would alone, with its rate as the one
        number: to the bit where both are computed by the same kernel, see the backends.
        """


class Layer(NamedTuple):
    """A layer of an MLP: linear -> norm -> activation -> dropout -> + input. Those that it does not have are left out.

    inputs, outputs  sizes; equal where residual
    at               where its numbers begin in the weights: matrix (outputs, inputs) | bias | gain | shift (outputs,)
    bias             whether the linear map has one
    norm             layer norm over the outputs, with gain and shift (Ba et al. 2016, arXiv:1607.06450)
    residual         the input is added at the end
    activation       one of those of Units, "gelu" or "linear"
    dropout          the share of activations that learning sets to 0; others are divided by 1 - dropout
    """

    inputs: int
    outputs: int
    at: int
    bias: bool
    norm: bool
    residual: bool
    activation: str
    dropout: float

    @property
    def kept(self) -> bool:
        """Whether what is before the activation must be kept for the way back, because `out` does not tell it."""
        return self.norm or self.residual or self.activation == "gelu"


class Passed(NamedTuple):
    """What a layer writes on its way forward, and reads on the way back.

    out     (B, outputs)
    before  (B, outputs): before the activation; of a layer with a norm, what gain and shift have not met yet. None unless
            `Layer.kept`
    spread  (B, 1): 1 / root of (variance + 1e-5). None without a norm
    """

    out: Array
    before: Array | None
    spread: Array | None


class Mlp(Protocol):
    """Layers of an MLP. weights is flat, x (B, inputs).

    key: a draw of dropout masks, a whole number from 0 to 2^63 - 1; None: nothing is dropped. The activation at place p of
    (B, outputs) is dropped where SplitMix64 (cpu/vectors/splitmix.py), begun at `key`, gives as its p-th number one below
    dropout: the same on all backends, and no memory.
    Tolerance against a float64 oracle: that of Units; a norm multiplies it by 1 / the spread.
    """

    def workspace(self, widest: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that `backward` of layers with up to so many outputs needs; made once."""

    def forward(self, passed: Passed, layer: Layer, weights: Array, x: Array, key: int | None) -> None:
        """Write the arrays of `passed`."""

    def backward(
        self, x_grad: Array | None, weight_grad: Array, out_grad: Array, work: Any, layer: Layer, weights: Array,
        passed: Passed, x: Array, key: int | None,
    ) -> None:  # fmt: skip
        """Write x_grad (None: not wanted); add the sum over the batch to weight_grad, laid out like the weights.

        out_grad (B, outputs) comes in as d loss / d out; it leaves as the gradient of what the matrix gave.
        """


class Move(NamedTuple):
    """How far weights move.

    rate   learning rate
    scale  what the gradient is multiplied by first: 1 / examples, where it is a sum and the mean is meant
    decay  weight decay
    cut    the workspace that `Optimiser.clip` wrote; None: the gradient is not clipped
    """

    rate: float
    scale: float
    decay: float
    cut: Any


class Optimiser(Protocol):
    """How dense weights move: one pass over weights, state and gradient, which it clears; nothing waits for the device.

    g is the gradient after `scale` and `cut`, and, but for decoupled decay, plus decay * weights. Formulas and what is beside
    roots are PyTorch's. All arrays are flat and equally long, a state is 0 at first.
    """

    def workspace(self, size: int) -> Any:
        """The scratch arrays that `clip` of so many numbers needs; made once."""

    def clip(self, work: Any, grad: Array, scale: float, most: float) -> None:
        """Write to the workspace by what to multiply, so that the norm of scale * grad is at most about `most`.

        It is min(1, most / (norm + 1e-6)); sums have a fixed partition.
        """

    def merge(self, grad: Array, part: Array) -> None:
        """grad <- grad + part; part <- 0: a step of the sum over micro-batches, see hybrid/trunk/__init__.py."""

    def sgd(
        self, weights: Array, velocity: Array | None, grad: Array, move: Move, momentum: float, nesterov: bool
    ) -> None:
        """velocity <- momentum velocity - rate g; weights <- weights + velocity; velocity None: plain SGD.

        nesterov: weights <- weights + momentum velocity - rate g instead. The velocity holds rates of the past, where
        PyTorch's holds gradients: the same while the rate is. Without decay and cut the bytes are those of Units.update.
        """

    def adagrad(self, weights: Array, squares: Array, grad: Array, move: Move) -> None:
        """squares <- squares + g^2; weights <- weights - rate g / (root of squares + 1e-10) (Duchi et al. 2011)."""

    def adam(
        self, weights: Array, mean: Array, squares: Array, grad: Array, move: Move, betas: tuple[float, float],
        updates: int, decoupled: bool,
    ) -> None:  # fmt: skip
        """mean and squares follow g and g^2 by betas; weights <- weights - rate m / (root of s + 1e-8).

        m and s are mean and squares / (1 - beta^updates), updates being 1 the first time (Kingma and Ba 2015,
        arXiv:1412.6980). decoupled: first weights <- weights (1 - rate decay), and g has no decay (Loshchilov and Hutter
        2019, arXiv:1711.05101).
        """


class Learned(NamedTuple):
    """Rows that learn, and what is kept for each of them. Where all but `rows` is None they learn by plain SGD.

    rows          (R, D)
    biases        (R,): a number that is added to the product of its row and a hidden vector; None: there are none
    squares       None: SGD. (R,): row-wise Adagrad, one number a row, the sum of the mean squares of its gradients, its
                  bias among the D + 1 numbers. (R, D): Adagrad, the sum of the squares of each number's gradients
    bias_squares  (R,): the same of the biases, where squares is (R, D) and there are biases; None elsewhere

    A visit moves a row w against its gradient g, and its bias by the gradient of that, which belongs to g: by SGD w <- w - rate
    g; by Adagrad s <- s + g^2, w <- w - rate g / (sqrt(s) + 1e-10), where row-wise Adagrad takes the mean of g^2 over the row.
    A visit is: an occurrence of an id, in a scatter; an example at a node of a tree or at a drawn class, or a group of them in
    the mode "grouped" and in TreeBatch; in full and sampled softmax and in the top of a split tree the sum over the batch, at
    every row that takes part. What a kernel passes on, the gradient of hidden vectors, is that of the rows before the visit.

    Duchi et al. 2011, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization"; row by row: Mudigere et
    al. 2022, arXiv:2104.05158.
    """

    rows: Any
    biases: Any = None
    squares: Any = None
    bias_squares: Any = None


class Rows(Protocol):
    """Tables of vectors, one row an id; table (R, D)."""

    def gather(self, out: Array, table: Array, ids: Array) -> None:
        """out[n] = table[ids[n]]; out (N, D), ids (N,)."""

    def scatter(self, learned: Learned, ids: Array, grad: Array, rate: float) -> None:
        """Move row ids[n] against grad[n] (N, D), in the order of n: the same bits at any number of threads. No biases."""

    def gather_mean(self, out: Array, table: Array, bag_at: Array, ids: Array, values: Array | None) -> None:
        """out[b] = mean of table[ids[bag_at[b]:bag_at[b+1]]], zero for an empty bag; out (B, D), bag_at (B+1,) int64.

        values  (N,): out[b] is the sum of values[n] * table[ids[n]] over the bag instead; None: the mean
        """

    def scatter_mean(
        self, learned: Learned, bag_at: Array, ids: Array, values: Array | None, grad: Array, rate: float
    ) -> None:
        """The reverse of gather_mean: every row of bag b moves against grad[b] / size(b), in the order of b.

        values  (N,): against values[n] * grad[b] instead; None: of means
        """


class Softmax(Protocol):
    """The full softmax over V classes, computed in chunks: its scratch has a bound. Rows (V, D), hidden (B, D)."""

    def workspace(self, batch: int, width: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows need; made once."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Write grad (B, D) = d loss / d hidden and loss (B,) in nats; every row moves against the gradient summed over B.

        weight  (B,): multiplies an example's loss and gradients; None: all 1
        """

    def log_prob(self, out: Array, learned: Learned, work: Any, hidden: Array, target: Array) -> None:
        """out[b] = log p(target[b] | hidden[b])."""

    def best(self, ids: Array, log_probs: Array, learned: Learned, work: Any, hidden: Array) -> None:
        """Write the k most likely classes of each row, most likely first; ids and log_probs (B, k)."""


class SampledSoftmax(Protocol):
    """The softmax over the target of each row and negatives that the whole batch shares; rows (V, D), hidden (B, D)."""

    def log_uniform(self, classes: int) -> Any:
        """A sampler that draws approximately by Zipf's law; classes are numbered by falling frequency."""

    def unigram(self, counts: Array) -> Any:
        """A sampler that draws class v in proportion to counts[v]^0.75."""

    def uniform(self, classes: int) -> Any:
        """A sampler that draws all classes alike."""

    def workspace(self, batch: int, width: int, negatives: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows and `negatives` negatives need; made once."""

    def draw(self, work: Any, sampler: Any, count: int, target: Array, seed: int, tick: int) -> int:
        """Write the distinct negatives of a batch to the scratch, with log of the probability that a class is among them.

        count draws with replacement, a function of seed and tick. Returns how many negatives there are: up to count.
        """

    def learn(
        self, grad: Array, loss: Array, learned: Learned, work: Any, count: int, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> Array:  # fmt: skip
        """What `step` does with `count` negatives that were drawn before."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, sampler: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float, seed: int, tick: int,
    ) -> Array:  # fmt: skip
        """Write grad (B, D) = d loss / d hidden and loss (B,) in nats; rows move against the gradient summed over B.

        weight as in Softmax.step. The draws are a function of seed and tick. Returns the negatives: distinct class ids, valid
        until the next step.
        """


class SampledLogistic(Protocol):
    """A logistic regression a class, for the target of each row and the negatives that the whole batch shares."""

    def calibrated(self, draws: int, classes: int, calibration: float) -> float:
        """The factor of the target's part of the loss, beta of gBCE, after uniform draws; calibration: t from 0 to 1."""

    def learn(
        self, grad: Array, loss: Array, learned: Learned, work: Any, count: int, hidden: Array, target: Array,
        weight: Array | None, rate: float, positive: float,
    ) -> Array:  # fmt: skip
        """As SampledSoftmax.learn: loss = -positive log p(yes | target) - sum of log p(no | negative)."""


class TreeSoftmax(Protocol):
    """Hierarchical softmax: nodes (V - 1, D), one logistic regression a node of a binary tree over V classes."""

    def plan(self, tree: Any) -> Any:
        """The tree in the form that the other functions take; made once."""

    def workspace(self, batch: int, width: int, depth: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows and paths up to `depth` need; made once."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, tree: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Learn from a batch: write grad (B, D) = d loss / d hidden and loss (B,) in nats, move the nodes.

        A node moves for the rows of the batch in order, one after another, so the result equals the serial loop over rows,
        bit for bit, at any number of threads.
        grad is summed over the path, not averaged over B. weight as in Softmax.step.
        """

    def log_prob(self, out: Array, learned: Learned, tree: Any, hidden: Array, target: Array) -> None:
        """out[b] = log p(target[b] | hidden[b]); sums to 1 over all classes."""


class TreeBatch(Protocol):
    """The same tree, whose nodes learn from a few examples at once: no node waits for one example after another.

    `TreeSoftmax.log_prob` takes its plans too.
    """

    def plan(self, tree: Any) -> Any:
        """The tree in the form that `step` takes; made once."""

    def workspace(self, batch: int, width: int, depth: int, together: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows and paths up to `depth` need; made once for a `together`."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, tree: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float, together: int,
    ) -> None:  # fmt: skip
        """Learn from a batch: write grad (B, D) = d loss / d hidden and loss (B,) in nats, move the nodes.

        At each node the examples that pass it learn in the order of the batch, up to `together` at a time, all from the node
        before any of them moves it; then it moves once against the sum of their gradients. together 1: the semantics of the
        serial loop; B: those of a mini-batch. The same bits in every run, at any number of threads.
        grad is summed over the path, not averaged over B. weight as in Softmax.step.
        """


class Split(Protocol):
    """The top of a tree over V classes, computed by dense products: nodes (K, D), the first K in breadth-first order."""

    def workspace(self, batch: int, width: int, top: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows of `width` numbers and `top` nodes need; made once."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, tree: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Learn from a batch: add d loss / d hidden to grad (B, D), write loss (B,) in nats, move nodes (K, D).

        tree: TreeSoftmax.plan of the tree's top. All examples use the nodes before the step, and a node moves once, against
        the gradient summed over its examples: the semantics of a mini-batch, not of the serial loop. weight as in Softmax.step.
        """


class Head(Protocol):
    """A full softmax over S slots, each of a class alone or of a cluster of classes; rows (S, D), slot (V,) int32."""

    def workspace(self, batch: int, width: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows need; made once."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, slot: Array, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Learn from a batch: add d loss / d hidden to grad (B, D), write loss (B,) in nats, move the rows of the slots.

        target (B,) int32 classes. Every row moves once, against the gradient summed over B. weight as in Softmax.step.
        """

    def log_prob(self, out: Array, learned: Learned, work: Any, slot: Array, hidden: Array, target: Array) -> None:
        """out[b] = log p(the slot of target[b] | hidden[b])."""

    def add(self, out: Array, part: Array) -> None:
        """out += part; of one shape."""


class LabelTree(Protocol):
    """A probabilistic label tree over V labels, of which an example may have any number: rows (N, D), one a node.

    tree  up (N,) int32, child_at (N + 1,) int32, leaf (V,) int32, label (N,) int32, visits (V,) int32, see
          cpu/label_tree.py
    """

    def longest(self, tree: Any, target: Array, target_at: Array) -> int:
        """At least as many nodes as an example of a batch visits: the length that `workspace` is to have room for."""

    def workspace(self, batch: int, width: int, length: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` examples need, which visit up to `length` nodes each."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, tree: Any, hidden: Array, target: Array,
        target_at: Array, weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Learn from a batch: write grad (B, D) = d loss / d hidden and loss (B,) in nats, move the nodes' rows.

        Example b has the labels target[target_at[b] : target_at[b + 1]]; one that stands there twice counts once. It visits
        the root, and the children of every node that has one of its labels below; loss is the sum of -log p over them. Rows
        move as in TreeSoftmax.step. weight as in Softmax.step.
        """

    def log_prob(self, out: Array, learned: Learned, tree: Any, hidden: Array, target: Array) -> None:
        """out[b] = log p(example b has the label target[b]): the labels' probabilities do not sum to 1."""


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

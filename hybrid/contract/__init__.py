"""What a backend promises: `cpu` keeps it with Numba, `gpu` with PyCUDA.

Here are devices and collections of MLPs; dense.py has deep MLPs and their optimisers, sparse.py what learns sparsely, pvm.py
the Predictive Vision Model.

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
from typing import Any, Protocol

from numpy.typing import DTypeLike, NDArray

from .array import Array as Array
from .dense import Layer as Layer
from .dense import Mlp as Mlp
from .dense import Move as Move
from .dense import Optimiser as Optimiser
from .dense import Passed as Passed
from .pvm import Gathering as Gathering
from .pvm import Learning as Learning
from .pvm import Past as Past
from .pvm import Pvm as Pvm
from .pvm import State as State
from .sparse import Head as Head
from .sparse import LabelTree as LabelTree
from .sparse import Learned as Learned
from .sparse import Rows as Rows
from .sparse import SampledLogistic as SampledLogistic
from .sparse import SampledSoftmax as SampledSoftmax
from .sparse import Softmax as Softmax
from .sparse import Split as Split
from .sparse import TreeBatch as TreeBatch
from .sparse import TreeSoftmax as TreeSoftmax

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

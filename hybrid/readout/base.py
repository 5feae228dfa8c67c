"""Common parts of readouts: arguments are checked here, once, and long inputs are cut into calls of `batch` rows."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypedDict

import numpy as np

from .. import backend as backends
from .. import check, optimisers, settings, sparse
from ..backend import fetch_arrays, send_arrays
from ..contract import Learned
from ..schedule.guards import Alone, Held
from ..schedule.schedule import Buffers, Copies, Stage
from ..schedule.slot import Slot

Pairs = list[tuple[np.ndarray, Any]]


class Common(TypedDict, total=False):
    """The arguments of every readout, see Base."""

    batch: int
    backend: Any
    optimiser: str | optimisers.Optimiser
    biases: bool


class Base:
    """A readout without its arithmetic. A subclass has `kind`, and these methods, which trust their arguments:

        learn, _log_prob, _best   compute with arrays of the device, within the work of a queue
        _best_without, _scores    compute with NumPy's arrays on the host, with the parameters there; excluded classes are in
                                  an Excluded of cpu/output/topk.py
        _pairs                    every learned array of the host, and its counterpart on the device: the same one on the CPU

    A subclass whose rows learn by `optimiser` stores them by `_keep`, which also provides `_pairs`.

    batch    maximum rows of a step
    seed     of random draws
    backend  the compute modules, from hybrid.backend.choose; None: those of the CPU
    optimiser  update rule: "sgd", "row-adagrad" or "adagrad", with the kind's default rate, or one such as hybrid.SGD(0.05)
    biases   True: every row has a bias

    A subclass that also computes on a GPU lists it in `places`.
    """

    kind: str
    _host: Learned
    _there: Learned
    places: tuple[str, ...] = ("cpu",)  # kinds of devices: "cpu", "cuda"
    usual_rate = 0.02
    searches_on_host = False  # True: it has no `_best`, and `_best_without` also accepts None
    on_host = False  # True: `learn` takes NumPy's arrays, even if a part of it is on a device
    ready: tuple[str, ...] = ("readout", "grad in")
    begin_with: Any  # of kinds whose classes can be initialised
    learn: Callable[..., None]  # see Readout
    learn_online: Callable[..., None]  # of kinds that support it, see `online`
    _log_prob: Callable[..., None]
    _best: Callable[..., None]
    _best_without: Callable[..., None]
    _scores: Callable[..., None]
    parameters: Callable[[], dict[str, np.ndarray]]
    counts: Any  # (V,) float64, None if only the number of classes is known
    mixed = False  # True: it belongs to a mixture, whose readouts have the same classes

    def __init__(
        self,
        counts: Any,
        width: int,
        *,
        batch: int = 1024,
        seed: int = 0,
        backend: Any = None,
        optimiser: str | optimisers.Optimiser = "sgd",
        biases: bool = False,
    ):
        whole = isinstance(counts, int | np.integer)
        self.counts = None if whole else check.counts(counts)
        self.classes = check.classes(counts if whole else self.counts.size)
        self.width = check.whole("width", width, 1)
        self.batch = check.whole("batch", batch, 1)
        self.optimiser, self.rate = optimisers.of_rows(optimiser, self.usual_rate)
        self.seed, self.biased = check.whole("seed", seed, 0, 2**63 - 1), bool(biases)
        self.backend = backends.given(backend)
        self.beside = not self.backend.device.host_memory  # True: it is on the trunk's GPU
        self._check_place()
        self._place = Place(backends.choose("cpu").device if self.on_host else self.backend.device)
        self.rate_scale = 1.0
        self._loss = np.empty(self.batch, np.float32)
        self.alone = Alone(f"{self.kind} readout", "give every thread a readout of its own: copy.deepcopy makes one")

    @property
    def rate(self) -> float:
        """The learning rate, at least 0; may be set between two calls. ValueError for one that is not finite."""
        return self._rate

    @rate.setter
    def rate(self, value: float) -> None:
        self._set_rate(check.number("rate", value, 0))

    def _set_rate(self, rate: float) -> None:
        self._rate = rate

    # Learning

    def step(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None) -> float:
        """Learns from a batch and returns its mean loss in nats; see Readout."""
        self._check_step(grad, hidden, target, weight)
        return self._learned(self.learn, grad, hidden, target, weight)

    def step_slot(self, slot: Slot, learn: Callable[..., None] | None = None) -> None:
        """Learns from a slot, whose targets and weights the feed's check has validated; writes its gradient and loss.

        Raises FloatingPointError for hidden vectors that are not finite: the input is valid, so the model has diverged.
        """
        self.rate_scale = slot.scale
        try:
            check.finite("hidden", slot.hidden)
        except ValueError as failure:
            raise FloatingPointError(str(failure)) from None
        if slot.target_at is None:
            slot.loss = self._learned(learn or self.learn, slot.grad, slot.hidden, slot.target, slot.weight)
        else:
            slot.loss = self._learn_targets(slot)

    def _learn_targets(self, slot: Slot) -> float:
        """Learns from a slot whose examples may have several targets; writes its gradient, returns its mean loss.

        An example becomes one for each of its targets, with its hidden vector and an equal part of its weight, so losses and
        gradients sum to the mean over the targets. Each `batch` of them make a step.
        """
        assert slot.target_at is not None
        example, share = _shares(slot.target_at)
        if slot.weight is not None:
            share *= slot.weight[example]
        slot.grad.fill(0)
        total = 0.0
        for rows in self._parts(example):
            hidden = slot.hidden[example[rows]]
            grad = np.empty_like(hidden)
            total += self._learned(self.learn, grad, hidden, slot.target[rows], share[rows]) * len(hidden)
            _add(slot.grad, example[rows], grad)
        return total / slot.count

    def _learned(self, learn: Any, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: Any) -> float:
        """Returns the mean loss of `learn` on validated NumPy arrays."""
        if not len(hidden):
            return 0.0
        read = {"hidden": hidden, "target": target} | ({} if weight is None else {"weight": weight})
        with Held(), self.alone:
            loss = self._loss[: len(hidden)]
            self._place.call(learn, {"grad": grad, "loss": loss}, read)
            return check.loss(loss)

    @property
    def online(self) -> bool:
        """True if it can learn together with the rows that a batch reads, see hybrid/engine/route.py."""
        return False

    def step_online(self, grad: Any, hidden: Any, inputs: Any, target: Any, weight: Any = None) -> float:
        """Learns from a batch and the rows that it reads, example by example, and returns its mean loss in nats.

        Unchecked: an engine calls it, with at least one example. inputs: see cpu/words.py; grad, hidden (B, D) are written.
        """
        with self.alone:
            loss = self._loss[: len(target)]
            self.learn_online(grad, loss, hidden, inputs, target, weight)
            return check.loss(loss)

    def dry_run(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: Any = None) -> float:
        """Writes the gradient of -log p(target), times the weight, and returns its mean, as `step` does; nothing is updated."""
        with self.dry_runs():
            return self.step(grad, hidden, target, weight)

    def losses(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Returns the loss of each row in the next step, (B,) float32, any number of rows; nothing is updated."""
        return -self.log_prob(hidden, target)

    @contextlib.contextmanager
    def dry_runs(self) -> Iterator[None]:
        """Provides a context in which steps are dry runs: nothing is updated."""
        with self.alone:
            scale, self.rate_scale = self.rate_scale, 0.0
            try:
                yield
            finally:
                self.rate_scale = scale

    # Stages of an engine

    @property
    def multi_target(self) -> bool:
        """True if examples may have several targets: on the host, where they become examples of one target each."""
        return not self.beside

    def buffers(self) -> Buffers:
        """Returns hidden vectors and gradients for a host readout; targets, weights and losses for one on the trunk's GPU."""
        return Buffers({}, ("target", "weight", "losses") if self.beside else ("hidden", "grad"))

    def finish(self, copy: Copies) -> list[Stage]:
        if self.beside:
            learn = Stage("readout", "dense", self._learn_beside, ("forward", "target in"))
            return [*copy("target in"), learn, *copy("losses out", "readout")]
        return [Stage("readout", "sparse", self.step_slot, ("forward", "hidden out")), *copy("grad in", "readout")]

    def last(self, copy: Copies) -> list[Stage]:
        return [Stage("loss", "sparse", self._judge, ("losses out",))] if self.beside else []

    def _learn_beside(self, slot: Slot) -> None:
        self.rate_scale = slot.scale
        weight = () if slot.weight_dev is None else (slot.weight_dev,)
        self.learn(slot.grad_dev, slot.losses_dev, slot.hidden_dev, slot.target_dev, *weight)

    def _judge(self, slot: Slot) -> None:
        slot.loss = check.loss(slot.losses)

    # Queries

    def log_prob(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Returns the log-probability of each row's target; see Readout."""
        self._check(hidden, target)
        out = np.empty(len(hidden), np.float32)
        with self.alone:
            for part in self._parts(hidden):
                self._score(out[part], hidden[part], target[part])
        return out

    def scores(self, hidden: np.ndarray) -> np.ndarray:
        """Returns the log-probabilities of all classes, (B, V); see Readout. Fetches the parameters of a GPU, once per call."""
        self._check(hidden)
        out = np.empty((len(hidden), self.classes), np.float32)
        with self.alone:
            self.fetch()
            for part in self._parts(hidden):
                self._scores(out[part], hidden[part])
        return out

    def best(self, hidden: np.ndarray, k: int, exclude: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k most likely classes of each row, without those in `exclude`; see Readout."""
        self._check(hidden)
        check.whole("k", k, 1, self.classes)
        left_out = None if exclude is None else check.excluded(exclude, len(hidden), self.classes)
        ids, log_probs = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), np.float32)
        with self.alone:
            if left_out is not None or self.searches_on_host:
                self.fetch()
            for part in self._parts(hidden):
                found, rows = {"ids": ids[part], "log_probs": log_probs[part]}, hidden[part]
                if left_out is not None or self.searches_on_host:
                    self._best_without(*found.values(), rows, left_out and left_out.of(part))
                else:
                    self._place.call(self._best, found, {"hidden": rows})
        return ids, log_probs

    def on_stream(self, stream: int, work: Any, *arrays: Any) -> None:
        """Launches work(*arrays), such as `learn` or `judge`, within the order of another library's CUDA stream.

        The arrays are that library's, see `Device.adopt` in gpu/device.py, and belong to that stream: it may free them when it
        gets there. Nothing is checked.
        """
        with Held(), self.alone:
            self._place.within(stream, work, *arrays)

    def judge(self, out: Any, hidden: Any, target: Any) -> None:
        """Runs the computation of `log_prob` without its checks, on arrays of the device, within a queue's work; out (B,)."""
        self._log_prob(out, hidden, target)

    # Checkpoints

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        self.send()

    def fetch(self) -> None:
        fetch_arrays(self.backend.device, self._pairs())

    def send(self) -> None:
        """Copies the parameters from the host to the device; no operation if the device shares its memory."""
        send_arrays(self.backend.device, self._pairs())

    def describe(self) -> dict[str, Any]:
        names = ("kind", "classes", "width", "batch", "rate", "seed")
        biases = {"biases": True} if self.biased else {}
        return {name: getattr(self, name) for name in names} | sparse.describe(self.optimiser) | biases

    def __reduce__(self) -> tuple[Any, ...]:
        with self.alone:
            return again, (self.describe(), self.backend.name, self.parameters(), self.state(), self.rate_scale)

    # Rows that learn

    def _keep(self, rows: np.ndarray) -> None:
        """Stores learned rows (R, D) and their optimiser state: `_host`, and on the device `_there`."""
        self._host = sparse.kept(rows, self.optimiser, self.biased)
        self._there = sparse.mirrored(self._host, self.backend.device)

    def _pairs(self) -> Pairs:
        return sparse.pairs(self._host, self._there)

    @property
    def biases(self) -> np.ndarray | None:
        """The biases (R,) of the rows, on the host; None without biases."""
        return self._host.biases

    @property
    def _step_rate(self) -> float:
        return self.rate * self.rate_scale

    def _learns(self, learned: Learned) -> Learned:
        """Returns the part that this step updates: at a rate of 0 the squares are constant, too."""
        return learned if self.rate_scale else learned._replace(squares=None, bias_squares=None)

    # Arithmetic

    def _score(self, out: np.ndarray, hidden: np.ndarray, target: np.ndarray) -> None:
        self._place.call(self._log_prob, {"loss": out}, {"hidden": hidden, "target": target})

    def _parts(self, rows: np.ndarray) -> Iterator[slice]:
        return (slice(at, at + self.batch) for at in range(0, len(rows), self.batch))

    # Checks

    def _check(self, hidden: np.ndarray, *targets: np.ndarray) -> None:
        check.array("hidden", hidden, (None, self.width), np.float32)
        for target in targets:  # one, or none if the call has no target
            check.array("target", target, (len(hidden),), np.int32)
            check.ids("target", target, self.classes)
        check.finite("hidden", hidden)

    def _check_step(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None) -> int:
        """Returns the number of rows to learn from."""
        self._check(hidden, target)
        rows = len(hidden)
        if weight is not None:
            check.array("weight", weight, (rows,), np.float32)
            check.finite("weight", weight)
            if rows and weight.min() < 0:
                at = int(weight.argmin())
                raise ValueError(f"weight[{at}]: found {weight[at]}, expected a number of at least 0")
        check.array("grad", grad, hidden.shape, np.float32, written=True)
        if rows > self.batch:
            raise ValueError(f"hidden: found {rows} rows, expected at most {self.batch}; make it with a larger batch")
        if np.may_share_memory(grad, hidden):
            raise ValueError("grad: found the memory of hidden, expected an array of its own")
        return rows

    def _check_vectors(self, vectors: Any) -> None:
        check.array("vectors", vectors, (self.classes, self.width), np.float32)
        check.finite("vectors", vectors)

    def _check_place(self) -> None:
        name = self.backend.name
        if name.partition(":")[0] not in self.places:
            raise ValueError(
                f'backend: found "{name}", expected "cpu": a {self.kind} readout computes on the CPU only; leave it out, '
                "or take a tree, head or full readout"
            )


class Place:
    """The place of a readout's computation: the caller's thread and arrays, or a device with its own memory.

    Work on a device runs on a queue of the readout, and is waited for. NumPy's arrays are copied through page-locked buffers. A
    buffer is allocated on the first use of its name, and reallocated only for more rows or for rows of another shape.
    """

    def __init__(self, device: Any):
        self._device, self._here = device, device.host_memory
        self._queue: Any = None if self._here else device.inline("readout", 0)
        self._buffers: dict[str, tuple[np.ndarray, Any]] = {}

    def do(self, work: Callable[..., None], *arguments: Any) -> None:
        """Calls `work(*arguments)`, which takes arrays of the device, within the work of its queue."""
        if self._here:
            work(*arguments)
            return
        try:
            self._queue.run(work, *arguments).wait()
        except ValueError:  # invalid user input, no device failure, but this queue accepts no more work
            self._queue.close()
            self._queue = self._device.inline("readout", 0)
            raise

    def within(self, stream: int, work: Callable[..., None], *arguments: Any) -> None:
        """Launches `work(*arguments)` between the work so far on another library's CUDA stream and its later work."""
        self._queue.within(stream, work, *arguments)

    def call(self, work: Any, written: dict[str, np.ndarray], read: dict[str, np.ndarray]) -> None:
        """Calls work(*written, *read) with device arrays in place of these, and copies `written` back."""
        if self._here:
            work(*written.values(), *read.values())
            return
        buffers = {name: self._buffer(name, array) for name, array in (written | read).items()}
        for name, array in read.items():
            np.copyto(buffers[name][0], array)
        self.do(self._launch, work, [buffers[name] for name in written], [buffers[name] for name in read])
        for name, array in written.items():
            np.copyto(array, buffers[name][0])

    def _launch(self, work: Any, written: list[tuple[np.ndarray, Any]], read: list[tuple[np.ndarray, Any]]) -> None:
        for host, there in read:
            self._device.copy(there, host)
        work(*(there for _, there in written), *(there for _, there in read))
        for host, there in written:
            self._device.copy(host, there)

    def _buffer(self, name: str, array: np.ndarray) -> tuple[np.ndarray, Any]:
        host = self._buffers[name][0] if name in self._buffers else None
        if host is None or len(host) < len(array) or (host.shape[1:], host.dtype) != (array.shape[1:], array.dtype):
            host = self._device.host_empty(array.shape, array.dtype)
            self._buffers[name] = host, self._device.mirror(host)
        return tuple(buffer[: len(array)] for buffer in self._buffers[name])  # type: ignore[return-value]


def log_prob(readout: Any, hidden: np.ndarray, target: np.ndarray, target_at: np.ndarray) -> np.ndarray:
    """Returns the mean log-probability of each example's targets, (B,) float32; 0 for an example without any."""
    example, share = _shares(target_at)
    out = np.zeros(len(hidden), np.float32)
    for first in range(0, len(example), readout.batch):
        rows = slice(first, first + readout.batch)
        _add(out, example[rows], readout.log_prob(hidden[example[rows]], target[rows]) * share[rows])
    return out


def _shares(target_at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the example of each target, and its weight: one over the number of the example's targets, float32."""
    many = np.diff(target_at)
    example = np.repeat(np.arange(len(many)), many)
    return example, (1 / many[example]).astype(np.float32)


def _add(sums: np.ndarray, example: np.ndarray, values: np.ndarray) -> None:
    """Adds each example's values, which are consecutive, to its sum in their order."""
    first = np.flatnonzero(np.diff(example, prepend=-1))
    sums[example[first]] += np.add.reduceat(values, first, axis=0)


def arguments(options: Mapping[str, Any], declared: type | None) -> dict[str, Any]:
    """Returns the readout arguments from command-line options: the declared ones, `optimiser`, and, if set, `biases`.

    declared  the kind's Options. Some may be missing, as in runs that precede their declaration
    """
    own = {name: options.get(name, default) for name, default in settings.defaults(declared).items()}
    optimiser = optimisers.named(options.get("readout_optimiser") or "sgd", optimisers.ROWS, rate=options["rate"])
    return own | {"optimiser": optimiser} | ({"biases": True} if options.get("biases") else {})


def described(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the readout arguments from a Base.describe() result, except for the kind and the seed."""
    own = {name: value for name, value in facts.items() if name not in ("optimiser", "rate", "seed")}
    optimiser = optimisers.named(facts.get("optimiser", "sgd"), optimisers.ROWS, rate=facts.get("rate"))
    return own | {"optimiser": optimiser}


def again(facts: dict[str, Any], device: str, parameters: Any, state: dict[str, Any], rate_scale: float) -> Any:
    """Restores a pickled or copied readout on a device of that name, ValueError if it is unavailable; it owns its arrays."""
    from . import rebuild

    made = rebuild(facts, backends.again(f"{facts['kind']} readout", device))
    for name, array in made.parameters().items():
        np.copyto(array, parameters[name])
    made.restore(state)
    made.rate_scale = rate_scale
    return made

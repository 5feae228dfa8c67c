"""What all losses share: a readout as the last layer of a PyTorch net, which moves its own parameters during backward."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as processes

from .. import check, trees
from ..readout import LabelTreeReadout, NeighbourReadout
from ..readout.base import Base

# What a loss is asked: tensors of the user's, checked where they come in, and the rows that have a class.

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
WHOLE = (torch.int64, torch.int32)


class Asked(NamedTuple):
    """The rows of a batch that have a class.

    kept    (M,) int64, their numbers; None: all N rows
    target  (M,) int32
    total   for a mean: the sum of the weights of those rows, a float32 number; None for another reduction, and for 0
    learns  whether backward moves the readout
    """

    kept: Any
    target: Any
    total: Any
    learns: bool

    def of(self, rows: Any) -> Any:
        """The rows (N, ...) that have a class: (M, ...), without a copy where all have."""
        return rows if self.kept is None else rows[self.kept]

    def among(self, values: Any, rows: int) -> Any:
        """The reverse: (N, ...) with values (M, ...) in their places and 0 elsewhere."""
        if self.kept is None:
            return values
        every = values.new_zeros((rows, *values.shape[1:]))
        every[self.kept] = values
        return every


def checked_hidden(value: Any, width: int) -> Any:
    """`value` itself; ValueError unless it is a floating tensor (..., width)."""
    wanted = f"expected a floating tensor (..., {width})"
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"hidden: found {type(value).__name__}, {wanted}; torch.as_tensor(hidden) makes one")
    if value.dtype not in FLOATS:
        raise ValueError(f"hidden: found {_told(value)}, {wanted}; hidden.float() makes one")
    if value.ndim < 1 or value.shape[-1] != width:
        raise ValueError(f"hidden: found {_told(value)}, {wanted}: {width} numbers a vector")
    return value


def check_finite(rows: Any, kept: Any = None) -> None:
    """FloatingPointError, naming the first bad row, for a NaN or an infinity in rows (M, D): the net has diverged.

    kept  (M,): the numbers by which the user knows these rows; None: 0 to M - 1
    """
    if rows.numel() and not all(math.isfinite(end) for end in torch.aminmax(rows)):
        row = int(torch.isfinite(rows).all(dim=1).int().argmin())
        row = row if kept is None else int(kept[row])
        raise FloatingPointError(
            f"hidden[{row}]: found NaN or infinity, expected finite numbers; a lower rate may help"
        )


def checked_target(value: Any, shape: Any, classes: int, ignored: int) -> Any:
    """The classes in one row, (N,), of the dtype that they came in; `ignored` may be among them.

    Raises ValueError for another shape or dtype, and IndexError, naming the first bad place, for an id out of range.
    """
    wanted = f"expected int64 or int32 {tuple(shape)}, one class a hidden vector"
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"target: found {type(value).__name__}, {wanted}; torch.as_tensor(target) makes one")
    if value.dtype not in WHOLE or value.shape != shape:
        remedy = "; target.long() makes one" if value.shape == shape else ""
        raise ValueError(f"target: found {_told(value)}, {wanted}{remedy}")
    bad = ((value < 0) | (value >= classes)) & (value != ignored)
    if bad.any():
        place = bad.nonzero()[0].tolist()
        found = value[tuple(place)].item()
        at = f"[{', '.join(map(str, place))}]" if place else ""
        raise IndexError(f"target{at}: found {found}, expected 0 to {classes - 1}, or {ignored} where there is none")
    return value.reshape(-1)


def checked_weight(value: Any, shape: Any, device: Any) -> Any:
    """The weights of the examples in one row, (N,) float32 on the device; None for None.

    Raises ValueError for another shape or dtype, and for numbers that are negative or not finite.
    """
    if value is None:
        return None
    wanted = f"expected a floating tensor {tuple(shape)}, one number an example"
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"weight: found {type(value).__name__}, {wanted}; torch.as_tensor(weight) makes one")
    if value.dtype not in FLOATS or value.shape != shape:
        remedy = "; weight.float() makes one" if value.shape == shape else ""
        raise ValueError(f"weight: found {_told(value)}, {wanted}{remedy}")
    row = value.reshape(-1).to(device=device, dtype=torch.float32)
    bad = ~((row >= 0) & (row < math.inf))
    if bad.any():
        at = int(bad.int().argmax())
        raise ValueError(f"weight[{at}]: found {row[at].item()}, expected a finite number of at least 0")
    return row


def _told(value: Any) -> str:
    return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"


# Where tensors meet a readout: as NumPy's arrays on the host, or in the memory of the readout's own GPU.


def place(readout: Any, tensor: Any) -> "Host | Beside":
    """How this readout takes tensors that are where this one is."""
    device = readout.backend.device
    beside = not device.host_memory and device.name == str(tensor.device)
    return Beside(readout) if beside and not getattr(readout, "on_host", False) else Host(readout)


class Host:
    """A readout by its calls that take NumPy's arrays; tensors of the host share their memory with them.

    Tensors of a GPU are copied through page-locked memory. What is on the host a readout on a GPU copies by itself.
    """

    def __init__(self, readout: Any):
        self._readout = readout

    def log_prob(self, hidden: Any, target: Any) -> Any:
        """The log-probability of each row's target, (M,) float32; hidden (M, D) float32, target (M,) int32."""
        return there(self._readout.log_prob(arrived(hidden), arrived(target)), hidden)

    def losses(self, hidden: Any, target: Any) -> Any:
        """The loss of each row as the next step would have it, (M,) float32; nothing moves."""
        return there(self._readout.losses(arrived(hidden), arrived(target)), hidden)

    def step(self, hidden: Any, target: Any, weight: Any) -> Any:
        """Learn; the gradient of each row, times its weight (M,) float32 (None: 1)."""
        return self._each(self._readout.step, hidden, target, weight)

    def still(self, hidden: Any, target: Any, weight: Any) -> Any:
        """As `step`, but nothing moves."""
        return self._each(self._readout.dry_run, hidden, target, weight)

    def _each(self, call: Callable[..., Any], hidden: Any, target: Any, weight: Any) -> Any:
        """Rows cut into calls that the readout takes."""
        rows, classes = arrived(hidden), arrived(target)
        weights = None if weight is None else arrived(weight)
        grad = torch.empty(rows.shape, dtype=torch.float32, device="cpu", pin_memory=hidden.is_cuda)
        written = grad.numpy()
        for part in parts(len(rows), self._readout.batch):
            call(written[part], rows[part], classes[part], None if weights is None else weights[part])
        return grad.to(hidden.device, non_blocking=True)


class Beside:
    """A readout on the GPU where the tensors are: its kernels take their memory as it is, and nothing is copied.

    They begin after what PyTorch has put on its current stream, and are done when a call returns.
    """

    def __init__(self, readout: Any):
        self._readout = readout

    def log_prob(self, hidden: Any, target: Any) -> Any:
        """As of Host."""
        out = hidden.new_empty(len(hidden))
        self._each(self._readout.judge, out, hidden, target)
        return out

    def losses(self, hidden: Any, target: Any) -> Any:
        """As of Host: readouts that draw are on the CPU."""
        return -self.log_prob(hidden, target)

    def step(self, hidden: Any, target: Any, weight: Any) -> Any:
        """As of Host."""
        grad, loss = hidden.new_empty(hidden.shape), hidden.new_empty(len(hidden))
        self._each(self._readout.learn, grad, loss, hidden, target, *([] if weight is None else [weight]))
        check.loss(loss.cpu().numpy())
        return grad

    def still(self, hidden: Any, target: Any, weight: Any) -> Any:
        """As of Host."""
        with self._readout.dry_runs():
            return self.step(hidden, target, weight)

    def _each(self, work: Callable[..., None], *tensors: Any) -> None:
        """Work on rows, cut into calls that the readout takes; all tensors have as many."""
        if not len(tensors[0]):
            return
        stream = torch.cuda.current_stream(tensors[0].device).cuda_stream
        arrays = [self._readout.backend.device.adopt(tensor.detach().contiguous()) for tensor in tensors]
        for part in parts(len(tensors[0]), self._readout.batch):
            self._readout.on_stream(stream, work, *(array[part] for array in arrays))


def parts(rows: int, most: int) -> Iterator[slice]:
    """The calls into which so many rows are cut."""
    return (slice(at, at + most) for at in range(0, rows, most))


def arrived(tensor: Any) -> np.ndarray:
    """A tensor as an array in C order: its own memory where it is on the host and lies so."""
    tensor = tensor.detach().contiguous()
    if tensor.is_cuda:
        locked = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
        locked.copy_(tensor, non_blocking=True)
        torch.cuda.current_stream(tensor.device).synchronize()
        tensor = locked
    found: np.ndarray = tensor.cpu().numpy()
    return found


def there(array: np.ndarray, beside: Any) -> Any:
    """An array as a tensor on the device of another one."""
    return torch.from_numpy(array).to(beside.device)


# Several processes that train one net: all make the same step on the rows of all, as one process would.


class Rows(NamedTuple):
    """Rows to learn from: hidden (M, D) float32, target (M,) int32, factor (M,) float32."""

    hidden: Any
    target: Any
    factor: Any


def alone(group: Any) -> bool:
    """Whether there is but one process."""
    there = processes.is_available() and processes.is_initialized()
    return not there or processes.get_world_size(group) == 1


def together(own: Rows, group: Any) -> tuple[Rows, slice]:
    """The rows of all processes in the order of their ranks, the same in each, and where one's own are among them.

    Every process must call it, as often as the others; one may have no rows.
    """
    sizes = _sizes(len(own.hidden), own.hidden.device, group)
    width, most = own.hidden.shape[1], max(sizes)
    packed = own.hidden.new_zeros((most, width + 2), dtype=torch.int32)  # as bits: what is copied is not rounded
    packed[: len(own.hidden)] = torch.cat(
        [own.hidden.view(torch.int32), own.target[:, None], own.factor.view(torch.int32)[:, None]], dim=1
    )
    parts = [torch.empty_like(packed) for _ in sizes]
    processes.all_gather(parts, packed, group=group)
    every = torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])
    first = sum(sizes[: processes.get_rank(group)])
    hidden = every[:, :width].contiguous().view(torch.float32)
    factor = every[:, width + 1].contiguous().view(torch.float32)
    return Rows(hidden, every[:, width].contiguous(), factor), slice(first, first + len(own.hidden))


def _sizes(rows: int, device: Any, group: Any) -> list[int]:
    """How many rows each process has."""
    own = torch.tensor([rows], device=device)
    every = [torch.empty_like(own) for _ in range(processes.get_world_size(group))]
    processes.all_gather(every, own, group=group)
    return [int(size) for size in every]


# The loss of each row as a function that autograd differentiates: its backward is the readout's step.


class Nats(torch.autograd.Function):
    """-log p(target | hidden) of each row, (N,) float32, and the same times its weight; 0 where a row has no class.

    hidden  (N, D)
    weight  (N,) float32, or None: 1
    anchor  the module's parameter, whose gradient is 0: so backward comes here where nothing else needs one
    module  a ReadoutLoss
    """

    @staticmethod
    def forward(ctx: Any, hidden: Any, weight: Any, anchor: Any, module: Any, asked: Asked) -> Any:
        """The losses; nothing moves. FloatingPointError for hidden vectors or losses that are not finite."""
        rows = asked.of(hidden).to(torch.float32)
        check_finite(rows, asked.kept)
        readout = place(module.readout, rows)
        losses = readout.losses(rows, asked.target) if asked.learns else -readout.log_prob(rows, asked.target)
        nats = asked.among(_finite("loss", losses), len(hidden))
        ctx.save_for_backward(hidden, weight, nats)
        ctx.module, ctx.asked = module, asked
        return nats, nats.clone() if weight is None else weight * nats

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        """The gradients of the hidden vectors and of the weights; a readout that learns moves.

        Raises RuntimeError where a graph of the gradient is asked for, and what `_factor` raises; then nothing has moved.
        """
        module, asked = ctx.module, ctx.asked
        if torch.is_grad_enabled():
            raise RuntimeError(
                f"{type(module).__name__}: found create_graph=True, expected a first derivative: the readout moves in "
                "backward, and its gradient cannot be differentiated again"
            )
        hidden, weight, nats = ctx.saved_tensors
        of_nats, of_losses = (_finite("upstream gradient", values) for values in upstream)
        rows = asked.of(hidden).to(torch.float32)
        if asked.learns:
            scale = _scale(asked.of(of_nats + of_losses))
            factor = _factor(of_nats / scale, of_losses / scale, weight)
            grad = _moved(module, Rows(rows, asked.target, asked.of(factor))) * scale
        else:
            factor = of_nats + (of_losses if weight is None else weight * of_losses)
            grad = place(module.readout, rows).still(rows, asked.target, None) * asked.of(factor)[:, None]
        of_hidden = asked.among(grad.to(hidden.dtype), len(hidden))
        of_anchor = torch.zeros_like(module.anchor) if ctx.needs_input_grad[2] else None
        return of_hidden, None if weight is None else of_losses * nats, of_anchor, None, None


class Unlearned(torch.autograd.Function):
    """What a readout answers about hidden vectors: numbers that say so where somebody differentiates them."""

    @staticmethod
    def forward(ctx: Any, hidden: Any, module: Any, answer: Any) -> Any:
        """The answers."""
        ctx.module, found = module, answer(hidden)
        ctx.mark_non_differentiable(*(array for array in found if not array.is_floating_point()))
        return found

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        """RuntimeError."""
        raise RuntimeError(
            f"{type(ctx.module).__name__}: found a backward through log_prob or best, expected one through the output or loss "
            "of a call, which have a gradient; log_prob(hidden).detach() takes these as numbers"
        )


def _moved(module: Any, own: Rows) -> Any:
    """Learn from the rows of all processes; the gradient of one's own."""
    module.learning()
    if alone(module.process_group):
        return place(module.readout, own.hidden).step(own.hidden, own.target, _weight(own.factor))
    every, mine = together(own, module.process_group)
    return place(module.readout, own.hidden).step(every.hidden, every.target, _weight(every.factor))[mine]


def _scale(both: Any) -> Any:
    """By what the loss was multiplied or divided: the mean of the upstream gradients (M,), without those of 0."""
    there = both[both != 0]
    if not len(there):
        return both.new_tensor(1)
    least, most = there.aminmax()
    return (
        least.abs() if least == most else there.abs().mean()
    )  # x / x is exactly 1: only then a row moves by its very weight


def _factor(of_nats: Any, of_losses: Any, weight: Any) -> Any:
    """How far each row moves the readout, against a step of its own; ValueError, naming the row, for one below 0."""
    factor = of_nats + (of_losses if weight is None else weight * of_losses)
    if (factor < 0).any():
        row = int((factor < 0).int().argmax())
        raise ValueError(
            f"upstream gradient[{row}]: found one below 0, expected at least 0: a readout only learns to raise the probability "
            "of a target; eval() or requires_grad_(False) keeps it still, and takes any sign"
        )
    return factor


def _weight(factor: Any) -> Any:
    """The weights of a step; None where all are 1, which a step of the readout alone would have."""
    return None if (factor == 1).all() else factor


def _finite(name: str, values: Any) -> Any:
    """`values` (M,) themselves; FloatingPointError, naming the first bad one, unless all are finite."""
    good = torch.isfinite(values)
    if not good.all():
        at = int(good.int().argmin())
        raise FloatingPointError(f"{name}[{at}]: found {values[at].item()}; a lower rate may help")
    return values


# What a readout has learned, as entries of a state_dict: tensors that share its memory.


def entries(readout: Any) -> dict[str, Any]:
    """The parameters by name, and the numbers of state() as tensors of one number; of a GPU, as they are now."""
    learned = {name: torch.from_numpy(array) for name, array in readout.parameters().items()}
    return learned | {name: torch.tensor(number) for name, number in readout.state().items()}


def faults(readout: Any, given: Mapping[str, Any], prefix: str) -> list[str]:
    """Why the entries that are given cannot be loaded, one sentence each; a missing entry is no fault."""
    found = []
    for name, own in entries(readout).items():
        value = given.get(name, own)
        if not isinstance(value, torch.Tensor):
            found.append(f"{prefix}{name}: found {type(value).__name__}, expected a tensor {tuple(own.shape)}")
        elif value.shape != own.shape:
            found.append(f"{prefix}{name}: found the shape {tuple(value.shape)}, expected {tuple(own.shape)}")
        elif value.numel() and not all(math.isfinite(end) for end in value.aminmax()):
            found.append(f"{prefix}{name}: found NaN or infinity, expected finite numbers")
        elif name.endswith("squares") and value.numel() and value.amin() < 0:  # their root is taken
            found.append(f"{prefix}{name}: found {value.amin().item()}, expected numbers of at least 0")
    return found or _unfit(given)


def _unfit(given: Mapping[str, Any]) -> list[str]:
    """What a readout would refuse to be restored from."""
    try:
        if "counts" in given:
            check.counts(given["counts"].cpu().numpy())
        if {"leaf_up", "node_up"} <= given.keys():
            trees.checked(given["leaf_up"].cpu().numpy(), given["node_up"].cpu().numpy())
        if "tick" in given:
            check.whole("tick", given["tick"].item(), 0, 2**63 - 1)
    except ValueError as failure:
        return [str(failure)]
    return []


def fill(readout: Any, given: Mapping[str, Any]) -> None:
    """Go on from entries without faults, written in place; what is not given stays."""
    for name, array in readout.parameters().items():
        if name in given:
            np.copyto(array, given[name].detach().cpu().to(torch.from_numpy(array).dtype).numpy())
    state = readout.state()
    readout.restore(state | {name: given[name].item() for name in state if name in given})


REDUCTIONS = ("mean", "sum", "none")
MOVED = 2.0**-20  # the anchor of a readout that has moved; so small that no norm of a net's parameters shows it


class Judged(NamedTuple):
    """What a loss returns.

    output  (...) float32, the log-probability of each target
    loss    in nats, reduced
    """

    output: Any
    loss: Any


class ReadoutLoss(torch.nn.Module):
    """A readout of hybrid as the last layer of a PyTorch net, called as torch.nn.AdaptiveLogSoftmaxWithLoss.

    readout        one of hybrid's for one class an example, or of your own; its parameters are moved by its own fused step,
                   not by an optimiser of PyTorch
    reduction      "mean" (of the examples that have a class), "sum" or "none"
    ignore_index   the target of an example without a class
    process_group  of torch.distributed: the processes that train together, None: all; see docs/torch.md

    `forward` moves nothing. `backward` writes the gradient of the hidden vectors and moves the readout: each example as far
    as a step of the readout would, times its weight. A factor of the whole loss does not count, be it 1 / n under gradient
    accumulation or the scale of a GradScaler. After eval() or requires_grad_(False) it writes the gradient and moves nothing.
    The gradient is that of the parameters as backward finds them. Where a graph is kept, each backward moves the readout
    again; a graph of the gradient (create_graph) is refused.

    The readout's parameters are no torch.nn.Parameter: `parameters()`, `to`, `half` and the broadcasts of
    DistributedDataParallel pass them by. In the state_dict they are tensors that share the readout's memory; load_state_dict
    writes it in place. A copy whose parameters() were averaged (AveragedModel) without them refuses to be used.

    anchor  the one Parameter, (1,): whether the readout learns is whether this requires a gradient, which is always 0

    Raises ValueError for another readout and for settings that are none of these.
    """

    def __init__(
        self, readout: Any, *, reduction: str = "mean", ignore_index: int = -100, process_group: Any = None
    ) -> None:
        super().__init__()
        if not isinstance(readout, Base | NeighbourReadout) or isinstance(readout, LabelTreeReadout):
            raise ValueError(
                f"readout: found {type(readout).__name__}, expected a readout of one class an example: TreeReadout, "
                "FullReadout, SampledReadout, NeighbourReadout or one of your own"
            )
        self.readout = readout
        self.reduction = check.choice("reduction", reduction, REDUCTIONS)
        self.ignore_index = check.whole("ignore_index", ignore_index, -(2**63), 2**63 - 1)
        self.process_group = process_group
        self.anchor = torch.nn.Parameter(torch.zeros(1))
        self._learned = False
        self._followed: tuple[Any, int] | None = None

    @property
    def in_features(self) -> int:
        """Numbers of a hidden vector."""
        return int(self.readout.width)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.readout.classes)

    @property
    def rate(self) -> float:
        """The step of the readout's optimiser; may be set between two calls."""
        return float(self.readout.rate)

    @rate.setter
    def rate(self, value: float) -> None:
        self.readout.rate = value

    @property
    def rate_scale(self) -> float:
        """By which the rate is multiplied, for schedules; may be set between two calls."""
        return float(self.readout.rate_scale)

    @rate_scale.setter
    def rate_scale(self, value: float) -> None:
        self.readout.rate_scale = check.number("rate_scale", value, 0)

    def follow(self, optimiser: Any, group: int = 0) -> None:
        """Have each backward set `rate_scale` to the lr of a group of an optimiser of PyTorch over its highest.

        The highest is the group's max_lr or else initial_lr, which schedulers of PyTorch write there; without a scheduler the
        scale is 1. None for the optimiser ends it. A copy of the loss follows none.
        """
        if optimiser is not None and not isinstance(optimiser, torch.optim.Optimizer):
            raise ValueError(f"optimiser: found {type(optimiser).__name__}, expected a torch.optim.Optimizer")
        self._followed = None if optimiser is None else (optimiser, check.whole("group", group, 0))

    def learning(self) -> None:
        """Get ready to move: unchecked, backward calls it."""
        if not self._learned:
            self._learned = True
            self.anchor.data.fill_(MOVED)
        if self._followed:
            optimiser, group = self._followed
            at = optimiser.param_groups[group]
            self.rate_scale = float(at["lr"] / at.get("max_lr", at.get("initial_lr", at["lr"])))

    # What is around it is compiled; the graph breaks here.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, hidden: Any, target: Any, weight: Any = None) -> Judged:
        """The log-probability of each target, and the loss in nats.

        hidden  (..., D) float32, float16, bfloat16 or float64, with any strides; computed in float32
        target  (...) int64 or int32
        weight  (...) floating, of at least 0: multiplies the loss of each example; a mean is divided by their sum

        Returns (output, loss), float32: output (...), 0 where a target is ignored; loss a number, or (...) for "none", and 0
        where no example has a class. Both can be differentiated.

        Raises ValueError for another shape or dtype, IndexError for a class out of range, FloatingPointError for hidden
        vectors or losses that are not finite, RuntimeError for a copy that was averaged. `backward` raises FloatingPointError
        for an upstream gradient that is not finite, ValueError for one below 0 where the readout learns. Nothing has moved
        then.
        """
        weights, asked = self._asked(hidden, target, weight)
        rows = hidden.reshape(-1, self.in_features)
        nats, losses = Nats.apply(rows, weights, self.anchor, self, asked)
        return Judged((0 - nats).reshape(target.shape), self._reduced(losses.reshape(target.shape), asked))

    def log_prob(self, hidden: Any) -> Any:
        """The log-probabilities of all classes, (..., V) float32; a backward through them raises RuntimeError."""
        return self._answered(hidden, lambda rows: (self.readout.scores(rows),))[0]

    def predict(self, hidden: Any) -> Any:
        """The most likely class of each hidden vector, (...) int64."""
        return self.best(hidden, 1)[0][..., 0]

    def best(self, hidden: Any, k: int, exclude: Any = None) -> tuple[Any, Any]:
        """The k most likely classes of each hidden vector, most likely first: ids (..., k) int64, log-probabilities (..., k).

        A backward through the log-probabilities raises RuntimeError.
        exclude  scipy.sparse CSR (N, V), a row a hidden vector: classes that are left out; see hybrid.readout.Readout.best
        """
        ids, log_probs = self._answered(hidden, lambda rows: self.readout.best(rows, k, exclude))
        return ids.long(), log_probs

    def extra_repr(self) -> str:
        """What print shows of it."""
        on = self.readout.backend.name
        return f"{self.in_features}, {self.n_classes}, rate={self.rate:g}, reduction={self.reduction!r}, on={on!r}"

    def _asked(self, hidden: Any, target: Any, weight: Any) -> tuple[Any, Asked]:
        """The weights (N,) of the examples, and what is asked about them, once all is checked."""
        self._check_whole()
        shape = checked_hidden(hidden, self.in_features).shape[:-1]
        classes = checked_target(target, shape, self.n_classes, self.ignore_index).to(hidden.device)
        weights = checked_weight(weight, shape, hidden.device)
        missing = classes == self.ignore_index
        kept = (~missing).nonzero()[:, 0] if missing.any() else None
        classes = classes if kept is None else classes[kept]
        total = self._total(classes, weights if weights is None or kept is None else weights[kept])
        return weights, Asked(kept, classes.to(torch.int32), total, self.training and self.anchor.requires_grad)

    def _total(self, classes: Any, weights: Any) -> Any:
        """By which a mean is divided."""
        if self.reduction != "mean":
            return None
        rows = torch.tensor(len(classes), dtype=torch.float32, device=classes.device)
        total = rows if weights is None else weights.sum()
        return total if total > 0 else None

    def _reduced(self, losses: Any, asked: Asked) -> Any:
        if self.reduction == "none":
            return losses
        return losses.sum() if asked.total is None else losses.sum() / asked.total

    def _answered(self, hidden: Any, answer: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        """What the readout answers about hidden vectors, as tensors of their leading shape."""
        self._check_whole()
        rows = checked_hidden(hidden, self.in_features).reshape(-1, self.in_features).to(torch.float32)
        check_finite(rows.detach())
        found = Unlearned.apply(rows, self, lambda rows: tuple(there(array, rows) for array in answer(arrived(rows))))
        return tuple(array.reshape(*hidden.shape[:-1], array.shape[1]) for array in found)

    def _check_whole(self) -> None:
        """RuntimeError where the parameters() of a net that learns were written into this copy, and its readout was not."""
        if not self._learned and 0 < self.anchor.item() <= 2 * MOVED:
            raise RuntimeError(
                f"{type(self).__name__}: found the parameters() of another net copied or averaged in (AveragedModel, EMA), "
                "expected its readout with them, which is in the state_dict only: load an average of state_dict(), "
                "see docs/torch.md"
            )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        del destination[prefix + "anchor"]
        destination.update({prefix + name: value for name, value in entries(self.readout).items()})

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        names = set(entries(self.readout))
        given = {key.removeprefix(prefix): state_dict[key] for key in state_dict if key.startswith(prefix)}
        if strict:
            missing_keys += [prefix + name for name in sorted(names - given.keys())]
            unexpected_keys += [prefix + name for name in given if name not in names]
        given = {name: value for name, value in given.items() if name in names}
        found = faults(self.readout, given, prefix)
        error_msgs += found
        if given and not found:
            fill(self.readout, given)
            if not self._learned:
                self.anchor.data.zero_()

    def __getstate__(self) -> dict[str, Any]:
        """A copy belongs to no group of processes, follows no optimiser and has not learned by itself."""
        kept: dict[str, Any] = super().__getstate__()
        anchor = torch.nn.Parameter(self.anchor.detach() * (not self._learned), self.anchor.requires_grad)
        own = {"process_group": None, "_learned": False, "_followed": None}
        return kept | own | {"_parameters": kept["_parameters"] | {"anchor": anchor}}

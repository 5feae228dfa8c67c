"""A readout as the last layer of a PyTorch net: a loss that updates the readout's parameters during backward."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as processes

from .. import backend, check, trees
from ..optimisers import ROWS, Optimiser, taken
from ..readout import FullReadout, HeadReadout, NeighbourReadout, SampledReadout, TreeReadout
from ..readout.base import Base

REDUCTIONS = ("mean", "sum", "none")
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
WHOLE = (torch.int64, torch.int32)
LARGEST = torch.finfo(torch.float32).max
MOVED = 2.0**-20  # the anchor of an updated readout; too small to show in a norm of a net's parameters


class Judged(NamedTuple):
    """The result of a loss.

    output  (...) float32, the log-probability of each target
    loss    in nats, reduced
    """

    output: Any
    loss: Any


class Labelled(NamedTuple):
    """The rows of a batch that have a class.

    kept    (M,) int64, their numbers; None: all N rows
    target  (M,) int32
    total   for a mean: the number of those rows, or the sum of their weights; None for another reduction, and for 0
    learns  True: backward updates the readout
    """

    kept: Any
    target: Any
    total: Any
    learns: bool

    def of(self, rows: Any) -> Any:
        """Returns the rows (N, ...) that have a class: (M, ...), without a copy if all have."""
        return rows if self.kept is None else rows[self.kept]

    def among(self, values: Any, rows: int) -> Any:
        """Inverts `of`: (N, ...) with values (M, ...) in their positions and 0 elsewhere."""
        if self.kept is None:
            return values
        every = values.new_zeros((rows, *values.shape[1:]))
        every[self.kept] = values
        return every


class ReadoutLoss(torch.nn.Module):
    """A readout of hybrid as the last layer of a PyTorch net, called as torch.nn.AdaptiveLogSoftmaxWithLoss.

    readout        a readout of hybrid for one class per example, or a custom one; its own step updates its parameters
    reduction      "mean" (of the examples that have a class), "sum" or "none"
    ignore_index   the target of an example without a class
    process_group  of torch.distributed: the processes that train together, None: all; see docs/plug-in.md

    `forward` updates nothing. `backward` writes the gradient of the hidden vectors and updates the readout as its own step
    would, with each example times its weight. A factor of the whole loss does not count, be it 1 / n under gradient
    accumulation or the scale of a GradScaler. After eval() or requires_grad_(False) it writes the gradient and updates nothing.
    The gradient is that of the parameters at the time of backward. With retain_graph, each backward updates the readout again;
    a graph of the gradient (create_graph) is rejected.

    The readout's parameters are no torch.nn.Parameter: `parameters()`, `to`, `half` and the broadcasts of
    DistributedDataParallel ignore them. In the state_dict they are tensors that share the readout's memory; load_state_dict
    writes it in place. A copy whose parameters() were averaged (AveragedModel) without them rejects calls.

    anchor  the only Parameter, (1,): the readout learns if it requires a gradient, which is always 0

    Raises ValueError for another readout and for invalid settings.
    """

    def __init__(self, readout: Any, *, reduction: str = "mean", ignore_index: int = -100, process_group: Any = None):
        super().__init__()
        if not isinstance(readout, Base | NeighbourReadout):
            raise ValueError(
                f"readout: found {type(readout).__name__}, expected a readout of one class per example: TreeReadout, "
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
        """The number of dimensions of a hidden vector."""
        return int(self.readout.width)

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.readout.classes)

    @property
    def rate(self) -> float:
        """The step size of the readout's optimiser; may be set between two calls."""
        return float(self.readout.rate)

    @rate.setter
    def rate(self, value: float) -> None:
        self.readout.rate = value

    @property
    def rate_scale(self) -> float:
        """The multiplier of the rate, for schedules; may be set between two calls."""
        return float(self.readout.rate_scale)

    @rate_scale.setter
    def rate_scale(self, value: float) -> None:
        self.readout.rate_scale = check.number("rate_scale", value, 0)

    def follow(self, optimiser: Any, group: int = 0) -> None:
        """Makes each backward set `rate_scale` to the lr of a group of a PyTorch optimiser over its highest.

        The highest is the group's max_lr or else initial_lr, which PyTorch's schedulers write there; without a scheduler the
        scale is 1. None for the optimiser ends it. A copy of the loss follows none.
        """
        if optimiser is not None and not isinstance(optimiser, torch.optim.Optimizer):
            raise ValueError(f"optimiser: found {type(optimiser).__name__}, expected a torch.optim.Optimizer")
        self._followed = None if optimiser is None else (optimiser, check.whole("group", group, 0))

    # The code around it is compiled; the graph breaks here.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, hidden: Any, target: Any, weight: Any = None) -> Judged:
        """Returns the log-probability of each target, and the loss in nats.

        hidden  (..., D) float32, float16, bfloat16 or float64, with any strides; computed in float32
        target  (...) int64 or int32
        weight  (...) floating, of at least 0: multiplies the loss of each example; a mean is divided by their sum

        Returns (output, loss), float32: output (...), 0 for ignored targets; loss a number, or (...) for "none", and 0 if no
        example has a class. Both are differentiable.

        Raises ValueError for another shape or dtype, IndexError for a class out of range, FloatingPointError for hidden vectors
        or losses that are not finite, RuntimeError for an averaged copy. `backward` raises FloatingPointError for an upstream
        gradient that is not finite, and ValueError for one below 0 if the readout learns. Nothing is then updated.
        """
        self._check_averaged()
        shape = self._checked(hidden).shape[:-1]
        _check("target", target, WHOLE, shape, f"int64 or int32 {tuple(shape)}, one class a hidden vector")
        rows, classes = hidden.reshape(-1, self.in_features), target.reshape(-1).to(hidden.device)
        least, most, low, high = _ends(classes, rows.detach())
        weights = _weights(weight, shape, hidden.device)
        complete = 0 <= least and most < self.n_classes and not 0 <= self.ignore_index < self.n_classes
        if not complete:
            _check_classes(target, self.n_classes, self.ignore_index)
        labelled = self._labelled(classes, weights, complete)
        if not -LARGEST <= low <= high <= LARGEST:
            _check_finite(labelled.of(rows.detach()).to(torch.float32), labelled.kept)
        nats, losses = Nats.apply(rows, weights, self.anchor, self, labelled)
        loss = losses.reshape(shape) if self.reduction == "none" else losses.reshape(shape).sum()
        return Judged((0 - nats).reshape(shape), loss if labelled.total is None else loss / labelled.total)

    def log_prob(self, hidden: Any) -> Any:
        """Returns the log-probabilities of all classes, (..., V) float32; a backward through them raises RuntimeError."""
        return self._answered(hidden, lambda rows: (self.readout.scores(rows),))[0]

    def predict(self, hidden: Any) -> Any:
        """Returns the most likely class of each hidden vector, (...) int64."""
        return self.best(hidden, 1)[0][..., 0]

    def best(self, hidden: Any, k: int, exclude: Any = None) -> tuple[Any, Any]:
        """Returns the k most likely classes of each hidden vector: ids (..., k) int64, log-probabilities (..., k), descending.

        A NeighbourReadout returns logits instead. A backward through the log-probabilities raises RuntimeError.
        exclude  scipy.sparse CSR (N, V), a row per hidden vector: excluded classes; see hybrid.readout.Readout.best
        """
        ids, log_probs = self._answered(hidden, lambda rows: self.readout.best(rows, k, exclude))
        return ids.long(), log_probs

    def extra_repr(self) -> str:
        """Returns the text that print shows."""
        on = self.readout.backend.name
        return f"{self.in_features}, {self.n_classes}, rate={self.rate:g}, reduction={self.reduction!r}, on={on!r}"

    def learn(self, hidden: Any, target: Any, factor: Any) -> Any:
        """Updates the readout by the rows of all processes; returns the gradient of the own rows, times factor. Unchecked.

        hidden (M, D) float32, target (M,) int32, factor (M,) float32: multiplier of each row's update; None: 1.
        """
        if not self._learned:
            self._learned = True
            self.anchor.data.fill_(MOVED)
        if self._followed:
            optimiser, group = self._followed
            at = optimiser.param_groups[group]
            self.rate_scale = float(at["lr"] / at.get("max_lr", at.get("initial_lr", at["lr"])))
        hidden, target, factor, own = _of_all_processes(hidden, target, factor, self.process_group)
        if factor is not None and (factor == 1).all():
            factor = None  # so that the bytes are those of the readout's own step
        return place(self.readout, hidden).step(hidden, target, factor)[own]

    def _labelled(self, classes: Any, weights: Any, complete: bool) -> Labelled:
        kept = None
        if not complete and (missing := classes == self.ignore_index).any():
            kept = (~missing).nonzero()[:, 0]
        target, total = classes if kept is None else classes[kept], None
        if self.reduction == "mean":
            total = len(target) if weights is None else (weights if kept is None else weights[kept]).sum()
            total = total if total > 0 else None
        return Labelled(kept, target.to(torch.int32), total, self.training and self.anchor.requires_grad)

    def _answered(self, hidden: Any, answer: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Returns the readout's answers about hidden vectors, as tensors of their leading shape."""
        self._check_averaged()
        rows = self._checked(hidden).reshape(-1, self.in_features).to(torch.float32)
        _check_finite(rows.detach())
        answers = Unlearned.apply(rows, self, lambda rows: tuple(_tensor(one, rows) for one in answer(_array(rows))))
        return tuple(one.reshape(*hidden.shape[:-1], one.shape[1]) for one in answers)

    def _checked(self, hidden: Any) -> Any:
        """Returns `hidden`; ValueError unless it is a floating tensor (..., width)."""
        width = self.in_features
        shape = (*getattr(hidden, "shape", ())[:-1], width)
        return _check("hidden", hidden, FLOATS, shape, f"a floating tensor (..., {width}): {width} numbers a vector")

    def _check_averaged(self) -> None:
        """Raises RuntimeError if the parameters() of a net in training were copied here without its readout."""
        if not self._learned and 0 < self.anchor.item() <= 2 * MOVED:
            raise RuntimeError(
                f"{type(self).__name__}: found the parameters() of another net copied or averaged in (AveragedModel, EMA), "
                "expected its readout with them, which is in the state_dict only: load an average of state_dict(), "
                "see docs/plug-in.md"
            )

    def _entries(self) -> dict[str, Any]:
        """Returns the readout's parameters, as tensors that share its memory (for a GPU: a current copy), and its numbers."""
        arrays = {name: torch.from_numpy(array) for name, array in self.readout.parameters().items()}
        return arrays | {name: torch.tensor(number) for name, number in self.readout.state().items()}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        del destination[prefix + "anchor"]
        destination.update({prefix + name: value for name, value in self._entries().items()})

    def _load_from_state_dict(self, state_dict: Any, prefix: str, _: Any, strict: bool, *lists: list[str]) -> None:
        own, (missing, unexpected, errors) = self._entries(), lists
        given = {key.removeprefix(prefix): state_dict[key] for key in state_dict if key.startswith(prefix)}
        if strict:
            missing += [prefix + name for name in sorted(own.keys() - given.keys())]
            unexpected += [prefix + name for name in given if name not in own]
        given = {name: value for name, value in given.items() if name in own}
        faults = _faults(own, given, prefix)
        errors += faults
        if given and not faults:
            for name, array in self.readout.parameters().items():
                if name in given:
                    np.copyto(array, given[name].detach().cpu().to(own[name].dtype).numpy())
            state = self.readout.state()
            self.readout.restore(state | {name: given[name].item() for name in state if name in given})
            if not self._learned:
                self.anchor.data.zero_()

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state of a copy, which has no process group, follows no optimiser and has not learned by itself."""
        kept: dict[str, Any] = super().__getstate__()
        anchor = torch.nn.Parameter(self.anchor.detach() * (not self._learned), self.anchor.requires_grad)
        own = {"process_group": None, "_learned": False, "_followed": None}
        return kept | own | {"_parameters": kept["_parameters"] | {"anchor": anchor}}


class MadeLoss(ReadoutLoss):
    """A loss that creates its readout; arguments as in TreeLoss."""

    _made: Callable[..., Any]  # (counts, width, *, backend, **settings) -> the readout

    def __init__(
        self,
        in_features: int,
        classes: Any,
        *,
        reduction: str = "mean",
        ignore_index: int = -100,
        process_group: Any = None,
        device: Any = "cpu",
        optimiser: str | Optimiser = "adagrad",
        **settings: Any,
    ) -> None:
        name = f"cuda:{torch.cuda.current_device()}" if str(device) == "cuda" else str(device)
        counts = classes.detach().cpu().numpy() if isinstance(classes, torch.Tensor) else classes
        own = taken(optimiser, ROWS)
        if own.rate is None:  # Adagrad's best is about the same under Adam and SGD of the net, that of plain SGD is not
            own = dataclasses.replace(own, rate=0.1 if own.name == "sgd" else 0.3)
        settings |= {"optimiser": own, "backend": backend.choose(name)}
        readout = self._made(counts, in_features, **settings)
        super().__init__(readout, reduction=reduction, ignore_index=ignore_index, process_group=process_group)


class TreeLoss(MadeLoss):
    """Hierarchical softmax: the cost of a class is the length of its path in a tree, log2 V rows or fewer.

    in_features  D, dimensions of a hidden vector
    classes      class counts, (V,), for a Huffman tree; or the number of classes, for a balanced one
    reduction, ignore_index, process_group  as in ReadoutLoss
    device       the device of the tree: "cpu", or "cuda:0" (torch.device too)
    optimiser    update rule of the rows of the tree: "adagrad", "row-adagrad", "sgd", or one with a rate, such as
                 hybrid.Adagrad(0.2) (default: 0.3, of "sgd" 0.1)
    settings     of hybrid.TreeReadout: tree, mode, batch, biases, ...

    Raises the errors of hybrid.TreeReadout, and ValueError for an unavailable device.
    """

    @staticmethod
    def _made(counts: Any, width: int, **settings: Any) -> Any:
        shape = "balanced" if isinstance(counts, int | np.integer) else "huffman"
        return TreeReadout(counts, width, **{"tree": shape, **settings})


class FullLoss(MadeLoss):
    """The full softmax, without an array of batch by classes: every class costs a row.

    Arguments as in TreeLoss; settings of hybrid.FullReadout: batch, ...
    """

    _made = FullReadout


class HeadLoss(MadeLoss):
    """A full softmax over the most frequent classes and clusters of the others, with a softmax in each cluster.

    Arguments as in TreeLoss; settings of hybrid.HeadReadout: parts, batch, ...
    """

    _made = HeadReadout


class SampledLoss(MadeLoss):
    """Sampled softmax or negative sampling: the classes of the batch and some drawn ones cost a row each.

    Arguments as in TreeLoss, but the only device is "cpu"; settings of hybrid.SampledReadout: loss, batch, seed, ...

    In training mode output and loss are over the drawn classes, so the loss is less than over all. After eval() they are exact
    over all V classes, at the cost of V rows. Both forward and backward use the draws of the next step.
    """

    _made = SampledReadout


# Inputs


def _ends(*tensors: Any) -> list[float]:
    """Returns the least and the greatest number of each tensor, NaN if it has one, 0 if it is empty; one copy from a GPU."""
    ends = [end.double() for one in tensors for end in (torch.aminmax(one) if one.numel() else one.new_zeros(2))]
    return torch.stack(ends).tolist()


def _check_classes(value: Any, classes: int, ignored: int) -> None:
    """Raises IndexError for a class out of range, unless it is `ignored`."""
    bad = ((value < 0) | (value >= classes)) & (value != ignored)
    if bad.any():
        place = bad.nonzero()[0].tolist()
        at = f"[{', '.join(map(str, place))}]" if place else ""
        raise IndexError(
            f"target{at}: found {value[tuple(place)].item()}, expected 0 to {classes - 1}, or {ignored} where there is none"
        )


def _weights(value: Any, shape: Any, device: Any) -> Any:
    """Returns the weights in one row, (N,) float32 on the device, None for None; ValueError unless finite and at least 0."""
    if value is None:
        return None
    _check("weight", value, FLOATS, shape, f"a floating tensor {tuple(shape)}, one number an example")
    row = value.reshape(-1).to(device=device, dtype=torch.float32)
    bad = ~((row >= 0) & (row < math.inf))
    if bad.any():
        at = int(bad.int().argmax())
        raise ValueError(f"weight[{at}]: found {row[at].item()}, expected a finite number of at least 0")
    return row


def _check(name: str, value: Any, dtypes: tuple[Any, ...], shape: Any, expected: str) -> Any:
    """Returns `value`; ValueError unless it is a tensor of one of these dtypes and of this shape."""
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"{name}: found {type(value).__name__}, expected {expected}; see torch.as_tensor({name})")
    if value.dtype not in dtypes or value.shape != shape:
        remedy = f"; {name}.{'long' if dtypes is WHOLE else 'float'}() makes one" if value.shape == shape else ""
        dtype = str(value.dtype).removeprefix("torch.")
        raise ValueError(f"{name}: found {dtype} {tuple(value.shape)}, expected {expected}{remedy}")
    return value


def _check_finite(rows: Any, kept: Any = None) -> None:
    """Raises FloatingPointError, naming the first bad row (of `kept`), for a NaN or infinity in rows (M, D)."""
    if not all(map(math.isfinite, _ends(rows))):
        row = int(torch.isfinite(rows).all(dim=1).int().argmin())
        row = row if kept is None else int(kept[row])
        raise FloatingPointError(f"hidden[{row}]: found NaN or infinity, expected numbers; a lower rate may help")


def _finite(name: str, values: Any) -> Any:
    """Returns `values` (M,); FloatingPointError, naming the first bad one, unless all are finite."""
    good = torch.isfinite(values)
    if not good.all():
        at = int(good.int().argmin())
        raise FloatingPointError(f"{name}[{at}]: found {values[at].item()}; a lower rate may help")
    return values


def _faults(own: Mapping[str, Any], given: Mapping[str, Any], prefix: str) -> list[str]:
    """Returns the reasons, a sentence each, why state_dict entries cannot be loaded; a missing entry is no fault."""
    faults = []
    for name, value in given.items():
        shape = tuple(own[name].shape)
        if not isinstance(value, torch.Tensor):
            faults.append(f"{prefix}{name}: found {type(value).__name__}, expected a tensor {shape}")
        elif value.shape != shape:
            faults.append(f"{prefix}{name}: found the shape {tuple(value.shape)}, expected {shape}")
        elif not all(map(math.isfinite, _ends(value))):
            faults.append(f"{prefix}{name}: found NaN or infinity, expected finite numbers")
        elif name.endswith("squares") and value.numel() and value.amin() < 0:  # their square root is taken
            faults.append(f"{prefix}{name}: found {value.amin().item()}, expected numbers of at least 0")
    if faults:
        return faults
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


# The loss of each row as an autograd function: its backward is the readout's step.


class Nats(torch.autograd.Function):
    """The loss -log p(target | hidden) of each row, (N,) float32, and the same times its weight; 0 for a row without a class.

    hidden (N, D); weight (N,) float32, or None: 1; module: a ReadoutLoss. anchor is its parameter, whose gradient is 0; it
    makes autograd call backward even if nothing else needs a gradient.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Any, weight: Any, anchor: Any, module: Any, labelled: Labelled) -> Any:
        """Returns the losses; nothing is updated. FloatingPointError for losses that are not finite."""
        rows = labelled.of(hidden).to(torch.float32)
        readout, target = place(module.readout, rows), labelled.target
        losses = readout.losses(rows, target) if labelled.learns else -readout.log_prob(rows, target)
        nats = labelled.among(_finite("loss", losses), len(hidden))
        ctx.save_for_backward(hidden, weight, nats)
        ctx.module, ctx.labelled = module, labelled
        ctx.set_materialize_grads(False)
        return nats, nats.clone() if weight is None else weight * nats

    @staticmethod
    def backward(ctx: Any, of_nats: Any, of_losses: Any) -> Any:
        """Returns the gradients of the hidden vectors and of the weights; updates a readout that learns.

        Raises RuntimeError if a graph of the gradient is requested, FloatingPointError for an upstream gradient that is not
        finite, ValueError for one below 0 if the readout learns; nothing is then updated.
        """
        module, labelled = ctx.module, ctx.labelled
        if torch.is_grad_enabled():
            raise RuntimeError(
                f"{type(module).__name__}: found create_graph=True, expected a first derivative: the readout moves in "
                "backward, and its gradient cannot be differentiated again"
            )
        hidden, weight, nats = ctx.saved_tensors
        rows = labelled.of(hidden).to(torch.float32)
        common = _common(of_nats, of_losses, weight)
        if not common:
            of_nats, of_losses = (nats.new_zeros(nats.shape) if of is None else of for of in (of_nats, of_losses))
            of_nats, of_losses = (_finite("upstream gradient", values) for values in (of_nats, of_losses))
        if common:
            learn = module.learn if labelled.learns else place(module.readout, rows).still
            grad = learn(rows, labelled.target, None) * common
        elif labelled.learns:
            scale = _scale(labelled.of(of_nats + of_losses))
            factor = _factor(of_nats / scale, of_losses / scale, weight)
            if (factor < 0).any():
                row = int((factor < 0).int().argmax())
                raise ValueError(
                    f"upstream gradient[{row}]: found one below 0, expected at least 0: a readout only learns to raise the "
                    "probability of a target; eval() or requires_grad_(False) keeps it still, and takes any sign"
                )
            grad = module.learn(rows, labelled.target, labelled.of(factor)) * scale
        else:
            factor = _factor(of_nats, of_losses, weight)
            grad = place(module.readout, rows).still(rows, labelled.target, None) * labelled.of(factor)[:, None]
        of_hidden = labelled.among(grad.to(hidden.dtype), len(hidden))
        of_anchor = torch.zeros_like(module.anchor) if ctx.needs_input_grad[2] else None
        return of_hidden, None if weight is None else of_losses * nats, of_anchor, None, None


class Unlearned(torch.autograd.Function):
    """A readout's answers about hidden vectors, which raise if they are differentiated."""

    @staticmethod
    def forward(ctx: Any, hidden: Any, module: Any, answer: Any) -> Any:
        ctx.module, answers = module, answer(hidden)
        ctx.mark_non_differentiable(*(one for one in answers if not one.is_floating_point()))
        return answers

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        raise RuntimeError(
            f"{type(ctx.module).__name__}: found a backward through log_prob or best, expected one through the output or loss "
            "of a call, which have a gradient; log_prob(hidden).detach() takes these as numbers"
        )


def _common(of_nats: Any, of_losses: Any, weight: Any) -> float | None:
    """Returns the gradient of every row's loss, above 0, if PyTorch has one number for all: that of a mean or a sum."""
    if weight is None and of_nats is None and of_losses is not None and len(of_losses) and of_losses.stride() == (0,):
        gradient = of_losses[0].item()
        return gradient if 0 < gradient < math.inf else None
    return None


def _scale(both: Any) -> Any:
    """Returns the factor of the loss: the mean magnitude of the nonzero upstream gradients (M,)."""
    some = both[both != 0]
    if not len(some):
        return both.new_tensor(1)
    least, most = some.aminmax()
    # x / x is exactly 1: the multiplier of a row is then exactly its weight
    return least.abs() if least == most else some.abs().mean()


def _factor(of_nats: Any, of_losses: Any, weight: Any) -> Any:
    """Returns the gradient of each row's loss, from those of its nats and of its nats times its weight."""
    return of_nats + (of_losses if weight is None else weight * of_losses)


# Access of a readout to tensors: as NumPy's arrays on the host, or in the memory of the readout's own GPU


def place(readout: Any, tensor: Any) -> "Host | Beside":
    """Returns the access of this readout to tensors on the device of this one."""
    device = readout.backend.device
    beside = not device.host_memory and device.name == str(tensor.device)
    return Beside(readout) if beside and not getattr(readout, "on_host", False) else Host(readout)


class Host:
    """Access through NumPy's arrays; tensors of the host share their memory with them.

    Tensors of a GPU are copied through page-locked memory. A readout on a GPU copies host tensors itself.
    """

    def __init__(self, readout: Any):
        self._readout = readout

    def log_prob(self, hidden: Any, target: Any) -> Any:
        """Returns the log-probability of each row's target, (M,) float32; hidden (M, D) float32, target (M,) int32."""
        return _tensor(self._readout.log_prob(_array(hidden), _array(target)), hidden)

    def losses(self, hidden: Any, target: Any) -> Any:
        """Returns the loss of each row in the next step, (M,) float32; nothing is updated."""
        return _tensor(self._readout.losses(_array(hidden), _array(target)), hidden)

    def step(self, hidden: Any, target: Any, weight: Any) -> Any:
        """Learns, and returns the gradient of each row, times its weight (M,) float32 (None: 1)."""
        return self._each(self._readout.step, hidden, target, weight)

    def still(self, hidden: Any, target: Any, weight: Any) -> Any:
        """Returns the result of `step`, but updates nothing."""
        return self._each(self._readout.dry_run, hidden, target, weight)

    def _each(self, call: Callable[..., Any], hidden: Any, target: Any, weight: Any) -> Any:
        rows, classes = _array(hidden), _array(target)
        weights = None if weight is None else _array(weight)
        grad = torch.empty(rows.shape, dtype=torch.float32, device="cpu", pin_memory=hidden.is_cuda)
        written = grad.numpy()
        for first in range(0, len(rows), self._readout.batch):
            part = slice(first, first + self._readout.batch)
            call(written[part], rows[part], classes[part], None if weights is None else weights[part])
        return grad.to(hidden.device, non_blocking=True)


class Beside:
    """Access on the GPU of the tensors: the readout's kernels use their memory, without a copy.

    They run after the work so far on PyTorch's current stream, whose later work waits for them. Methods as in Host.
    """

    def __init__(self, readout: Any):
        self._readout = readout

    def log_prob(self, hidden: Any, target: Any) -> Any:
        out = hidden.new_empty(len(hidden))
        self._each(self._readout.judge, out, hidden, target)
        return out

    def losses(self, hidden: Any, target: Any) -> Any:
        return -self.log_prob(hidden, target)

    def step(self, hidden: Any, target: Any, weight: Any) -> Any:
        grad, loss = hidden.new_empty(hidden.shape), hidden.new_empty(len(hidden))
        self._each(self._readout.learn, grad, loss, hidden, target, *([] if weight is None else [weight]))
        return grad

    def still(self, hidden: Any, target: Any, weight: Any) -> Any:
        with self._readout.dry_runs():
            return self.step(hidden, target, weight)

    def _each(self, work: Callable[..., None], *tensors: Any) -> None:
        if not len(tensors[0]):
            return
        stream = torch.cuda.current_stream(tensors[0].device).cuda_stream
        arrays = [self._readout.backend.device.adopt(tensor.detach().contiguous()) for tensor in tensors]
        for first in range(0, len(tensors[0]), self._readout.batch):
            part = slice(first, first + self._readout.batch)
            self._readout.on_stream(stream, work, *(array[part] for array in arrays))


def _array(tensor: Any) -> Any:
    """Returns a tensor as an array in C order: its own memory if it is on the host and contiguous."""
    tensor = tensor.detach().contiguous()
    if tensor.is_cuda:
        locked = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
        locked.copy_(tensor, non_blocking=True)
        torch.cuda.current_stream(tensor.device).synchronize()
        tensor = locked
    return tensor.cpu().numpy()


def _tensor(array: np.ndarray, beside: Any) -> Any:
    return torch.from_numpy(array).to(beside.device)


def _of_all_processes(hidden: Any, target: Any, factor: Any, group: Any) -> tuple[Any, Any, Any, slice]:
    """Returns the rows of all processes that train one net, in rank order, and the slice of the own ones.

    All processes therefore make the same step, as one process would. All must call it equally often, with or without rows.
    """
    if not (processes.is_available() and processes.is_initialized()) or processes.get_world_size(group) == 1:
        return hidden, target, factor, slice(None)
    rows, width = hidden.shape
    factor = hidden.new_ones(rows) if factor is None else factor
    many = [torch.empty(1, dtype=torch.int64, device=hidden.device) for _ in range(processes.get_world_size(group))]
    processes.all_gather(many, torch.tensor([rows], device=hidden.device), group=group)
    sizes = [int(size) for size in many]
    packed = hidden.new_zeros((max(sizes), width + 2), dtype=torch.int32)  # as bits, since a copy must not round
    bits = [hidden.view(torch.int32), target[:, None], factor.view(torch.int32)[:, None]]
    packed[:rows] = torch.cat(bits, dim=1)
    parts = [torch.empty_like(packed) for _ in sizes]
    processes.all_gather(parts, packed, group=group)
    every = torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])
    hidden, target, factor = (every[:, columns].contiguous() for columns in (slice(width), width, width + 1))
    first = sum(sizes[: processes.get_rank(group)])
    return hidden.view(torch.float32), target, factor.view(torch.float32), slice(first, first + rows)

"""What all losses share: a readout as the last layer of a PyTorch net, which moves its own parameters during backward."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from .. import check
from ..readout import LabelTreeReadout, NeighbourReadout
from ..readout.base import Base
from . import asked as ask
from . import state
from .asked import Asked
from .nats import Nats, Unlearned
from .places import arrived, there

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
        shape = ask.hidden(hidden, self.in_features).shape[:-1]
        classes = ask.target(target, shape, self.n_classes, self.ignore_index).to(hidden.device)
        weights = ask.weight(weight, shape, hidden.device)
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
        rows = ask.hidden(hidden, self.in_features).reshape(-1, self.in_features).to(torch.float32)
        ask.finite(rows.detach())
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
        destination.update({prefix + name: value for name, value in state.entries(self.readout).items()})

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
        names = set(state.entries(self.readout))
        given = {key.removeprefix(prefix): state_dict[key] for key in state_dict if key.startswith(prefix)}
        if strict:
            missing_keys += [prefix + name for name in sorted(names - given.keys())]
            unexpected_keys += [prefix + name for name in given if name not in names]
        given = {name: value for name, value in given.items() if name in names}
        found = state.faults(self.readout, given, prefix)
        error_msgs += found
        if given and not found:
            state.fill(self.readout, given)
            if not self._learned:
                self.anchor.data.zero_()

    def __getstate__(self) -> dict[str, Any]:
        """A copy belongs to no group of processes, follows no optimiser and has not learned by itself."""
        kept: dict[str, Any] = super().__getstate__()
        anchor = torch.nn.Parameter(self.anchor.detach() * (not self._learned), self.anchor.requires_grad)
        own = {"process_group": None, "_learned": False, "_followed": None}
        return kept | own | {"_parameters": kept["_parameters"] | {"anchor": anchor}}

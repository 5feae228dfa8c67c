"""Output layers and rows on a GPU: the full softmax, the tree and tables of vectors, with Zipf-distributed targets.

Batches are used in turn. A step starts with the cache content of training. The softmax's weights (51 MB) are about as large as
an H200's L2, but its logits are several times that. Of the tables and trees (0.5 to 5 GB) the frequent rows are cached. Only
the rows that a gather reads are all distinct, so that none comes from a cache.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench.gpu.ceilings import PRECISIONS, TOLERANCE, precision
from bench.gpu.machine import Contest, Machine
from bench.harness.measure import near, peer
from hybrid.contract import Learned

WIDTH, BATCH = 128, 1024
QUICK_WIDTH, QUICK_BATCH = 32, 16
CLASSES, QUICK_CLASSES = 100_000, 300  # classes of the full softmax
ROWS, QUICK_ROWS = 1_000_000, 200  # rows of the table; 512 MB
IDS, QUICK_IDS = 65_536, 64  # ids per gather or scatter
TURNS = 8  # distinct batches, used in turn
RATE = 1e-3  # for a gradient summed over the batch


def zipf(rng: np.random.Generator, classes: int, shape) -> np.ndarray:
    """Draws ids by Zipf's law, the lowest the most frequent."""
    chance = np.cumsum(1 / np.arange(1, classes + 1))
    return np.minimum(np.searchsorted(chance / chance[-1], rng.random(shape)), classes - 1).astype(np.int32)


# The full softmax


def softmax(machine: Machine, quick: bool) -> Iterator[Callable[[], Contest]]:
    """Yields factories of the contests of a step in each precision, on both sides."""
    problem = classification(quick)
    for kind in PRECISIONS:
        yield partial(softmax_contest, machine, problem, kind)


def classification(quick: bool) -> "Classification":
    """Returns the problem of all contests of the softmax."""
    return Classification(*((QUICK_CLASSES, QUICK_WIDTH, QUICK_BATCH) if quick else (CLASSES, WIDTH, BATCH)))


class Classification:
    """Weights, batches of hidden vectors and targets, and the first step on the first batch, in float64."""

    def __init__(self, classes: int, width: int, batch: int):
        rng = np.random.default_rng(6)
        self.weights = rng.standard_normal((classes, width), np.float32) * np.float32(0.05)
        self.hidden = rng.standard_normal((TURNS, batch, width), np.float32)
        self.target = zipf(rng, classes, (TURNS, batch))
        self.sample = np.unique([*self.target[0, :50], *np.linspace(0, classes - 1, 50).astype(int)])  # of classes
        self.loss, self.grad, self.learned = self._step()

    def check(self, grad, learned, tolerance: float) -> None:
        """Raises unless these are the gradients (B, D) and, after the step, the weights of the sample."""
        near("gradient of hidden", grad, self.grad, tolerance=tolerance)
        near("weights", learned, self.learned, self.weights[self.sample], tolerance)

    def _step(self, chunk: int = 8192):
        """Computes the step in one pass over chunks of classes; the logits are so small that no exponential overflows."""
        hidden, target = self.hidden[0].astype(np.float64), self.target[0]
        total, pulled = np.zeros(len(hidden)), np.zeros(hidden.shape)
        for first in range(0, len(self.weights), chunk):
            part = self.weights[first : first + chunk].astype(np.float64)
            odds = np.exp(hidden @ part.T)
            total += odds.sum(1)
            pulled += odds @ part
        own, some = (self.weights[ids].astype(np.float64) for ids in (target, self.sample))
        miss = np.exp(hidden @ some.T) / total[:, None] - (target[:, None] == self.sample)
        loss = np.log(total) - (own * hidden).sum(1)
        return loss, pulled / total[:, None] - own, some - RATE * miss.T @ hidden


def softmax_contest(machine: Machine, problem: Classification, kind: str) -> Contest:
    """Returns ours and PyTorch's at one problem."""
    from gpu import softmax

    classes, width = problem.weights.shape
    batch = problem.target.shape[1]
    params = {"classes": classes, "width": width, "batch": batch, "precision": kind}
    contest = Contest(machine, "softmax.step", params, batch, "examples/s")
    contest.within = precision(machine, kind)
    tolerance = TOLERANCE[kind]
    put, get = machine.device.from_host, machine.device.to_host
    weights = put(problem.weights)
    batches = [(put(hidden), put(target)) for hidden, target in zip(problem.hidden, problem.target, strict=True)]
    grad, loss = machine.device.empty((batch, width), np.float32), machine.device.empty(batch, np.float32)
    work = contest.do(softmax.workspace, batch, width, np.float32)
    turns = itertools.cycle(batches)

    def check():
        near("loss", get(loss), problem.loss, tolerance=tolerance)
        problem.check(get(grad), get(weights)[problem.sample], tolerance)

    contest.ours(lambda: softmax.step(grad, loss, Learned(weights), work, *next(turns), None, RATE), check)
    if machine.torch:
        half = kind == "bf16"
        made = TorchSoftmax(machine.torch, problem, "cuda", half)
        contest.torch("linear + cross_entropy + SGD", made.step, partial(made.check, tolerance))
        if half and (cut := peer("cut_cross_entropy")):
            made = TorchSoftmax(machine.torch, problem, "cuda", half, cut.linear_cross_entropy)
            contest.torch("Cut Cross-Entropy + SGD", made.step, partial(made.check, tolerance))
    return contest


class TorchSoftmax:
    """The softmax in PyTorch: linear, summed cross entropy, autograd, SGD in one kernel.

    half   hidden vectors, weights and logits are rounded to bfloat16, by autocast
    fused  of hidden vectors, weights and targets, in place of linear and cross entropy
    """

    def __init__(self, torch, problem: Classification, place: str, half: bool = False, fused: Callable | None = None):
        self.problem, self.functional = problem, torch.nn.functional
        self._half, self._fused = partial(torch.autocast, place, torch.bfloat16, enabled=half), fused
        self.weights = torch.tensor(problem.weights, device=place, requires_grad=True)
        self.hidden = [torch.tensor(hidden, device=place, requires_grad=True) for hidden in problem.hidden]
        target = [torch.tensor(target, device=place, dtype=torch.int64) for target in problem.target]
        self.turns = itertools.cycle(zip(self.hidden, target, strict=True))
        self.optimiser = torch.optim.SGD([self.weights], lr=RATE, fused=True)
        self.loss = None

    def step(self) -> None:
        """Takes one step on the next batch."""
        hidden, target = next(self.turns)
        self.optimiser.zero_grad()
        hidden.grad = None
        with self._half():
            if self._fused:
                loss = self._fused(hidden.bfloat16(), self.weights.bfloat16(), target, reduction="sum")
            else:
                logits = self.functional.linear(hidden, self.weights)
                loss = self.functional.cross_entropy(logits, target, reduction="sum")
        loss.backward()
        self.optimiser.step()
        self.loss = loss.detach()

    def check(self, tolerance: float) -> None:
        """Raises unless the first step is right; PyTorch keeps only the sum of the losses."""
        near("loss", self.loss.cpu(), self.problem.loss.sum(), tolerance=tolerance)  # type: ignore[attr-defined]
        learned = self.weights.detach()[self.problem.sample.tolist()].cpu()
        self.problem.check(self.hidden[0].grad.cpu(), learned, tolerance)


# Rows


def rows(machine: Machine, quick: bool) -> Iterator[Callable[[], Contest]]:
    """Yields factories of the contests of gather and scatter.

    In a scatter hot rows stay in the cache, as in training; the table is larger than any cache.
    """
    size, width = (QUICK_ROWS, QUICK_WIDTH) if quick else (ROWS, WIDTH)
    rng = np.random.default_rng(7)
    table = rng.standard_normal((size, width), np.float32)
    count = QUICK_IDS if quick else IDS
    different = rng.permutation(size)[: size // count * count].reshape(-1, count).astype(np.int32)
    yield partial(_gather, machine, table, different)
    ids = zipf(rng, size, (TURNS, count))
    yield partial(scatter, machine, table, ids, rng.standard_normal((count, width), np.float32))


def _rows_contest(machine: Machine, work: str, table, ids, moved: float) -> Contest:
    params = {"rows": len(table), "width": table.shape[1], "ids": ids.shape[1]}
    return Contest(machine, work, params, ids.shape[1], "rows/s", moved)


def _gather(machine: Machine, table: np.ndarray, ids: np.ndarray) -> Contest:
    from gpu import rows

    contest = _rows_contest(machine, "rows.gather", table, ids, 8.0 * ids.shape[1] * table.shape[1])
    there, out = machine.device.from_host(table), machine.device.empty((ids.shape[1], table.shape[1]), np.float32)
    turns = itertools.cycle([machine.device.from_host(some) for some in ids])
    contest.ours(
        lambda: rows.gather(out, there, next(turns)),
        lambda: near("rows", machine.device.to_host(out), table[ids[0]], tolerance=0),
    )
    if machine.torch:
        torch = machine.torch
        target, source = torch.empty(out.shape, device="cuda"), torch.as_tensor(there, device="cuda")
        again = itertools.cycle([torch.tensor(some, device="cuda", dtype=torch.int64) for some in ids])
        contest.torch(
            "index_select",
            lambda: torch.index_select(source, 0, next(again), out=target),
            lambda: near("rows", target.cpu(), table[ids[0]], tolerance=0),
        )
    return contest


def scatter(machine: Machine, table: np.ndarray, ids: np.ndarray, grad: np.ndarray) -> Contest:
    """Returns ours and PyTorch's in its deterministic mode, so that both are bit-identical in every run."""
    from gpu import rows

    met, place = np.unique(ids[0], return_inverse=True)
    contest = _rows_contest(machine, "rows.scatter", table, ids, 4.0 * (grad.size + 2 * met.size * table.shape[1]))
    contest.within = _deterministic(machine.torch)
    first = table[met].astype(np.float64)
    expected = first.copy()
    np.add.at(expected, place.ravel(), -RATE * grad.astype(np.float64))
    there, pull = machine.device.from_host(table), machine.device.from_host(grad)
    turns = itertools.cycle([machine.device.from_host(some) for some in ids])
    contest.ours(
        lambda: rows.scatter(Learned(there), next(turns), pull, RATE),
        lambda: near("rows", machine.device.to_host(there)[met], expected, first),
    )
    if machine.torch:
        torch = machine.torch
        target, source = (torch.tensor(array, device="cuda") for array in (table, grad))
        again = itertools.cycle([torch.tensor(some, device="cuda", dtype=torch.int64) for some in ids])
        contest.torch(
            "index_add_",
            lambda: target.index_add_(0, next(again), source, alpha=-RATE),
            lambda: near("rows", target.cpu()[met.tolist()], expected, first),
        )
    return contest


@contextlib.contextmanager
def _deterministic(torch):
    """A context of PyTorch's deterministic mode, without filling fresh memory, which would only cost time."""
    if torch is None:
        yield
        return
    fill = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        torch.utils.deterministic.fill_uninitialized_memory = fill

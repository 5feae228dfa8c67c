"""Steps of a full, a sampled and PyTorch's adaptive softmax, for other benchmarks."""

import functools
import math
import timeit
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bench.harness.measure import Work, peer
from hybrid import SGD, SampledSoftmax
from hybrid.readout import FullReadout, HeadReadout, SampledReadout

Step = Callable[[int], float]  # batch b -> its mean loss before the step

CHUNKS = (64, 128, 256, 512)  # candidate numbers of examples, of which the fastest counts
CUTOFFS, NARROWER = (2_000, 20_000, 200_000), 4  # cutoffs and div_value of the adaptive softmax


class Batches:
    """Hidden vectors and targets as tensors."""

    def __init__(self, hidden: np.ndarray, targets: Iterable[np.ndarray]):
        torch = peer("torch")
        self.hidden = [torch.from_numpy(batch.copy()).requires_grad_() for batch in hidden]
        self.targets = [torch.from_numpy(ids).long() for ids in targets]


def full(batches: Batches, weights: Any, rate: float, loss: Callable[[Any, Any, Any], Any]) -> Step:
    """Returns a full softmax by one of PyTorch's losses, summed over the batch."""
    torch = peer("torch")

    def step(b: int) -> float:
        hidden = batches.hidden[b]
        hidden.grad = weights.grad = None
        found = loss(hidden, weights, batches.targets[b])
        found.backward()
        with torch.no_grad():
            weights.add_(weights.grad, alpha=-rate)
        return float(found.detach()) / len(hidden)

    return step


def cross_entropy(hidden: Any, weights: Any, target: Any) -> Any:
    """Returns the cross entropy from all logits."""
    torch = peer("torch")
    return torch.nn.functional.cross_entropy(torch.nn.functional.linear(hidden, weights), target, reduction="sum")


def chunked(size: int) -> Callable[[Any, Any, Any], Any]:
    """Returns `linear_cross_entropy` in chunks of `size` examples."""
    torch = peer("torch")
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=size)

    def loss(hidden: Any, weights: Any, target: Any) -> Any:
        given = {"reduction": "sum", "options": options}
        return torch.nn.functional.linear_cross_entropy(hidden, weights, target, **given)

    return loss


def adaptive(batches: Batches, classes: int, cutoffs: list[int], rate: float, div_value: float) -> Step:
    """Returns AdaptiveLogSoftmaxWithLoss; div_value: the factor by which each band's vectors are narrower."""
    torch = peer("torch")
    model = torch.nn.AdaptiveLogSoftmaxWithLoss(batches.hidden[0].shape[1], classes, cutoffs, div_value=div_value)
    parameters = list(model.parameters())

    def step(b: int) -> float:
        hidden = batches.hidden[b]
        for tensor in (hidden, *parameters):
            tensor.grad = None
        found = model(hidden, batches.targets[b]).loss
        (found * len(hidden)).backward()
        with torch.no_grad():
            torch._foreach_add_(parameters, [tensor.grad for tensor in parameters], alpha=-rate)
        return float(found.detach())

    return step


def cutoffs(classes: int) -> list[int]:
    """Returns the starts of the bands of the adaptive softmax."""
    return [cut for cut in CUTOFFS if cut < classes] or [classes // 4]


WIDTH, BATCH, RATE, NEGATIVES = 128, 1024, 1e-3, 1024
MOST = 1.5e8  # maximum logits per chunk: more take longer, and gigabytes
Rival = tuple[Step, Callable[[list[float]], None]]  # step, and check of its first losses
BATCHES = 4  # distinct batches


class Task:
    """Hidden vectors, Zipf-distributed targets; weights of all rivals start at 0 with learning rate `rate`."""

    def __init__(self, classes: int, batch: int, threads: int, width: int = WIDTH, rate: float = RATE):
        rng = np.random.default_rng(0)
        self.classes, self.batch, self.threads, self.width, self.rate = classes, batch, threads, width, rate
        drawn = np.exp(rng.random((BATCHES, batch)) * math.log(classes + 1)) - 1
        self.targets = drawn.astype(np.int32).clip(0, classes - 1)
        self.hidden = rng.standard_normal((BATCHES, batch, width), np.float32)

    def work(self, name: str, who: str, params: dict, rival: Rival) -> Work:
        """Returns a work whose turn is one step, on the next batch."""
        step, check = rival
        losses: list[float] = []

        def run() -> None:
            losses.append(step(len(losses) % BATCHES))

        def checked() -> None:
            if not math.isfinite(losses[0]):
                raise AssertionError(f"{who}: loss {losses}")
            check(losses)

        return Work(name, who, params, self.batch, "examples/s", run, checked, threads=self.threads)

    def ours(self, readout: FullReadout | HeadReadout) -> Step:
        """Returns a step of one of our readouts."""
        grad = np.empty((self.batch, self.width), np.float32)
        return lambda b: float(np.mean(readout.step(grad, self.hidden[b], self.targets[b])))

    def full(self) -> Rival:
        """Returns our full softmax."""
        readout = FullReadout(self.classes, self.width, batch=self.batch, optimiser=SGD(self.rate))
        return self.ours(readout), functools.partial(self._check_full, readout.weights)

    def torch(self, loss: Callable) -> Rival:
        """Returns PyTorch's, by one of the losses above."""
        torch = peer("torch")
        torch.set_num_threads(self.threads)
        weights = torch.zeros(self.classes, self.width, requires_grad=True)
        step = full(self.batches, weights, self.rate, loss)
        return step, functools.partial(self._check_full, weights.detach().numpy())

    def best_chunk(self) -> int:
        """Returns the fastest chunk size of PyTorch's `linear_cross_entropy`."""
        torch = peer("torch")
        torch.set_num_threads(self.threads)
        weights = torch.zeros(self.classes, self.width, requires_grad=True)
        seconds = {}
        for size in CHUNKS:
            if size * self.classes <= MOST or size == CHUNKS[0]:
                loss = chunked(size)
                step = full(self.batches, weights, self.rate, loss)
                step(0)
                seconds[size] = min(timeit.repeat(functools.partial(step, 1), number=1, repeat=2))
        return min(seconds, key=lambda size: seconds[size])

    @functools.cached_property
    def batches(self) -> Batches:
        return Batches(self.hidden, self.targets)

    def _check_full(self, weights: np.ndarray, losses: list[float]) -> None:
        """Checks a step from 0, with all probabilities 1 / V, against float64 by hand, for the rows of some targets."""
        np.testing.assert_allclose(losses[0], math.log(self.classes), rtol=1e-5)
        hidden, some = self.hidden[0].astype(float), np.unique(self.targets[0])[:9]
        gradient = hidden.sum(0) / self.classes - np.array([hidden[self.targets[0] == one].sum(0) for one in some])
        expected = -self.rate * gradient
        np.testing.assert_allclose(weights[some], expected, rtol=1e-3, atol=1e-3 * self.rate)

    def sampled(self) -> Rival:
        """Returns our sampled softmax."""
        readout = SampledReadout(
            self.classes,
            self.width,
            batch=self.batch,
            optimiser=SGD(self.rate),
            loss=SampledSoftmax(min(NEGATIVES, self.classes), draws="log-uniform"),
        )
        return self.learns(self.ours(readout))

    def learns(self, step: Step) -> Rival:
        """Returns a rival that other tests check against oracles: here steps on one batch must lower its loss."""

        def check(losses: list[float]) -> None:
            if not (after := [step(0) for _ in range(8)])[-1] < losses[0]:
                raise AssertionError(f"losses of one batch {losses[0]}, then {after}")

        return step, check

    def torch_adaptive(self, cutoffs: list[int], value: float) -> Rival:
        """Returns PyTorch's adaptive softmax; value: the factor by which each band's vectors are narrower."""
        peer("torch").set_num_threads(self.threads)
        return self.learns(adaptive(self.batches, self.classes, cutoffs, self.rate, value))

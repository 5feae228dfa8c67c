"""An LSTM language model in PyTorch with its output layer swapped by one line: tokens per second, memory.

The sizes are those of word_language_model in pytorch/examples: two layers of 200 numbers, 20 streams of text, 35 tokens at a
time, dropout 0.2, SGD, gradients of the LSTM clipped to a norm of 0.25. The input table has sparse gradients under every output
layer: a dense gradient would dominate the cost of the output layers. `python -m bench gpu --only losses` measures the
same net on a GPU.
"""

import concurrent.futures
import functools
import itertools
import math
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import cpu  # noqa: F401  # says how threads wait, before PyTorch reads it

import torch  # isort: skip
from bench.harness.measure import Work, append, made_by, measure, show
from hybrid import SGD
from hybrid.torch import SampledLoss, TreeLoss

MILLION = 1_000_000
FEW = 4  # streams of a dense layer over a million classes: each array of tokens by classes takes 560 MB
TOKENS = 400_000  # number of Zipf ids


def run(arguments) -> None:
    """Measures speed at WikiText-2's vocabulary and at a million classes; memory at a million."""
    tokens = (None if arguments.quick else wikitext()) or zipf(500 if arguments.quick else 33_278, TOKENS)
    million = zipf(5_000 if arguments.quick else MILLION, TOKENS)
    for data in (tokens, million):
        _speed(data, arguments)
    _memory(million, arguments)


# Tokens per second


def _speed(data: Any, arguments) -> None:
    """Measures whole training steps, the rivals in turns."""
    works = [_work(who, head, data, arguments.threads) for who, head in heads().items()]
    records = measure(works, arguments.repeat)
    show(records)
    append(arguments.json, records)


class OnGpu:
    """The contest of a vocabulary on the device of a `bench.gpu.machine.Machine`."""

    def __init__(self, machine: Any, data: "Tokens", threads: int):
        machine.release()
        self._machine, self._data, self._threads = machine, data, threads

    def records(self, repeat: int) -> list[dict]:
        """Checks and measures; returns one record per output layer."""
        works = [_work(who, head, self._data, self._threads, self._machine.name) for who, head in heads("cuda").items()]
        found = measure(works, repeat)
        for one in found:
            one["env"] |= self._machine.facts
        return found


def on_gpu(machine: Any, quick: bool, threads: int) -> Iterator[Callable[[], OnGpu]]:
    """Yields factories of the contests of both vocabularies; none without PyTorch on the device."""
    for classes in (500, 5_000) if quick else (33_278, MILLION):
        if machine.torch:
            yield functools.partial(OnGpu, machine, zipf(classes, TOKENS), threads)


def _work(who: str, head: Any, data: Any, threads: int, device: str = "cpu") -> Work:
    torch.set_num_threads(threads)
    classes, place = len(data.counts), "cpu" if device == "cpu" else "cuda"
    model = Model(head, data.counts, 1.0, head.rate).to(place)
    streams = FEW if _dense(who) and classes >= MILLION and place == "cpu" else STREAMS
    turn = itertools.cycle(list(itertools.islice(segments(data.train.to(place), streams), 64)))
    steps = 8 if head.own or classes < 10_000 or place == "cuda" else 1
    losses: list[float] = []

    def step():
        losses.extend(model.step(*next(turn)) for _ in range(steps))

    def check():
        if not all(map(math.isfinite, losses)):
            raise AssertionError(f"{who}: losses {losses}")
        if _dense(who) and abs(losses[0] / math.log(classes) - 1) > 0.02:
            raise AssertionError(f"{who}: first loss {losses[0]}, expected log V = {math.log(classes)}")
        if not _dense(who):
            with torch.no_grad():
                total = model.head.log_prob(torch.randn(2, WIDTH, device=place)).double().exp().sum(1)
            torch.testing.assert_close(total, torch.ones_like(total), rtol=1e-3, atol=0)

    params = {"data": data.name, "classes": classes, "width": WIDTH}
    amount, more = steps * streams * STEPS, {"streams": streams, "steps": STEPS}
    sizes = ("plugs.lstm", who, params, amount, "tokens/s", step, check)
    return Work(*sizes, threads=threads, device=device, more=more)


def _dense(who: str) -> bool:
    return "cross_entropy" in who


# Memory


def _memory(data: Any, arguments) -> None:
    """Measures the peak of each rival in a process of its own, relative to the parameters."""
    print(f"\nplugs.memory  {data.name}")
    for who in heads():
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, context) as worker:
            found = worker.submit(_peak, who, len(data.counts), arguments.threads).result()
        over = found["peak"] / found["parameters"]
        alone = (found["peak"] - found["imports"]) / found["parameters"]
        print(
            f"  {who:<40} peak {found['peak'] / 1e9:6.2f} GB = {over:.2f} x parameters; {alone:.2f} x without the "
            f"{found['imports'] / 1e9:.2f} GB of PyTorch and kernels",
            flush=True,
        )
        append(arguments.json, [_record(who, found, data, arguments)])


def _record(who: str, found: dict[str, int], data: Any, arguments) -> dict:
    value, params = float(found["peak"]), {"data": data.name, "classes": len(data.counts)}
    record = {"bench": "plugs", "work": "plugs.memory", "who": who, "params": params, "unit": "bytes", "value": value}
    record |= {"samples": [value], "spread": 0.0, "of parameters": value / found["parameters"], "memory": found}
    return record | made_by(arguments.threads)


def _peak(who: str, classes: int, threads: int) -> dict[str, int]:
    """Returns bytes: the parameters, the process after a step of a small model, and its peak after three steps."""
    torch.set_num_threads(threads)
    head = heads()[who]
    _steps(Model(head, zipf(300, 1).counts, 1.0, head.rate), zipf(300, 4_000), STREAMS)
    imports = _resident("VmRSS")
    data = zipf(classes, 20_000)
    model = Model(head, data.counts, 1.0, head.rate)
    _steps(model, data, FEW if _dense(who) and classes >= MILLION else STREAMS)
    return {"parameters": model.bytes(), "imports": imports, "peak": _resident("VmHWM")}


def _steps(model: Any, data: Any, streams: int) -> None:
    for given in itertools.islice(segments(data.train, streams), 3):
        model.step(*given)


def _resident(name: str) -> int:
    """Returns a memory figure of this process: VmRSS is the current size, VmHWM the peak, not inherited from its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


# The model, its output layers, and the training tokens

WIDTH, LAYERS, STREAMS, STEPS, DROPOUT, CLIP = 200, 2, 20, 35, 0.2, 0.25


class Tokens(NamedTuple):
    """Ids of a text by falling frequency, and counts by id."""

    name: str
    train: Any
    counts: np.ndarray


class Head(NamedTuple):
    """An output layer and its factory: make(counts, rate) is a module, called (hidden, target) -> (output, loss).

    rate  per example for ours, for the mean over a batch for PyTorch's SGD
    own   True if its own backward updates its parameters
    """

    make: Callable[[np.ndarray, float], Any]
    rate: float
    own: bool = False


def wikitext() -> Tokens | None:
    """Returns WikiText-2 from HYBRID_DATA: words between white space, and <eos> at the end of a line; None if missing."""
    folder = Path(os.environ.get("HYBRID_DATA", "data")) / "wikitext-2"
    if not (folder / "train.txt").exists():
        return None
    words = (folder / "train.txt").read_text("utf-8").replace("\n", " <eos> ").split()
    counted = Counter(words).most_common()
    number = {word: at for at, (word, _) in enumerate(counted)}
    ids = torch.tensor([number[word] for word in words])
    return Tokens("WikiText-2", ids, np.array([count for _, count in counted]))


def zipf(classes: int, tokens: int) -> Tokens:
    """Draws ids by Zipf's law."""
    counts = np.maximum(1e9 / np.arange(1, classes + 1), 1)
    share = np.cumsum(counts) / counts.sum()
    drawn = np.searchsorted(share, np.random.default_rng(0).random(tokens))
    return Tokens(f"Zipf ids, {classes:,} of them", torch.from_numpy(np.minimum(drawn, classes - 1)), counts)


class Dense(torch.nn.Module):
    """A linear layer under F.cross_entropy: an array of tokens by classes; half: of bfloat16."""

    def __init__(self, classes: int, half: bool = False):
        super().__init__()
        self.half = half
        self.linear = torch.nn.Linear(WIDTH, classes, bias=False)
        torch.nn.init.uniform_(self.linear.weight, -0.1, 0.1)  # as in the PyTorch example

    def forward(self, hidden, target):
        """Returns None and the mean loss."""
        with torch.autocast(hidden.device.type, torch.bfloat16, enabled=self.half):
            logits = self.linear(hidden)
        return None, torch.nn.functional.cross_entropy(logits, target)


class Chunked(Dense):
    """The same with F.linear_cross_entropy, which processes the tokens in chunks."""

    def forward(self, hidden, target):
        """Returns None and the mean loss."""
        made = getattr(torch.nn, "LinearCrossEntropyOptions", None)  # missing in early releases of the function
        chunks = {"options": made()} if made else {}
        return None, torch.nn.functional.linear_cross_entropy(hidden, self.linear.weight, target, **chunks)


def adaptive(counts: np.ndarray, rate: float) -> Any:
    """Builds PyTorch's adaptive softmax, with its authors' cutoffs for such vocabularies; a smaller model."""
    cuts = [cut for cut in (2_000, 10_000, 200_000) if cut < len(counts) - 1] or [len(counts) // 2]
    return torch.nn.AdaptiveLogSoftmaxWithLoss(WIDTH, len(counts), cuts)


def heads(place: str = "cpu") -> dict[str, Head]:
    """Returns ours first, then the peers that this PyTorch supports; trees are on `place`."""
    version = f"torch {torch.__version__}"
    dense = 1.0

    def tree(counts: np.ndarray, rate: float, mode: str = "deterministic") -> Any:
        return TreeLoss(WIDTH, counts, mode=mode, optimiser=SGD(rate), device=place)

    found = {"ours": Head(tree, 0.02, own=True)}
    if place == "cuda":
        found["ours, batches"] = Head(functools.partial(tree, mode="batch"), 0.02, own=True)
        found[f"{version} Linear in bfloat16 + cross_entropy"] = Head(lambda counts, _: Dense(len(counts), True), dense)
    found |= {
        "SampledLoss": Head(lambda counts, rate: SampledLoss(WIDTH, counts, optimiser=SGD(rate)), 0.005, own=True),
        f"{version} Linear + cross_entropy": Head(lambda counts, rate: Dense(len(counts)), dense),
        f"{version} linear_cross_entropy": Head(lambda counts, rate: Chunked(len(counts)), dense),
        f"{version} adaptive softmax": Head(adaptive, dense),
    }
    if not hasattr(torch.nn.functional, "linear_cross_entropy"):
        del found[f"{version} linear_cross_entropy"]
    return found


class Model(torch.nn.Module):
    """Rows of tokens, an LSTM, an output layer, and their training.

    lr    of SGD, for rows and LSTM
    rate  of the output layer
    """

    def __init__(self, head: Head, counts: np.ndarray, lr: float, rate: float):
        super().__init__()
        torch.manual_seed(0)
        self.rows = torch.nn.Embedding(len(counts), WIDTH, sparse=True)
        torch.nn.init.uniform_(self.rows.weight, -0.1, 0.1)
        self.lstm = torch.nn.LSTM(WIDTH, WIDTH, LAYERS, dropout=DROPOUT)
        self.head = head.make(counts, rate)
        self.drop = torch.nn.Dropout(DROPOUT)
        self.state: Any = None
        groups: list[dict[str, Any]] = [{"params": [*self.rows.parameters(), *self.lstm.parameters()]}]
        groups += [] if head.own else [{"params": self.head.parameters(), "lr": rate}]
        self.optimiser = torch.optim.SGD(groups, lr=lr)

    def forward(self, ids, target):
        """Returns (output, loss) of a segment: ids and target (T, B)."""
        hidden, state = self.lstm(self.drop(self.rows(ids)), self.state)
        self.state = tuple(part.detach() for part in state)
        return self.head(self.drop(hidden).reshape(-1, WIDTH), target.reshape(-1))

    def step(self, ids, target) -> float:
        """Takes a step: forward, backward, optimiser; returns the loss."""
        loss = self(ids, target)[1]
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.lstm.parameters(), CLIP)
        self.optimiser.step()
        return float(loss.detach())

    def bytes(self) -> int:
        """Returns the bytes of all parameters; SGD has no other state."""
        return sum(value.numel() * value.element_size() for value in self.state_dict().values())


def segments(ids, streams: int) -> Iterator[tuple[Any, Any]]:
    """Yields a text in `streams` columns, STEPS tokens at a time: (ids, the tokens after them), each (T, streams)."""
    columns = ids[: len(ids) // streams * streams].view(streams, -1).t().contiguous()
    for at in range(0, len(columns) - 1, STEPS):
        target = columns[at + 1 : at + 1 + STEPS]
        yield columns[at : at + len(target)], target

"""Language models: output layers under LSTMs and an MLP at equal time, beside Kneser-Ney and published perplexities.

The LSTMs are PyTorch's, trained as readers expect: state carried from batch to batch (truncated back-propagation), locked
dropout between layers and of whole words (AWD-LSTM, arXiv:1708.02182), clipped gradients, Adam with a linearly falling rate,
weights averaged over the last steps. Where the CPU has instructions for bfloat16, the LSTMs multiply in it and keep float32
weights. Each is also mixed with a Kneser-Ney model, in a row of its own. The MLP is that of `hybrid train language`.
"""

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cpu  # noqa: F401  # says how threads wait, before PyTorch reads it

import torch  # isort: skip
from bench.quality import quality
from bench.quality.contender import Among, Contender, Figures, Log, Peak, Problem, Run, Space, finite, there
from bench.quality.kneser_ney import KneserNey
from bench.quality.language import contenders
from bench.report.section import drawn
from bench.step import plugs
from hybrid import Adagrad, Corpus, MixtureReadout, TreeReadout, Vocabulary, trees
from hybrid.feeds.text import Text, read
from hybrid.readout.head import HeadParts
from hybrid.torch import HeadLoss, ReadoutLoss, SampledLoss, TreeLoss
from hybrid.train.job import Watched

NAME = "language"
FILES = ("train.txt", "valid.txt", "test.txt")
CUT: dict[str, Any] = {"tokens": "whitespace", "lower": False, "eos": True}  # WikiText-2 as published
OPTIONS = {"tokens": "whitespace", "case": "keep", "eos": True, "min_count": 1}
LSTMS = {"LSTM 2 x 256": 256, "LSTM 2 x 400": 400, "LSTM 2 x 650": 650}
MLP = "MLP"
ONLY = (*LSTMS, MLP)
ORDER = 5  # words of a Kneser-Ney gram
MIXED, SHARES = (
    "perplexity with Kneser-Ney",
    [part / 20 for part in range(20)],
)  # of Kneser-Ney, chosen on validation data
STREAMS, STEPS, CLIP = 40, plugs.STEPS, plugs.CLIP  # 20 streams are slower, and no better
AVERAGED, EACH = 0.2, 20  # the last part of the steps, every so many of which the average takes the weights
FIRST: dict[str, Any] = {"lr": 0.005, "rate": 0.5, "dropout": 0.3}  # of Adam; of the output layer's Adagrad
SPACE: Space = {"lr": Log(1e-3, 1e-2), "rate": Log(0.05, 1.0), "dropout": Among((0.1, 0.2, 0.3, 0.4, 0.5))}
BFLOAT16 = "avx512_bf16" in Path("/proc/cpuinfo").read_text()  # a step of an LSTM 2 x 256 then takes 0.84 of the time
SECONDS = (120, 480, 1800)
PUBLISHED = {  # validation and test perplexity of WikiText-2
    "AWD-LSTM, 33 M parameters, 750 epochs of 180 s on a Quadro GP100 (its README)": (68.7, 65.6),
    "variational LSTM, medium: 2 x 650 (arXiv:1609.07843)": (101.7, 96.3),
}


def run(arguments: Any) -> int:
    """Trains contenders without a record, then prints a table; returns the exit code."""
    try:
        problem = make(arguments)
    except (OSError, ValueError) as error:
        print(f"--texts: {error}")
        return 2
    if problem is None:
        return 1
    book = quality.Book(arguments.json, arguments.threads)
    if code := quality.compare_all(NAME, problem, arguments, book):
        return code
    tested = [one for one in book.having(data=problem.data) if one["test"]]  # a search reads no test data
    print(board(tested, published=not arguments.texts), flush=True)
    return 0


@dataclass(frozen=True)
class Data:
    """Ids of three texts, and counts by id of the first."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    counts: np.ndarray

    @functools.cached_property
    def grams(self) -> dict[str, np.ndarray]:
        """The probability by Kneser-Ney of each word of the texts for validation and test."""
        words = len(self.counts)
        model = KneserNey(_windows(self.train, words), words)
        return {name: model.probabilities(_windows(getattr(self, name), words)) for name in ("valid", "test")}


def make(arguments: Any) -> Problem | None:
    """Builds the problem of WikiText-2, or of the files of --texts; None, with a message, if the data are missing."""
    folder = None if arguments.texts else there("wikitext-2")
    files = arguments.texts or (folder and [folder / file for file in FILES])
    if not files:
        return None
    if len(files) != len(FILES):
        raise ValueError(f"found {len(files)} files, expected {len(FILES)}: TRAIN,VALID,TEST")
    texts = [read(file, **CUT) for file in files]
    data = encoded(texts)
    layers = {
        f"{trunk}: {name}": Contender(functools.partial(train, data, width, layer, arguments.threads), SPACE, FIRST)
        for trunk, width in LSTMS.items()
        for name, layer in LAYERS.items()
    }
    layers |= {f"{MLP}: {name}": one for name, one in contenders(arguments, OPTIONS, texts).items()}
    chosen = {name: one for name, one in layers.items() if name.split(":")[0] in (arguments.only or ONLY)}
    chosen[f"Kneser-Ney of {ORDER} words"] = Contender(functools.partial(_kneser_ney, data), {}, {}, once=True)
    name = "WikiText-2 as published" if folder else Path(files[0]).name
    size = f"{len(data.train):,} tokens, {len(data.counts):,} words"
    return Problem(f"{name}, {size}", Watched("perplexity"), chosen, (), SECONDS, tuple(range(arguments.seeds or 1)))


def encoded(texts: Sequence[Text]) -> Data:
    """Returns the ids of texts for training, validation and test."""
    vocabulary = Vocabulary.build(texts[0])
    learned, valid, test = (np.asarray(Corpus(text, vocabulary).ids) for text in texts)
    return Data(learned, valid, test, np.asarray(vocabulary.counts))


# Output layers: called (hidden, target), they return (log-probability of each target, loss).


class Tied(torch.nn.Module):
    """A full softmax whose weights are the rows of the words."""

    def __init__(self, rows: Any):
        super().__init__()
        self.weight, self.bias = rows.weight, torch.nn.Parameter(torch.zeros(len(rows.weight)))

    def forward(self, hidden: Any, target: Any) -> tuple[Any, Any]:
        """Returns log-probabilities and the mean loss."""
        losses = torch.nn.functional.cross_entropy(hidden @ self.weight.T + self.bias, target, reduction="none")
        return -losses, losses.mean()


def _adaptive(counts: np.ndarray, width: int, rate: float) -> Any:
    """Builds PyTorch's adaptive softmax, with its authors' cutoffs for such vocabularies."""
    cuts = [cut for cut in (2_000, 10_000) if cut < len(counts) - 1] or [len(counts) // 2]
    return torch.nn.AdaptiveLogSoftmaxWithLoss(width, len(counts), cuts, head_bias=True)


def _head(counts: np.ndarray, width: int, rate: float) -> Any:
    return HeadLoss(width, counts, parts=HeadParts(share=0.03), optimiser=Adagrad(rate), biases=True)


def _mixture(counts: np.ndarray, width: int, rate: float) -> Any:
    """Builds four trees: of counts, of the order of ids, and of two random orders."""
    permuted = [np.random.default_rng(seed).permutation(len(counts)) for seed in (0, 1)]
    shapes = [trees.huffman(counts), trees.balanced(len(counts)), *(_reordered(counts, order) for order in permuted)]
    return ReadoutLoss(
        MixtureReadout([TreeReadout(counts, width, tree=tree, optimiser=Adagrad(rate), biases=True) for tree in shapes])
    )


def _reordered(counts: np.ndarray, order: np.ndarray) -> Any:
    """Returns the balanced tree of classes in another order."""
    tree = trees.balanced(len(counts))
    up = np.empty_like(tree.leaf_up)
    up[order] = tree.leaf_up
    return trees.checked(up, tree.node_up, counts)


# Made of (counts, width, rate); None: the tied softmax. All have biases.
LAYERS: dict[str, Callable[[np.ndarray, int, float], Any] | None] = {
    "tied full softmax": None,
    "adaptive softmax": _adaptive,
    "sampled softmax": lambda counts, width, rate: SampledLoss(width, counts, optimiser=Adagrad(rate), biases=True),
    "head": _head,
    "tree": lambda counts, width, rate: TreeLoss(width, counts, optimiser=Adagrad(rate), biases=True),
    "mixture of four trees": _mixture,
}


class Net(torch.nn.Module):
    """Rows of the words, two LSTMs and an output layer; hidden state is carried from call to call until `reset`."""

    def __init__(self, counts: np.ndarray, width: int, layer: Any, settings: Mapping[str, Any]):
        super().__init__()
        self.dropout = settings["dropout"]
        self.state: list[Any] = [None, None]
        self.share = 0.0  # of Kneser-Ney in a mixture
        self.rows = torch.nn.Embedding(len(counts), width, sparse=layer is not None)
        torch.nn.init.uniform_(self.rows.weight, -0.1, 0.1)
        self.lstms = torch.nn.ModuleList(torch.nn.LSTM(width, width) for _ in range(2))
        self.layer = layer(counts, width, settings["rate"]) if layer else Tied(self.rows)

    def forward(self, ids: Any, target: Any) -> tuple[Any, Any]:
        """Returns log-probabilities and loss of a segment: ids and target (T, streams)."""
        x = self._locked(self.rows(ids) * self._words(ids))
        for at, lstm in enumerate(self.lstms):
            with torch.autocast("cpu", torch.bfloat16, enabled=BFLOAT16):
                x, state = lstm(x, self.state[at])
            self.state[at] = tuple(part.detach().float() for part in state)
            x = self._locked(x.float())
        output, loss = self.layer(x.flatten(0, 1), target.flatten())
        return output, loss

    def reset(self, training: bool) -> None:
        """Begins a text."""
        self.train(training)
        self.state = [None, None]

    def _locked(self, x: Any) -> Any:
        """Drops units of (T, streams, width), the same at all times."""
        if not self.training:
            return x
        return x * torch.nn.functional.dropout(torch.ones_like(x[:1]), self.dropout)

    def _words(self, ids: Any) -> Any:
        """Returns factors (T, streams, 1): a tenth of the distinct words are dropped wherever they occur."""
        if not self.training:
            return 1.0
        words, number = ids.unique(return_inverse=True)
        return torch.nn.functional.dropout(torch.ones(len(words)), 0.1)[number][..., None]


def segments(ids: np.ndarray, streams: int) -> Iterator[tuple[Any, Any]]:
    """Yields a text in `streams` columns, STEPS tokens at a time: (ids, the tokens after them), each (T, streams)."""
    return plugs.segments(torch.from_numpy(np.asarray(ids, np.int64)), streams)


def train(
    data: Data, width: int, layer: Any, threads: int, settings: Mapping[str, Any], seed: int, epochs: float
) -> Run:
    """Trains for so many epochs, possibly fractional; the last weights or their average, whichever validates better."""
    torch.set_num_threads(threads)
    each = math.ceil((len(data.train) // STREAMS - 1) / STEPS)
    steps = max(round(epochs * each), 1)
    _learn(Net(data.counts, width, layer, settings), data, settings, 1, 1)  # compiles
    peak = Peak()
    torch.manual_seed(seed)
    net, start = Net(data.counts, width, layer, settings), time.perf_counter()
    average, examples = _learn(net, data, settings, steps, each)
    seconds = time.perf_counter() - start
    state = net.state_dict()
    learned = (value for name, value in state.items() if value.is_floating_point() and not name.endswith("squares"))
    sizes = {value.data_ptr(): value.numel() for value in learned}  # a tied table counts once
    memory = peak.bytes()
    return Run(
        lambda: _validated(net, average, data),
        lambda: _figures(net, data.test, data.grams["test"], [net.share])[0],
        epochs=steps / each,
        seconds=seconds,
        examples=examples,
        parameters=sum(sizes.values()),
        memory=memory,
    )


def _learn(net: Net, data: Data, settings: Mapping[str, Any], steps: int, each: int) -> tuple[dict[str, Any], int]:
    """Takes the steps; returns the average of the last weights by name, and the number of tokens learned."""
    sparse = [net.rows.weight] if net.rows.sparse else []
    dense = [value for value in net.parameters() if all(value is not one for one in sparse)]
    optimisers = [torch.optim.Adam(dense, lr=settings["lr"])]
    optimisers += [torch.optim.SparseAdam(sparse, lr=settings["lr"])] if sparse else []
    falls = [torch.optim.lr_scheduler.LambdaLR(one, lambda step: 1 - step / steps) for one in optimisers]
    if isinstance(net.layer, ReadoutLoss):
        net.layer.follow(optimisers[0])
    average: dict[str, Any] = {}
    taken = examples = 0
    for step, (ids, target) in enumerate(itertools.islice(_passes(net, data.train), steps)):
        loss = net(ids, target)[1]
        for one in optimisers:
            one.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.lstms.parameters(), CLIP)
        for one, fall in zip(optimisers, falls, strict=True):
            one.step()
            fall.step()
        examples += target.numel()
        if step >= (1 - AVERAGED) * steps and step % EACH == 0:
            taken += 1
            _average(average, net, taken)
    return average, examples


def _passes(net: Net, ids: np.ndarray) -> Iterator[tuple[Any, Any]]:
    """Yields the segments of a text again and again."""
    while True:
        net.reset(training=True)
        yield from segments(ids, STREAMS)


def _average(average: dict[str, Any], net: Net, taken: int) -> None:
    """Moves the mean of the weights to that of `taken` of them."""
    for name, value in net.state_dict().items():
        if name not in average:
            average[name] = value.detach().clone()
        elif value.is_floating_point() and value.dim():
            average[name].lerp_(value, 1 / taken)


def _validated(net: Net, average: Mapping[str, Any], data: Data) -> Figures:
    """Returns the figures of the validation text; leaves the better weights and the best share in the net."""
    last, found = {name: value.clone() for name, value in net.state_dict().items()}, []
    for state in filter(None, (last, average)):
        net.load_state_dict(state)
        found.append((*_figures(net, data.valid, data.grams["valid"], SHARES), state))
    figures, net.share, state = min(found, key=lambda one: one[0].get("perplexity", math.inf))
    net.load_state_dict(state)
    return figures


def _figures(net: Net, ids: np.ndarray, grams: np.ndarray, shares: Sequence[float]) -> tuple[Figures, float]:
    """Returns perplexities of a text, but for the first word of each stream, and the best of the shares of Kneser-Ney."""
    net.reset(training=False)
    streams = min(STREAMS, len(ids) // 2)
    with torch.no_grad():
        own = np.concatenate([net(*segment)[0].double().numpy() for segment in segments(ids, streams)])
    at = np.concatenate([target.flatten().numpy() for _, target in segments(np.arange(len(ids)), streams)])

    def mixed(share: float) -> float:
        return float(np.exp(-np.log((1 - share) * np.exp(own) + share * grams[at]).mean()))

    with np.errstate(over="ignore", divide="ignore"):  # of a diverged training
        best = min(shares, key=mixed)
        return finite({"perplexity": float(np.exp(-own.mean())), MIXED: mixed(best)}), best


def _kneser_ney(data: Data, settings: Mapping[str, Any], seed: int, epochs: float) -> Run:
    start, words = time.perf_counter(), len(data.counts)
    model = KneserNey(_windows(data.train, words), words)
    seconds = time.perf_counter() - start

    def figures(ids: np.ndarray) -> Figures:
        return {"perplexity": float(np.exp(-np.log(model.probabilities(_windows(ids, words))).mean()))}

    return Run(
        lambda: figures(data.valid),
        lambda: figures(data.test),
        epochs=1.0,
        seconds=seconds,
        examples=len(data.train),
        parameters=model.size,
    )


def _windows(ids: np.ndarray, words: int) -> np.ndarray:
    padded = np.concatenate([np.full(ORDER - 1, words), ids])
    return np.lib.stride_tricks.sliding_window_view(padded, ORDER).astype(np.int64)


def board(records: Sequence[Mapping[str, Any]], published: bool) -> str:
    """Returns a table of the records: perplexity of validation and test text at every length, mean over seeds."""
    lengths = sorted({_length(one) for one in records}, key=lambda one: (one[0] == "epochs", one[1]))
    named = [f"{amount:g} epochs" if kind == "epochs" else f"{amount / 60:g} min" for kind, amount in lengths]
    lines = [["output layer", *named, "tokens/s", "M parameters", "memory"]]
    for who in dict.fromkeys(one["who"] for one in records):
        rows = [one for one in records if one["who"] == who]
        speed = sum(one["examples"] for one in rows) / sum(one["seconds"] for one in rows)
        memory = max(one["memory"] or 0 for one in rows)
        costs = [f"{speed:,.0f}", f"{rows[0]['parameters'] / 1e6:.1f}", f"{memory / 2**20:,.0f} MiB" if memory else "-"]
        for name, more in (("perplexity", ""), (MIXED, ", with Kneser-Ney")):
            cells = [_cell([one for one in rows if _length(one) == length], name) for length in lengths]
            lines += [[who + more, *cells, *costs]] if set(cells) != {"-"} else []
    for who, (valid, test) in PUBLISHED.items() if published else ():
        lines.append([who, *["-"] * (len(lengths) - 1), f"{valid} / {test}", "-", "-", "-"])
    return "\n".join([f"\n### {records[0]['data']}: validation / test perplexity\n", *drawn(lines)])


def _length(record: Mapping[str, Any]) -> tuple[str, float]:
    return next((kind, record["run"][kind]) for kind in ("seconds", "epochs") if kind in record["run"])


def _cell(records: Sequence[Mapping[str, Any]], name: str) -> str:
    parts = []
    for part in ("valid", "test"):
        values = [one[part][name] for one in records if name in one[part]]
        parts.append(f"{sum(values) / len(values):.1f}" if values else "-")
    return "-" if set(parts) == {"-"} else " / ".join(parts)

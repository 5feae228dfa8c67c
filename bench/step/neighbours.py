"""The ten nearest of many vectors at a given recall, and the ten likeliest classes of trained softmaxes, against libraries.

Indexes: every installed library of cpu/search/libraries.py is tuned on the same 256 queries, by the same search for the least
effort that reaches the recall. It is timed on 1,024 others. One that takes more than SLOWEST times exact search's seconds is
left out with a message. At a million rows, where a build takes minutes, a library has only the sizes that were its fastest at
100,000 rows, and is left out where it was BEHIND times slower than the fastest there. Records have the build time of the index
and the growth of memory.

Heads: an LSTM is trained on WikiText-2. Its output layer, and any number of rows drawn around its rows, must find the ten
largest logits of its hidden vectors. The contenders are FastHead, exact and at a recall of .99, PyTorch in float32 and
bfloat16, and FAISS, flat and with cells.
"""

import functools
import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness.measure import Work, append, measure, peer, show
from bench.step.words import learner
from cpu.search import brute_force, index, libraries
from cpu.search.index import queries
from hybrid import FastHead, Neighbours
from hybrid.feeds import text
from hybrid.feeds.text import Corpus
from hybrid.feeds.vocabulary import Vocabulary

K, QUERIES, BLOCK = 10, 1024, 256  # BLOCK: queries of a product of NumPy
RECALLS = (0.9, 0.99)
ONLY = ("indexes", "heads")
ROWS, RANDOM = (100_000, 1_000_000), (100_000, 100)  # rows drawn around words; rows and width of random vectors
SLOWEST = 4.0
LACK = 0.03  # missing recall at which a library is left out: the timed queries are not those of the tuning
LINKS = (8, 16, 32)
SIZES = {"annoy": (10, 40, 100), "faiss": (32, 128, 512)}  # other kinds use LINKS
WIDTHS, CLASSES, BATCHES = (128, 512, 1024), (250_000, 1_000_000), (1, 64)  # heads
LARGE = 500_000  # from so many rows, only the sizes and libraries that were fast before
BEHIND = 2.5
MOST = 3 * 10**8  # maximum number of weights of a head: five copies have to fit
STEPS, STREAMS, LENGTH = 2000, 64, 35  # training of the LSTM

Ask = Callable[[np.ndarray, int], np.ndarray]  # queries (B, D), effort -> ids (B, k)
Built = tuple[str, int, str, Ask, dict[str, Any]]  # library, size, setting, query function, cost of building
Best = dict[tuple[str, float], dict[str, tuple[float, int]]]  # metric, recall -> library -> seconds, its fastest size


def run(arguments) -> None:
    """Measures indexes over trained and random vectors; then heads."""
    only, best = arguments.only or ONLY, Best()
    for name, vectors, metrics in _data(arguments) if "indexes" in only else ():
        for metric in metrics:
            problem = Problem(name, vectors, metric, arguments.threads, best)
            indexes = list(problem.indexes())
            for recall in RECALLS:
                _report(problem.works(recall, indexes), arguments)
    for width in () if "heads" not in only else WIDTHS[:1] if arguments.quick else WIDTHS:
        name, weights, hidden = _softmax(arguments, width)
        for classes in [len(weights), *([] if arguments.quick else CLASSES)]:
            if classes * width <= MOST:
                for works in _heads(name, _grown(weights, classes), hidden, arguments.threads):
                    _report(works, arguments)


def _report(works: list[Work], arguments: Any) -> None:
    records = measure(works, arguments.repeat)
    show(records)
    append(arguments.json, records)


def _data(arguments) -> Iterator[tuple[str, np.ndarray, tuple[str, ...]]]:
    """Yields names, vectors (V, D) float32 and metrics; random vectors are about equally long, so cosine is enough for them."""
    name, words = _word_vectors(arguments)
    yield name, words, ("angular", "dot")
    for rows in () if arguments.quick else ROWS:
        yield f"{name}, {rows:,} around them", _grown(words, rows), ("angular", "dot")
    rows, width = (3000, 20) if arguments.quick else RANDOM
    random = np.random.default_rng(0).standard_normal((rows, width), np.float32)
    yield f"random {rows:,} x {width}", random, ("angular",)


def _grown(rows: np.ndarray, many: int) -> np.ndarray:
    """Returns `many` rows: the given ones, or others around them, with noise of half a row's spread."""
    if many <= len(rows):
        return rows
    rng = np.random.default_rng(0)
    more = rows[rng.integers(0, len(rows), many)]
    more += 0.5 * more.std(axis=1, keepdims=True) * rng.standard_normal(more.shape, np.float32)
    return more


def _word_vectors(arguments) -> tuple[str, np.ndarray]:
    """Returns CBOW vectors of one epoch over WikiText-2 from HYBRID_DATA, else over Python's documentation."""
    file = Path(os.environ.get("HYBRID_DATA", "data")) / "wikitext-2" / "train.txt"
    known = file.exists() and not arguments.quick
    learned = text.read(file) if known else text.documentation()
    vocabulary = Vocabulary.build(learned, min_count=1, unknown=False)
    engine, feed = learner(Corpus(learned, vocabulary), "cbow", "sampled", arguments.threads)
    for _ in engine.run(feed):
        pass
    table = engine.embedding.parameters()["table"][: len(vocabulary)]
    return f"{'WikiText-2' if known else 'documentation'}, {len(table):,} words", np.ascontiguousarray(table)


class Problem:
    """Vectors and queries: tunes the rivals and creates their works."""

    def __init__(self, name: str, vectors: np.ndarray, metric: str, threads: int, best: Best):
        self.name, self.vectors, self.metric, self.threads, self.best = name, vectors, metric, threads, best
        self.tuning, self.asked = queries(vectors, 1, index.QUERIES), queries(vectors, 2, QUERIES)
        self.tuning_truth, self.truth = self._exactly(self.tuning), self._exactly(self.asked)
        start = time.perf_counter()
        self._exactly(self.tuning)
        self.limit = SLOWEST * (time.perf_counter() - start)

    def works(self, recall: float, indexes: list[Built]) -> list[Work]:
        """Returns ours, exact search by NumPy and by us, and the fastest setting of every library."""
        print(f"{self.name}, {self.metric}, recall@{K} {recall}:", flush=True)
        more: dict[str, Any] = {"metric": self.metric, "recall": recall, "k": K, "queries": queries(self.vectors, 1)}
        ours = Neighbours(self.vectors, index="auto", threads=self.threads, **more)
        made = [self._work("ours", recall, lambda: ours.query(self.asked, K)[0], ours.choice.line())]
        made.append(self._work("ours, exact", recall, lambda: self._exactly(self.asked)))
        made.append(self._work(f"numpy {np.__version__}, exact", recall, lambda: self._by_numpy(self.asked)))
        best = self.best[self.metric, recall] = {}
        for who in dict.fromkeys(who for who, *_ in indexes):
            if found := self._fastest(recall, [one for one in indexes if one[0] == who]):
                seconds, (_, size, setting, ask, built), effort = found
                best[who] = seconds, size
                asked = functools.partial(ask, self.asked, effort)
                work = self._work(who, recall, asked, f"{setting}, {effort}", built)
                if work.more["found"] < recall - LACK:
                    print(f"  {who}: left out, it reached the recall on the tuning queries only", flush=True)
                else:
                    made.append(work)
            else:
                print(f"  {who}: recall {recall} not reached in {SLOWEST:.0f} x the time of exact search", flush=True)
        return made

    def indexes(self) -> Iterator[Built]:
        """Yields the indexes, built once for all recalls, by the threads of the measurement."""
        for kind, library in libraries.LIBRARIES.items():
            for size in self._sizes(kind, library.module) if peer(library.module) else ():
                before, start = _resident(), time.perf_counter()
                made = libraries.make(kind, self.vectors, self.metric, size, 0, self.threads)
                built = {"build s": round(time.perf_counter() - start, 2), "build MB": round(_resident() - before)}
                setting = library.setting.split(",")[0].format(size)
                yield library.module, size, setting, functools.partial(_propose, made), built

    def _sizes(self, kind: str, who: str) -> tuple[int, ...]:
        if len(self.vectors) < LARGE:
            return SIZES.get(kind, LINKS)
        sizes = []
        for recall in RECALLS:
            if best := self.best.get((self.metric, recall)):
                seconds, size = best.get(who, (np.inf, 0))
                sizes += [size] if seconds <= BEHIND * min(best.values())[0] else []
        return tuple(dict.fromkeys(sizes))

    def _fastest(self, recall: float, indexes: list[Built]) -> tuple[float, Built, int] | None:
        reached = []
        for built in indexes:
            if found := self._least_effort(recall, built[3]):
                reached.append((found[1], built, found[0]))
        return min(reached, key=lambda one: one[0]) if reached else None

    def _least_effort(self, recall: float, ask: Ask) -> tuple[int, float] | None:
        """Returns the least effort that reaches the recall on the tuning queries, and its seconds."""

        def tried(effort: int) -> tuple[float, float]:
            start = time.perf_counter()
            found = ask(self.tuning, effort)
            return index.recall(self.tuning_truth, found), time.perf_counter() - start

        low, high = K // 2, K
        while (found := tried(high))[0] < recall:
            if found[1] > self.limit or high > len(self.vectors):  # a graph may be disconnected
                return None
            low, high = high, 2 * high
        while high - low > max(1, high // 16):
            middle = (low + high) // 2
            low, high = (low, middle) if tried(middle)[0] >= recall else (middle, high)
        return high, min(tried(high)[1] for _ in range(3))

    def _work(
        self,
        who: str,
        recall: float,
        ask: Callable[[], np.ndarray],
        setting: str = "",
        built: dict[str, Any] | None = None,
    ) -> Work:
        found = index.recall(self.truth, ask())
        print(f"  {who}: {setting or 'exact'}; recall of the timed queries {found:.3f}", flush=True)

        def check():
            if found < recall - LACK:
                raise AssertionError(f"{who}: found {found:.3f} of the ten nearest, expected {recall}")

        params = {"data": self.name, "metric": self.metric, "k": K, "recall": recall}
        more = {"setting": setting, "found": round(found, 4)} | (built or {})
        return Work("neighbours.query", who, params, QUERIES, "queries/s", ask, check, threads=self.threads, more=more)

    def _exactly(self, hidden: np.ndarray) -> np.ndarray:
        ids, scores = index.empty(len(hidden), K, np.float32)
        brute_force.search(ids, scores, self.vectors, hidden, self.metric)
        return ids

    @functools.cached_property
    def _directions(self) -> np.ndarray:
        return self.vectors / np.maximum(np.linalg.norm(self.vectors, axis=1, keepdims=True), 1e-30)

    def _by_numpy(self, hidden: np.ndarray) -> np.ndarray:
        table = self.vectors if self.metric == "dot" else self._directions
        found = []
        for first in range(0, len(hidden), BLOCK):
            dots = hidden[first : first + BLOCK] @ table.T
            some = np.argpartition(dots, -K, axis=1)[:, -K:]
            order = np.argsort(-np.take_along_axis(dots, some, 1), axis=1)
            found.append(np.take_along_axis(some, order, 1))
        return np.concatenate(found)


def _propose(made: libraries.Index, hidden: np.ndarray, effort: int) -> np.ndarray:
    return made.propose(hidden, K, effort)


def _resident() -> float:
    """Returns MB of this process, including freed memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


# Heads


def _softmax(arguments, width: int) -> tuple[str, np.ndarray, np.ndarray]:
    """Returns name, weights (V, D) and hidden vectors (N, D) of an LSTM trained on WikiText-2, else on random tokens."""
    import torch

    from bench.step.plugs import wikitext, zipf
    from hybrid import Adagrad, SampledSoftmax
    from hybrid.torch import SampledLoss

    tokens = (None if arguments.quick else wikitext()) or zipf(5000, 100_000)
    torch.manual_seed(0)
    embedding, lstm = torch.nn.Embedding(len(tokens.counts), width), torch.nn.LSTM(width, width)
    criterion = SampledLoss(width, tokens.counts, loss=SampledSoftmax(256), optimiser=Adagrad(0.3))
    optimiser = torch.optim.Adam([*embedding.parameters(), *lstm.parameters()], lr=1e-3)
    ids = torch.as_tensor(tokens.train).long()
    ids = ids[: len(ids) // STREAMS * STREAMS].view(STREAMS, -1).T
    for step in range(20 if arguments.quick else STEPS):
        first = step * LENGTH % (len(ids) - LENGTH - 1)
        hidden, _ = lstm(embedding(ids[first : first + LENGTH]))
        optimiser.zero_grad()
        criterion(hidden, ids[first + 1 : first + LENGTH + 1]).loss.backward()
        optimiser.step()
    with torch.no_grad():
        hidden = lstm(embedding(ids[-LENGTH:]))[0].reshape(-1, width).numpy()
    return tokens.name, criterion.readout.parameters()["weights"], np.random.default_rng(0).permutation(hidden)[:1024]


def _heads(name: str, weights: np.ndarray, hidden: np.ndarray, threads: int) -> Iterator[list[Work]]:
    """Yields the rivals of each batch; half of the hidden vectors are for tuning."""
    import torch

    torch.set_num_threads(threads)
    start = time.perf_counter()
    exact = FastHead(weights, k=K)
    built = {"build s": round(time.perf_counter() - start, 1)}
    quick = FastHead(weights, k=K, recall=0.99, hidden=hidden[:512])
    asked, table = hidden[512:576] if len(hidden) >= 576 else hidden[-64:], torch.from_numpy(weights)
    truth = exact.best(asked)[0]
    half = table.bfloat16()
    rivals: list[tuple[str, Callable[[np.ndarray], Any], float, dict[str, Any]]] = [
        ("ours, exact", lambda some: exact.best(some)[0], 1.0, built),
        ("ours, .99", lambda some: quick.best(some)[0], 0.95, built),
        ("torch float32", lambda some: (torch.from_numpy(some) @ table.T).topk(K)[1].numpy(), 0.99, {}),
        ("torch bfloat16", lambda some: (torch.from_numpy(some).bfloat16() @ half.T).topk(K)[1].numpy(), 0.0, {}),
    ]
    if faiss := peer("faiss"):
        faiss.omp_set_num_threads(threads)
        flat = faiss.IndexFlatIP(weights.shape[1])
        flat.add(weights)
        rivals.append(("faiss flat", lambda some: flat.search(some, K)[1], 0.99, {}))
        cells, effort = libraries.make("faiss", weights, "dot", 128, 0, threads), 1
        right = exact.best(hidden[:512])[0]
        while index.recall(right, cells.propose(hidden[:512], K, effort)) < 0.99 and effort < len(weights) // 128:
            effort = effort * 5 // 4 + 1
        rivals.append(("faiss cells, .99", lambda some: cells.propose(some, K, effort), 0.95, {"effort": effort}))
    for batch in BATCHES:
        params = {"data": name, "classes": len(weights), "width": weights.shape[1], "batch": batch, "k": K}
        yield [_head(who, find, least, more, params, asked, truth, threads) for who, find, least, more in rivals]


def _head(who: str, find: Any, least: float, more: dict, params: dict, asked: Any, truth: Any, threads: int) -> Work:
    def every() -> np.ndarray:
        return np.concatenate(
            [find(asked[first : first + params["batch"]]) for first in range(0, len(asked), params["batch"])]
        )

    found = every()
    recall, first = index.recall(truth, found), float((truth[:, 0] == found[:, 0]).mean())

    def check() -> None:
        if recall < least:
            raise AssertionError(f"{who}: found {recall:.3f} of the ten likeliest, expected {least}")

    facts = {"found": round(recall, 4), "agreement": round(first, 4)} | more
    return Work("neighbours.head", who, params, len(asked), "queries/s", every, check, threads=threads, more=facts)

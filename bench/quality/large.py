"""Trees, heads and sampled softmax at 33 thousand to a million classes of real text: perplexity at equal CPU time."""

import concurrent.futures
import functools
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.harness.measure import append, made_by
from bench.quality.contender import there
from hybrid.feeds import Batch

CONTEXT, BATCH = 4, 512


class Size(NamedTuple):
    """The definition of classes.

    words    lengths of the following n-grams, each of which is an example
    classes  number of most frequent ones kept; None: all
    """

    words: Sequence[int]
    classes: int | None


SIZES = {"words": Size((1,), None), "pairs": Size((2,), 250_000), "phrases": Size((1, 2, 3), 1_000_000)}
ONLY = tuple(SIZES)
QUICK = {"words": Size((1,), None), "pairs": Size((2,), 3_000), "phrases": Size((1, 2, 3), 5_000)}


class Examples(NamedTuple):
    """Contexts (N, CONTEXT) int32 and targets (N,) int32; rows: the number of ids in contexts; share: the part kept."""

    contexts: np.ndarray
    target: np.ndarray
    rows: int
    share: float


class Data(NamedTuple):
    """Training and validation examples; counts (V,) of classes in the training text, falling."""

    train: Examples
    valid: Examples
    counts: np.ndarray


class Grams:
    """A `Feed` of examples, reshuffled in every epoch; ordered: in the given order."""

    def __init__(
        self, examples: Examples, counts: np.ndarray, *, epochs: int = 1, seed: int = 0, ordered: bool = False
    ):
        self.examples, self.counts, self.epochs, self.seed, self.ordered = examples, counts, epochs, seed, ordered
        self.rows, self.classes = examples.rows, len(counts)
        self.batch, self.most_ids = BATCH, BATCH * CONTEXT
        self.ticks_per_epoch = -(-len(examples.target) // BATCH)
        self._order: tuple[int, np.ndarray] = (-1, np.arange(len(examples.target)))

    def __len__(self) -> int:
        return self.epochs * self.ticks_per_epoch

    def __getitem__(self, tick: int) -> Batch:
        epoch, at = divmod(tick, self.ticks_per_epoch)
        if not self.ordered and self._order[0] != epoch:
            self._order = epoch, np.random.default_rng([self.seed, epoch]).permutation(len(self.examples.target))
        taken = self._order[1][at * BATCH : (at + 1) * BATCH]
        return Batch(self.examples.contexts[taken].reshape(-1), None, self.examples.target[taken])

    def describe(self) -> dict[str, Any]:
        """Describes the feed, see `Feed`."""
        return {"kind": "grams", "classes": self.classes, "seed": self.seed}


def make(folder: Path, size: Size, tokens: int | None = None) -> Data:
    """Builds the examples from a folder's train.txt and valid.txt; tokens: only the first so many of each."""
    train, valid = (_words(folder / f"{part}.txt")[:tokens] for part in ("train", "valid"))
    numbers: dict[str, int] = {}
    for word in train:
        numbers.setdefault(word, len(numbers))
    ids = [np.array([numbers.get(word, numbers.get("<unk>", 0)) for word in text], np.int32) for text in (train, valid)]
    grams = [_grams(text, size.words, len(numbers)) for text in ids]
    kept, counts = np.unique(grams[0][1], return_counts=True)
    order = np.argsort(-counts, kind="stable")[: size.classes]
    made = [_examples(text, *found, kept[order], len(numbers)) for text, found in zip(ids, grams, strict=True)]
    return Data(made[0], made[1], counts[order])


@functools.cache
def _words(path: Path) -> list[str]:
    """Returns the words of a text, with a mark at the end of every line."""
    with open(path, encoding="utf-8") as lines:
        return [word for line in lines for word in [*line.split(), "<eos>"]]


def _grams(ids: np.ndarray, words: Sequence[int], vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns n-grams of every length at every position: their starts, and a number for the words."""
    places, numbers = [], []
    for length in words:
        last = len(ids) - length + 1
        number = np.full(last, length, np.int64)
        for ahead in range(length):
            number = number * vocabulary + ids[ahead : ahead + last]
        places.append(np.arange(last))
        numbers.append(number)
    return np.concatenate(places), np.concatenate(numbers)


def _examples(
    ids: np.ndarray, places: np.ndarray, numbers: np.ndarray, classes: np.ndarray, vocabulary: int
) -> Examples:
    """Returns the examples whose number is one of the classes, which are in falling order of frequency."""
    order = np.argsort(classes)
    found = np.minimum(np.searchsorted(classes[order], numbers), len(classes) - 1)
    there = classes[order][found] == numbers
    padded = np.concatenate([np.full(CONTEXT, vocabulary, np.int32), ids])
    contexts = np.lib.stride_tricks.sliding_window_view(padded, CONTEXT)[places[there]]
    return Examples(contexts, order[found[there]].astype(np.int32), vocabulary + 1, float(there.mean()))


SAMPLED = {f"sampled {number}": {"readout": "sampled", "negatives": number} for number in (64, 256, 1024, 4096)}
READOUTS: dict[str, dict[str, Any]] = {
    "tree": {"readout": "tree"},
    "mixture of trees": {"readout": "mixture"},
    "head": {"readout": "head"},
    **SAMPLED,
    **{f"{name} log-uniform": options | {"draws": "log-uniform"} for name, options in SAMPLED.items()},
}
SECONDS, SEARCH = (60, 120, 240), 8  # processor seconds of the measurements, and of a search's training
STEP, TRIES = 3.0, 7  # factor between the rates of a search; maximum number of rate pairs to try
TUNED = ("rate", "rows_rate")  # rates of the readout and of the input rows, in search order
JUDGED, SEARCHED = (
    2_000,
    500,
)  # validation examples of the figures, and of the search: each costs a pass over a million classes


class Plan(NamedTuple):
    """The command line's plan: seconds at which a contender is measured, seconds of a search's trial, small sizes."""

    seconds: Sequence[int]
    search: float
    quick: bool


def run(arguments) -> int:
    """Runs every size of --only and contender of --readouts, --threads in parallel, each in a single-threaded process."""
    if there("wikitext-2") is None:
        return 1
    if strays := sorted(set(arguments.readouts or ()) - set(READOUTS)):
        print(f"--readouts: found {strays[0]!r}, expected some of {', '.join(READOUTS)}")
        return 2
    plan = Plan((1, 2), 0.5, True) if arguments.quick else Plan(arguments.seconds or SECONDS, SEARCH, False)
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # inherited by the processes started below
    context = multiprocessing.get_context("spawn")
    for size in arguments.only or SIZES:
        with concurrent.futures.ProcessPoolExecutor(arguments.threads, context) as pool:
            begun = [pool.submit(contend, size, who, plan) for who in arguments.readouts or READOUTS]
            for done in concurrent.futures.as_completed(begun):
                print(_line(done.result()), flush=True)
                append(arguments.json, [done.result()])
    return 0


def contend(size: str, who: str, plan: Plan) -> dict[str, Any]:
    """Returns the record of a contender: a search for its rates, then one training with measurements on the way."""
    data, seed = _data(size, plan.quick), 0
    _warm(who)
    places = np.random.default_rng(seed).permutation(len(data.valid.target))
    judged, searched = _some(data, places[:JUDGED]), _some(data, places[JUDGED : JUDGED + SEARCHED])
    tried = {}

    def perplexity(settings: tuple[float, ...]) -> float:
        tried[settings] = learn(data, who, settings, [plan.search], searched)[-1]["perplexity"]
        return tried[settings]

    settings = climb(perplexity, tuple(_options(who)[name] for name in TUNED))
    found = learn(data, who, settings, plan.seconds, judged)
    return {
        "bench": "large",
        "work": f"large.{size}",
        "who": who,
        "params": {"classes": len(data.counts)} | dict(zip(TUNED, settings, strict=True)),
        "quality": {f"after {after} s": [one["perplexity"]] for after, one in zip(plan.seconds, found, strict=True)}
        | {"epochs": [found[-1]["epochs"]]},
        "seeds": [seed],
        "search": [dict(zip(TUNED, given, strict=True)) | {"perplexity": value} for given, value in tried.items()],
        "kept": {"train": data.train.share, "valid": data.valid.share},
        "data": _about(data, judged),
    } | made_by(1)


def climb(perplexity: Callable[[tuple[float, ...]], float], settings: tuple[float, ...]) -> tuple[float, ...]:
    """Returns the best of up to TRIES settings by coordinate search: each number goes up while that helps, else down."""
    asked = {settings: perplexity(settings)}
    for place in range(len(settings)):
        for factor in (STEP, 1 / STEP):
            start = settings
            while len(asked) < TRIES:
                moved = list(settings)
                moved[place] = float(f"{settings[place] * factor:.2g}")
                asked[tuple(moved)] = perplexity(tuple(moved))
                if not asked[tuple(moved)] < asked[settings]:
                    break
                settings = tuple(moved)
            if settings != start:
                break
    return settings


def learn(
    data: Data, who: str, settings: tuple[float, ...], seconds: Sequence[float], judged: Grams
) -> list[dict[str, float]]:
    """Trains, and measures at each of `seconds` of processor time; infinite once it diverges.

    Only training is timed. Rates are constant, so that all figures are of one training.
    """
    feed = Grams(data.train, data.counts, epochs=10**6)
    engine = _engine(who, dict(zip(TUNED, settings, strict=True)), feed)
    found: list[dict[str, float]] = []
    try:
        for _ in _due(engine.run(feed), seconds):
            figures = {"perplexity": _exp(engine.evaluate(judged)), "epochs": engine.tick / feed.ticks_per_epoch}
            found.append(figures)
    except FloatingPointError:
        pass
    lost = {"perplexity": math.inf, "epochs": engine.tick / feed.ticks_per_epoch}
    return found + [lost] * (len(seconds) - len(found))


def _due(ticks: Iterator[Any], seconds: Sequence[float]) -> Iterator[None]:
    """Yields when the ticks have used so many seconds of processor time; the caller's own time is not counted."""
    spent, begun, left = 0.0, time.process_time(), list(seconds)
    for _ in ticks:
        now = time.process_time()
        spent += now - begun
        while left and spent >= left[0]:
            left.pop(0)
            yield
        if not left:
            return
        begun = time.process_time()


def _exp(loss: float) -> float:
    return math.exp(loss) if loss < 700 else math.inf


def _options(who: str) -> dict[str, Any]:
    """Returns the options of the language model of `hybrid train`, with defaults for this readout."""
    from hybrid.train.options import choose

    given = {"context": CONTEXT, "device": "cpu", "threads": 1, "micro_batches": 1}
    return choose("language", text="-", schedule="constant", **given, **READOUTS[who])


def _engine(who: str, settings: dict[str, float], feed: Grams) -> Any:
    from hybrid.models._engine import make_engine

    return make_engine(_options(who) | settings, feed, per_example=CONTEXT)


@functools.cache
def _data(size: str, quick: bool) -> Data:
    folder = there("wikitext-2")
    assert folder
    return make(folder, QUICK[size], 40_000) if quick else make(folder, SIZES[size])


def _some(data: Data, places: np.ndarray) -> Grams:
    """Returns some validation examples, in order."""
    valid = data.valid
    return Grams(
        valid._replace(contexts=valid.contexts[places], target=valid.target[places]), data.counts, ordered=True
    )


def _warm(who: str) -> None:
    """Compiles the kernels, untimed: on the same shapes except the number of classes."""
    rng = np.random.default_rng(0)
    contexts, target = rng.integers(0, 5_000, (2_000, CONTEXT)).astype(np.int32), rng.integers(0, 5_000, 2_000)
    examples = Examples(contexts, target.astype(np.int32), 5_000, 1.0)
    feed = Grams(examples, np.arange(5_000, 0, -1))
    engine = _engine(who, {}, feed)
    for _ in engine.run(feed):
        pass
    engine.evaluate(feed)


def _about(data: Data, judged: Grams) -> str:
    return (
        f"WikiText-2, {len(data.train.target):,} examples ({data.train.share:.0%} of all); measured on "
        f"{len(judged.examples.target):,} of validation ({data.valid.share:.0%} are of these classes)"
    )


def _line(record: dict[str, Any]) -> str:
    figures = ", ".join(f"{name} {values[0]:.4g}" for name, values in record["quality"].items())
    return f"{record['work']}, {record['who']}: {figures}  {record['params']}"

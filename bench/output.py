"""The output layer alone, by processor time: a training step at 250 thousand classes, and the ten likeliest classes."""

import itertools
import math
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.measure import Work, append, measure, show
from bench.peers import adaptive_softmax, peer
from hybrid.engine import Engine
from hybrid.feeds.text import Text, documentation, read
from hybrid.models import language
from hybrid.readout import FullReadout, NeighbourReadout, SampledReadout, TreeReadout
from hybrid.train.options import choose

CLASSES, WIDTH, BATCH, RATE = 250_000, 128, 512, 0.02
BATCHES = 8  # different targets and hidden vectors
READOUTS = {"tree": TreeReadout, "sampled": SampledReadout, "full": FullReadout}
ROWS, K = 512, 10  # of a search


def run(arguments) -> None:
    """Steps of every readout beside PyTorch's adaptive softmax; then searches in a language model of one epoch."""
    classes = 5_000 if arguments.quick else CLASSES
    task = Task(classes, arguments.threads)
    records = measure([*(task.ours(readout) for readout in READOUTS), *task.torch_adaptive()], arguments.repeat)
    _publish(records, arguments)
    _publish(measure(_searches(arguments), arguments.repeat), arguments)


def _publish(records: list[dict], arguments) -> None:
    peers = [record for record in records if record["who"] != "ours"]
    for ours in records[: len(records) - len(peers)]:
        show([ours, *peers])
    append(arguments.json, records)


def timed(call) -> float:
    """Processor seconds of a call, over all threads."""
    start = time.process_time()
    call()
    return time.process_time() - start


class Task:
    """Hidden vectors, and targets by Zipf's law."""

    def __init__(self, classes: int, threads: int):
        rng = np.random.default_rng(0)
        self.threads = threads
        self.counts = np.maximum(1e9 / np.arange(1, classes + 1), 1).astype(np.int64)
        chance = np.cumsum(self.counts) / self.counts.sum()
        drawn = np.searchsorted(chance, rng.random((BATCHES, BATCH)))
        self.targets = np.minimum(drawn, classes - 1).astype(np.int32)
        self.hidden = rng.standard_normal((BATCHES, BATCH, WIDTH), np.float32)

    def work(self, who: str, steps: int, step, check, **params) -> Work:
        """The record of one rival, whose run takes `steps` steps."""

        def run():
            return timed(lambda: [step() for _ in range(steps)])

        params = {"classes": len(self.counts), "width": WIDTH, "batch": BATCH} | params
        amount, unit = steps * BATCH, "examples/processor-s"
        return Work("output.step", who, params, amount, unit, run, check, threads=self.threads, own_clock=True)

    def ours(self, readout: str) -> Work:
        """One of our readouts; its arithmetic is held to oracles in tests/, here it must learn what it is shown."""
        made = READOUTS[readout](self.counts, WIDTH, batch=BATCH, rate=RATE)
        turn, grad = itertools.cycle(range(BATCHES)), np.empty((BATCH, WIDTH), np.float32)
        before = made.log_prob(self.hidden[0], self.targets[0]).mean()

        def step():
            at = next(turn)
            made.step(grad, self.hidden[at], self.targets[at])

        def check():
            if readout != "tree" and abs(before + math.log(len(self.counts))) > 1e-3:
                raise AssertionError(
                    f"{readout}: {-before} nats untrained, expected log V = {math.log(len(self.counts))}"
                )
            if not (after := made.log_prob(self.hidden[0], self.targets[0]).mean()) > before:
                raise AssertionError(f"{readout}: {-after} nats after a step on the batch, {-before} before")

        more = {"negatives": made.negatives} if readout == "sampled" else {}
        return self.work("ours", 1 if readout == "full" else 16, step, check, readout=readout, **more)

    def torch_adaptive(self) -> list[Work]:
        """PyTorch's adaptive softmax."""
        torch = peer("torch")
        if not torch:
            return []
        torch.set_num_threads(self.threads)
        cutoffs = [cut for cut in (2_000, 20_000) if cut < len(self.counts)]
        who, step, check = adaptive_softmax(self.hidden, self.targets, len(self.counts), cutoffs, RATE)
        return [self.work(who, 1, step, check)]


def _searches(arguments) -> list[Work]:
    """The K likeliest next words of ROWS contexts of the validation text, by every way there is."""
    train, valid = _texts(arguments.quick)
    tree, hidden = _trained("tree", train, valid, arguments.threads)
    table, of_table = _trained("sampled", train, valid, arguments.threads)  # its weights are those of a full softmax
    forest = NeighbourReadout(table, exact_below=0)
    forest.build()
    params = {"data": "/".join(Path(train.source).parts[-2:]), "classes": tree.classes, "width": tree.width, "k": K}

    def work(search: str, recall: float, find, check=lambda: None) -> Work:
        facts = params | {"search": search, "recall": round(recall, 3)}
        made = Work("output.search", "ours", facts, ROWS, "rows/processor-s", lambda: timed(find), check)
        return replace(made, threads=arguments.threads, own_clock=True)

    return [
        work("tree, exact", 1, lambda: tree.best(hidden, K), lambda: _check(tree, hidden)),
        work("table, exact", 1, lambda: table.best(of_table, K), lambda: _check(table, of_table)),
        work("table, Annoy", forest.recall(of_table, K), lambda: forest.best(of_table, K)),
    ]


def _texts(quick: bool) -> tuple[Text, Text]:
    """WikiText-2 where HYBRID_DATA has it, else Python's documentation."""
    folder = Path(os.environ.get("HYBRID_DATA", "data")) / "wikitext-2"
    if quick or not folder.exists():
        print(f"text: Python's documentation, not {folder} (HYBRID_DATA names the folder that holds wikitext-2/)")
        parts = documentation().split(seed=0)
        return parts.train, parts.valid
    return read(folder / "train.txt"), read(folder / "valid.txt")


def _trained(readout: str, train: Text, valid: Text, threads: int):
    """The readout of a language model after one epoch, and the hidden vectors of ROWS contexts."""
    chosen = choose("language", text="-", readout=readout, epochs=1, threads=threads, device="cpu")
    job = language.Language(chosen, train, valid)
    engine: Engine = job.make()
    for _ in engine.run(job.feed):
        pass
    asked = language.measured_feed(chosen, valid, job.vocabulary)[0]
    return engine.readout, np.ascontiguousarray(engine.hidden(asked.ids)[:ROWS])


def _check(readout, hidden: np.ndarray) -> None:
    """Against the log-probability of every class."""
    for row in hidden[:4]:
        every = readout.log_prob(np.repeat(row[None], readout.classes, 0), np.arange(readout.classes, dtype=np.int32))
        found = readout.best(row[None], K)[1][0]
        np.testing.assert_allclose(found, np.sort(every)[::-1][:K], rtol=1e-3, atol=1e-4)

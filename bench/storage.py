"""Rows kept in 16 bits: what a tree step and an embedding at 1 M rows gain by it, and what a language model loses."""

import math
import statistics

import numpy as np

from bench.measure import Work, append, commit, environment, measure, show
from bench.tree import Task
from bench.tree_task import BATCH, RATE
from cpu import halves, rows, tree_softmax
from cpu.aligned import empty
from hybrid.contract import Learned, Rule
from hybrid.feeds.text import documentation
from hybrid.models import language
from hybrid.sparse import STORAGES, Moves
from hybrid.train.options import choose

WIDTH = 64  # of an embedding
SEEDS = (0, 1, 2)
READOUTS = ("tree", "full")


def run(arguments) -> None:
    """Steps a second, storages in turns; then perplexities on Python's documentation, three seeds."""
    task = Task(20_000 if arguments.quick else 1_000_000, arguments.threads)
    for works in ([tree(task, storage) for storage in STORAGES], [table(task, storage) for storage in STORAGES]):
        records = measure(works, arguments.repeat)
        show(records)
        append(arguments.json, records)
    for readout in READOUTS:
        for storage in STORAGES:
            append(arguments.json, [perplexity(readout, storage, arguments)])


def stored(values: np.ndarray, storage: str) -> np.ndarray:
    """A table of these numbers."""
    made = Moves(storage=storage).table(*values.shape)
    halves.narrow(made, values)
    return made


def rule(storage: str, step: int) -> Rule:
    """Plain SGD."""
    return Rule(RATE, dice=None if storage == "float32" else step)


def tree(task: Task, storage: str) -> Work:
    """One run is a training step on each batch."""
    nodes, again = stored(task.nodes, storage), iter(range(2**62))
    work = tree_softmax.workspace(BATCH, nodes.shape[1], task.tree.depth, np.float32)
    grad, loss = empty((BATCH, nodes.shape[1]), np.float32), empty((BATCH,), np.float32)

    def step(b):
        given = work, task.tree, task.hidden[b % len(task.hidden)], task.targets[b], None, rule(storage, next(again))
        tree_softmax.step(grad, loss, Learned(nodes), *given, "deterministic")

    def check():
        """The loss of the next step is what log_prob finds in float32 for the first example of the batch."""
        found, wide = np.empty(1, np.float32), Learned(halves.wide(nodes))
        tree_softmax.log_prob(found, wide, task.tree, task.hidden[0][:1], task.targets[0][:1])
        step(0)
        np.testing.assert_allclose(loss[0], -found[0], rtol=1e-4)

    done = task.work("ours", len(task.targets), lambda: [step(b) for b in range(len(task.targets))], check)
    return named(done, "storage.tree", storage, nodes)


def table(task: Task, storage: str) -> Work:
    """One run gathers the rows of every batch, four an example, and moves them."""
    values = np.random.default_rng(1).normal(size=(task.classes, WIDTH)).astype(np.float32) * np.float32(0.1)
    made, again = stored(values, storage), iter(range(2**62))
    ids = [np.concatenate([task.draw(BATCH) for _ in range(4)]) for _ in task.targets]
    out = empty((len(ids[0]), WIDTH), np.float32)

    def step(b):
        rows.gather(out, made, ids[b])
        rows.scatter(Learned(made), ids[b], out, rule(storage, next(again)))

    def check():
        expected = halves.wide(made)[ids[0]]
        rows.gather(out, made, ids[0])
        np.testing.assert_array_equal(out, expected)

    done = task.work("ours", len(ids), lambda: [step(b) for b in range(len(ids))], check)
    return named(done, "storage.rows", storage, made)


def named(work: Work, name: str, storage: str, rows: np.ndarray) -> Work:
    """A work of a storage, with its memory."""
    work.work, work.params = name, work.params | {"width": rows.shape[1]}
    work.who, work.more = storage, {"table_bytes": rows.nbytes}
    return work


def perplexity(readout: str, storage: str, arguments) -> dict:
    """One record of all seeds: rows and readout stored so, and everything else the default."""
    epochs, seeds = (1, SEEDS[:1]) if arguments.quick else (6, SEEDS)
    quality: dict[str, list[float]] = {"perplexity": []}
    for seed in seeds:
        parts = documentation().split(valid=0.1, test=0.1, seed=seed)
        options = choose(
            "language", readout=readout, text="-", epochs=epochs, seed=seed, device="cpu", threads=arguments.threads,
            rows_storage=storage, readout_storage=storage,
        )  # fmt: skip
        job = language.Language(options, *parts)
        engine = job.make()
        for _ in engine.run(job.feed):
            pass
        quality["perplexity"].append(round(job.final(engine)["test_perplexity"], 2))
    mean = statistics.mean(quality["perplexity"])
    print(
        f"storage.quality {readout:6} {storage:9} perplexity {mean:.2f} ({', '.join(map(str, quality['perplexity']))})"
    )
    assert math.isfinite(mean)
    return {
        "bench": "storage",
        "work": "storage.quality",
        "who": storage,
        "params": {"readout": readout, "epochs": epochs},
        "quality": quality,
        "threads": arguments.threads,
        "device": "cpu",
        "commit": commit(),
        "env": environment(),
    }

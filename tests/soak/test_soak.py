"""Random engines in many orders of work, beside their serial runs: make soak N=200 SEED=0.

A seed draws an engine, its data and its settings. Its overlapped run, and one that is left, saved, resumed, copied, interrupted
and broken, in orders of work that the seed draws, give each tick's loss and each array of the serial run to the byte: of stages
one after another on one thread. SOAK_SEEDS and SOAK_FIRST are the numbers for pytest; without them one short seed is run.
"""

import contextlib
import copy
import os
import random
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numba
import numpy as np
import pytest

import cpu.device
from hybrid import GBCE, SGD, Adagrad, HeadParts, RowAdagrad, SampledSoftmax
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding, Inputs
from hybrid.feeds import Batch
from hybrid.optimisers import TRUNK, named
from hybrid.readout import FullReadout, HeadReadout, MixtureReadout, SampledReadout, TreeReadout
from hybrid.schedule.rates import SCHEDULES
from hybrid.schedule.schedule import Plan, Schedule
from hybrid.trunk.mlp import MLP
from tests.support.interrupts import Lines
from tests.support.small_engine import through

BATCHES = 37  # that a feed has, over and over
EACH = 400  # ticks of each way of a seed
FIRST, SEEDS = (int(os.environ.get(f"SOAK_{name}", 0)) for name in ("FIRST", "SEEDS"))
TICKS = 40  # of the short seed
SHORT = 252  # a seed: three micro-batches, an MLP, a tree
LEGS = 16  # in which a run is about done
READOUTS: dict[str, Callable[..., Any]] = {
    "tree": TreeReadout,
    "balanced tree": partial(TreeReadout, tree="balanced"),
    "full": FullReadout,
    "sampled": partial(SampledReadout, loss=SampledSoftmax(5)),
    "gbce": partial(SampledReadout, loss=GBCE(4)),
    "head": partial(HeadReadout, parts=HeadParts(head=4, clusters=3)),
    "mixture": lambda *sizes, **more: MixtureReadout(
        [TreeReadout(*sizes, tree=shape, **more) for shape in ("huffman", "balanced")], pace=0.1
    ),
    "tree of several targets": TreeReadout,
}
RULES = (SGD, RowAdagrad, Adagrad)
Ticks = dict[int, bytes]  # the loss of each, as bytes of a float64


class Case:
    """An engine, its data and its settings, drawn from a seed; targets are a fixed function of ids or numbers."""

    epochs = 1

    def __init__(self, seed: int, ticks: int):
        rng = random.Random(f"engine {seed}")
        self.seed, self.ticks_per_epoch = seed, ticks
        self.kind = rng.choice(["context", "context", "bags", "values", "numbers"])
        self.depth = rng.choice(["none", "unit", "unit", "mlp"] if self.kind != "numbers" else ["unit", "mlp"])
        self.context = rng.randint(1, 4) if self.depth != "none" else 1
        width, self.hidden = rng.randint(2, 6), rng.randint(2, 6)
        rows, self.classes = rng.randint(8, 40), rng.randint(12, 40)
        self.rows, self.width = (0, width) if self.kind == "numbers" else (rows, 0)
        self.batch, self.weighed = rng.randint(1, 12), rng.random() < 0.3
        self.counts = np.array([rng.randint(0, 99) for _ in range(self.classes)])
        self.readout = rng.choice(list(READOUTS))
        self.trunk: dict[str, Any] = {"dropout": rng.choice([0, 0.3])}
        move = rng.choice(["sgd", "adam", "adamw"])
        self.trunk["optimiser"] = named(move, TRUNK, rate=0.01, clip=1.0)
        bags = {"bags": "mean", "values": "weighted"}.get(self.kind)
        shape: dict[str, Any] = {"bags": bags} if bags else {"per_example": self.context}
        shape |= {"rows": rows, "width": width, "spread": 0.3, "seed": seed}
        self.of_rows = shape | {"optimiser": rng.choice(RULES)(0.02)}
        self.of_readout = {"batch": self.batch, "optimiser": rng.choice(RULES)(0.02)}
        self.settings: dict[str, Any] = {
            "micro_batches": rng.randint(1, min(4, self.batch)),
            "schedule": rng.choice(list(SCHEDULES)),
            "warmup": rng.choice([0, ticks // 10]),
        }
        self.most_ids = 0 if self.width else 5 * self.batch
        self._made = [self._drawn(np.random.default_rng([seed, number])) for number in range(BATCHES)]
        self.most_targets = max(len(batch.target) for batch in self._made)
        self.breaks = -1  # the tick at which the feed fails, once

    def __str__(self) -> str:
        return f"{self.kind}, trunk {self.depth}, {self.readout}, batch {self.batch}, {self.settings}"

    def __len__(self) -> int:
        return self.ticks_per_epoch

    def __getitem__(self, tick: int) -> Batch:
        if tick == self.breaks:
            self.breaks = -1
            raise Planted("the feed")
        return self._made[tick % BATCHES]

    def describe(self) -> dict[str, Any]:
        """As a feed."""
        return {"kind": "soak"}

    def _drawn(self, rng: np.random.Generator) -> Batch:
        """Batches are of any size up to the most, or empty."""
        size = int(rng.choice([self.batch, self.batch, rng.integers(0, self.batch + 1)]))
        weight = (rng.integers(0, 3, size) / 2).astype(np.float32) if self.weighed and rng.random() < 0.7 else None
        several = self.readout == "tree of several targets"
        target_at = np.concatenate([[0], np.cumsum(rng.integers(0, 4, size))]) if several else None
        target = rng.integers(0, self.classes, size if target_at is None else target_at[-1]).astype(np.int32)
        if self.kind == "numbers":
            x = rng.normal(size=(size, self.width)).astype(np.float32)
            return Batch(None, None, target, weight, None, x, target_at)
        bag_at, values, count = None, None, size * self.context
        if self.kind in ("bags", "values"):
            bag_at = np.concatenate([[0], np.cumsum(rng.integers(0, 6, size))])
            count = int(bag_at[-1])
            values = rng.normal(size=count).astype(np.float32) if self.kind == "values" else None
        ids = rng.integers(0, self.rows, count).astype(np.int32)
        return Batch(ids, bag_at, target, weight, values, None, target_at)

    def make(self, threads: int, overlap: bool | None) -> Engine:
        """The engine at its beginning."""
        rows: Any = Inputs(self.width) if self.kind == "numbers" else Embedding(**self.of_rows)
        trunk: Any = None
        if self.depth == "unit":
            trunk = MLP([rows.outputs, 5, self.hidden], seed=self.seed, optimiser=SGD(0.05, momentum=0.5))
        elif self.depth == "mlp":
            trunk = MLP((rows.outputs, 6, 6, self.hidden), "tanh", seed=self.seed, **self.trunk)
        readout = READOUTS[self.readout](self.counts, self.hidden if trunk else rows.outputs, **self.of_readout)
        settings = {"device": "cpu", "threads": threads, "overlap": overlap} | self.settings
        return Engine(rows, trunk, readout, **through(settings))


def held(engine: Engine) -> dict[str, bytes]:
    """All that it is."""
    arrays = {name: array.tobytes() for name, array in engine.parameters().items()}
    return arrays | {"state": repr(engine.readout.state()).encode()}


# Queues of the CPU in one thread: work is put off until somebody waits, and done in a legal order drawn from a seed. What the
# simulated driver of tests/cudasim is to streams, this is to cpu/device.py: a stage that waits for too little runs too early.


class Order:
    """The work of all queues of a thread that is not done yet."""

    def __init__(self, seed: str):
        self._rng, self._queues = random.Random(seed), list[Queue]()
        self._eager = self._rng.choice([0.0, 0.1, 0.5, 0.9])  # how likely some is done whenever more is put on a queue

    def put(self, queue: "Queue") -> None:
        """A queue has got more work; some time passes."""
        self._queues = [one for one in self._queues if one.left]
        if queue not in self._queues:
            self._queues.append(queue)
        while self._rng.random() < self._eager and self.step():
            pass

    def step(self) -> bool:
        """Do one piece of work that waits for no other; False where there is none."""
        ready = [queue for queue in self._queues if queue.ready]
        if ready:
            self._rng.choice(ready).do()
        return bool(ready)


class Event:
    """A point on a queue. Who waits for it lets others go on, too."""

    def __init__(self, order: Order, work: Callable[[], Any], after: list[Any]):
        self._order, self._work, self.after = order, work, after
        self.past, self._result = False, None
        self.failure: BaseException | None = None

    def wait(self) -> Any:
        """Let work be done until this is; its result, or what it raised."""
        while not self.past:
            assert self._order.step(), "work waits for each other"
        if self.failure:
            raise self.failure
        return self._result

    def do(self) -> None:
        """Do the work now."""
        try:
            for event in self.after:
                event.wait()
            self._result = self._work()
        except BaseException as failure:
            self.failure = failure
        self.past = True


class Queue:
    """As cpu.device.Queue: in order, and no more work after a failure."""

    apart = True

    def __init__(self, order: Order, name: str, threads: int):
        self.name, self.left = name, deque[Event]()
        self._order, self._threads = order, cpu.device.check_threads(threads)
        self._failure: BaseException | None = None

    def run(self, work: Any, *arguments: Any, after: Any = (), note: Any = None) -> Event:
        """Put work on the queue."""

        def timed() -> Any:
            if self._failure:
                raise self._failure
            numba.set_num_threads(self._threads)
            return cpu.device._timed(note, work, arguments)

        self.left.append(event := Event(self._order, timed, list(after)))
        self._order.put(self)
        return event

    @property
    def ready(self) -> bool:
        """Whether its next piece of work waits for no other."""
        return bool(self.left) and all(getattr(event, "past", True) for event in self.left[0].after)

    def do(self) -> None:
        """Do the next piece of work."""
        event = self.left.popleft()
        event.do()
        self._failure = self._failure or event.failure

    def close(self) -> None:
        """Do what was put on the queue."""
        while self.left:
            self.left[-1].wait()


@contextlib.contextmanager
def ordered(seed: str) -> Iterator[None]:
    """A context in which the CPU's queues are of an order drawn from a seed: one for each thread that makes some."""
    orders: dict[str, Order] = {}

    def queue(device: Any, name: str, threads: int, cores: Any = None) -> Queue:
        thread = threading.current_thread().name
        return Queue(orders.setdefault(thread, Order(f"{seed} {thread}")), name, threads)

    with mock.patch.object(cpu.device.Device, "queue", queue):
        yield


class Planted(Exception):
    """What a piece of work or a feed is made to raise."""


class Ordeal:
    """A case's run from its beginning to its end, with trials drawn from the seed.

    ticks   what its caller got
    unseen  ticks that the caller did not get, since the run ended behind them by an interrupt
    log     what has happened, a line each: the trial and the tick before it
    """

    def __init__(self, case: Case, folder: Path):
        self._case, self._folder, self._saved = case, folder / "checkpoint", False
        self._rng = random.Random(f"ordeal {case.seed}")
        self._running: Iterator[Any] | None = None
        self._left, self._act = -1, _fail  # before which piece of work from now something is done, and what
        self.ticks, self.unseen, self.log = Ticks(), set[int](), list[str]()
        self.model = self._made()

    def run(self) -> None:
        """All of it."""
        timed = cpu.device._timed

        def counted(*arguments: Any) -> Any:
            self._left -= 1
            if self._left == -1:
                self._act()
            return timed(*arguments)

        with mock.patch.object(cpu.device, "_timed", counted):
            while self.model.tick < len(self._case):
                trial = self._rng.choice(TRIALS)
                self.log.append(f"tick {self.model.tick}: {trial}")
                getattr(self, trial)()
            self._go(len(self._case) + 1)
            self._leave()

    # What happens

    def leave(self) -> None:
        """The caller stops, and begins another run."""
        self._go()
        self._leave()

    def ask(self) -> None:
        """Between two ticks."""
        self._go()
        batch = next(batch for batch in map(self._case.__getitem__, range(BATCHES)) if batch.examples)
        named = {"ids": batch.ids, "bag_at": batch.bag_at, "values": batch.values}
        self.model.best(k=3, **({"x": batch.x} if batch.ids is None else named))

    def save(self) -> None:
        """Between two ticks of a run that goes on."""
        self._go()
        self._save()

    def resume(self) -> None:
        """The model goes on after a save, and is lost."""
        self.save()
        self._go(self._rng.randrange(5))
        self._load()

    def copy(self) -> None:
        """A copy goes on."""
        self._go()
        model = copy.deepcopy(self.model)
        self._leave()
        self.model = model

    def interrupt(self) -> None:
        """Ctrl-C in a piece of work: the run ends behind its tick."""
        self._plan(_interrupt)
        self._go(20, KeyboardInterrupt)
        assert not self.model.torn, self.model.torn

    def two_interrupts(self) -> None:
        """The second one breaks off the tick."""
        self._plan(lambda: (_interrupt(), _interrupt()) and None)
        self._go(20, KeyboardInterrupt)
        self._whole_or_refused()

    def interrupt_at_lines(self) -> None:
        """Ctrl-C before a line of the package, and maybe another one soon after, in ticks or in a save."""
        first = self._rng.randrange(3000)
        at = [first, first + self._rng.randint(1, 30)][: self._rng.randint(1, 2)]
        with contextlib.suppress(KeyboardInterrupt), Lines(*at):
            self._go(2, KeyboardInterrupt)
            if not self.model.torn:
                self._save()
        self._saved = self._saved or (self._folder / "checkpoint.json").exists()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "Ctrl-C is not Python's own again"
        self._whole_or_refused()

    def fault(self) -> None:
        """A piece of work fails."""
        self._plan(_fail)
        self._go(20, Planted)
        self._whole_or_refused()

    def feed_fails(self) -> None:
        """The feed fails; the model stands between two ticks."""
        self._leave()
        self._case.breaks = self.model.tick + self._rng.randrange(5)
        self._go(20, Planted)
        assert not self.model.torn, self.model.torn
        self._case.breaks = -1

    # By which

    def _plan(self, act: Callable[[], None]) -> None:
        self._left, self._act = self._rng.randrange(100), act

    def _go(self, ticks: int = 0, *failures: type[BaseException]) -> None:
        """Some ticks further; a run that fails has ended."""
        try:
            for _ in range(ticks or self._rng.randint(1, max(2, 2 * len(self._case) // LEGS))):
                self._running = self._running or iter(self.model.run(self._case))
                tick = next(self._running, None)
                if tick is None:
                    self._running = None
                    break
                loss = np.float64(tick.loss).tobytes()
                assert self.ticks.setdefault(tick.number, loss) == loss, f"tick {tick.number} gave another loss before"
        except failures as failure:
            self._running = None
            if isinstance(failure, KeyboardInterrupt) and self.model.tick:
                self.unseen |= {self.model.tick - 1} - self.ticks.keys()
        finally:
            self._left = -1

    def _leave(self) -> None:
        running, self._running = self._running, None
        if running:
            running.close()  # type: ignore[attr-defined]

    def _made(self) -> Engine:
        return self._case.make(self._rng.randint(2, 4), self._rng.choice([False, True, None]))

    def _save(self) -> None:
        self.model.save(self._folder, {"tick": self.model.tick})
        self._saved = True

    def _load(self) -> None:
        """The model of the last save, or a new one where there is none."""
        self._leave()
        way = {"threads": self._rng.randint(2, 4), "overlap": self._rng.choice([False, True, None])}
        self.model = Engine.load(self._folder, device="cpu", **way)[0] if self._saved else self._made()

    def _whole_or_refused(self) -> None:
        """A torn model refuses by name to go on or to be saved, and the last checkpoint is intact; another goes on."""
        if self.model.torn:
            for refused in (lambda: self.model.save(self._folder), lambda: next(iter(self.model.run(self._case)))):
                with pytest.raises(ValueError, match="load the last checkpoint"):
                    refused()
            self._load()


TRIALS = "leave ask save resume copy interrupt two_interrupts interrupt_at_lines fault feed_fails".split()


def _interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def _fail() -> None:
    raise Planted("a piece of work")


def replay(case: Case) -> None:
    """Compare both ways of a case with its serial run. AssertionError where one differs."""
    engine = case.make(1, False)
    expected = {tick.number: np.float64(tick.loss).tobytes() for tick in engine.run(case)}, held(engine)
    with ordered(f"overlapped {case.seed}"):
        engine = case.make(3, True)
        ticks = {tick.number: np.float64(tick.loss).tobytes() for tick in engine.run(case)}
        compare(f"seed {case.seed}, overlapped", (ticks, held(engine)), expected)
    with ordered(f"ordeal {case.seed}"), tempfile.TemporaryDirectory(prefix="soak-") as folder:
        ordeal = Ordeal(case, Path(folder))
        try:
            ordeal.run()
            missed = {tick: expected[0][tick] for tick in ordeal.unseen - ordeal.ticks.keys()}
            compare(f"seed {case.seed}, ordeal", (missed | ordeal.ticks, held(ordeal.model)), expected)
        except BaseException as failure:
            failure.add_note("\n".join(ordeal.log))
            raise


def compare(name: str, found: tuple[Ticks, dict[str, bytes]], expected: tuple[Ticks, dict[str, bytes]]) -> None:
    """AssertionError, saying what, unless two runs are the same."""
    for what, ours, theirs in zip(("tick", "array"), found, expected, strict=True):
        differ = [one for one in ours | theirs if ours.get(one) != theirs.get(one)]  # type: ignore[operator]
        assert not differ, f"{name}: {what} {differ[0]} is the first that differs"


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS) if SEEDS else [SHORT])
def test_all_ways_of_an_engine_give_the_numbers_of_the_serial_run(seed):
    replay(Case(seed, EACH if SEEDS else TICKS))


def test_a_wait_that_is_dropped_is_caught(monkeypatch):
    def dropped(stages):
        return [one._replace(after=()) if one.name == "forward" else one for one in stages]

    made = Schedule.__init__
    monkeypatch.setattr(
        Schedule, "__init__", lambda self, plan, *given, **named: made(self, Plan(*map(dropped, plan)), *given, **named)
    )
    with pytest.raises((AssertionError, FloatingPointError)):
        replay(Case(SHORT, TICKS))

"""A model under training: rows or inputs -> trunk -> readout, on a schedule."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .. import backend, check
from ..feeds import Batch, Feed, most_targets
from ..feeds.fit import fitting
from ..processors import available
from ..ranks.group import Group
from ..readout import Readout
from . import begun, saved
from .asking import Asking, question
from .cores import Cores
from .embedding import Embedding
from .inputs import Inputs
from .ranked import routed
from .runner import Course, Runner
from .scale import Scale, chosen
from .schedule import Schedule, Tick, part
from .slot import Slot
from .suits import check_delay, check_feed, check_place, check_widths, dense_backend, overlap_of
from .tied import NAME as TIED
from .tied import check_settings, tie
from .trace import Trace
from .trunk import TrunkProtocol


class Engine(Runner[Tick]):
    """Trains an embedding, a trunk (None: the rows are the hidden vectors) and a readout together.

    embedding      on the CPU, or on the trunk's GPU (its backend): then ids are copied to the GPU, and the trunk's inputs
                   and their gradients stay there. Or Inputs, for feeds whose batches have numbers instead of ids
    readout        on the CPU, or on the trunk's GPU: then targets and losses are copied, and hidden vectors and their
                   gradients stay there; for a split tree, which is on both, all of them are copied
    device         "cpu", "cuda:0" or None: where the dense stages run. Sparse stages run on the CPU, except those of rows
                   and a readout on the trunk's GPU
    threads        CPU threads in total (None: all cores that this process may use, see cpu/threads.py)
    micro_batches  parts a batch is cut into, so that dense and sparse stages of different parts overlap; the readout's
                   parameters move after every part
    delay          batches begun and not finished: 0 is exact, 1 overlaps more and learns on parameters a batch old
    overlap        True: dense and sparse stages at the same time, sharing the threads; False: one after another, each on
                   all threads; None: measure both in the first ticks and keep the faster. The numbers are the same.
    schedule       how all rates fall over the feed: "constant", "linear", "cosine" or "step", see hybrid/engine/scale.py
    warmup         ticks in which all rates rise linearly before that
    decay          schedule None: True is "linear", as in word2vec, False is "constant"
    tied           True: the readout's rows are the embedding's, one table: of a full or sampled readout that is as wide, on
                   the CPU, with one micro-batch and no delay. It starts as the embedding does
    update         "online": rows and readout move with each example (a run of one target together) and not at the end of a
                   batch, as in word2vec; without a trunk, of a tree or negative sampling. One thread does it, while another one
                   makes the next batch
    ranks          with whom it learns, see hybrid/engine/ranked.py: all make the same calls of an engine of the same arguments.

    tick, torn, trace  see Runner
    whole              a batch has a multiple of so many examples, which micro-batches do not cut: the trunk's sequence, else 1
    cores              how the cores are spent in the last run; None before the first

    Raises ValueError where widths do not fit together, for rows or a readout on another device than the trunk, for a device
    where the trunk does not compute, for threads, delay, micro_batches or warmup out of range, and for an unknown schedule.
    """

    def __init__(
        self,
        embedding: Embedding | Inputs,
        trunk: TrunkProtocol | None,
        readout: Readout,
        *,
        device: str | None = None,
        threads: int | None = None,
        micro_batches: int = 1,
        delay: int = 0,
        overlap: bool | None = None,
        decay: bool = True,
        schedule: str | None = None,
        warmup: int = 0,
        tied: bool = False,
        update: str = "batch",
        ranks: Group | None = None,
    ):
        super().__init__("engine", "ask between two ticks, or give every thread an engine of its own (copy.deepcopy)")
        check.whole("micro_batches", micro_batches, 1)
        check_widths(embedding, trunk, readout)
        check_delay(delay, trunk)
        self.embedding: Any = embedding
        self.trunk, self.readout = trunk, readout
        self.micro_batches, self.delay, self.overlap, self.decay = micro_batches, delay, overlap, decay
        self.schedule, self.warmup = chosen(schedule, decay), check.whole("warmup", warmup, 0)
        self.threads = available() if threads is None else threads
        self.sparse = backend.choose("cpu")
        self.dense = dense_backend(trunk, device) if trunk else self.sparse
        for name, placed in (("embedding", embedding), ("readout", readout)):
            check_place(name, placed, trunk, self.dense)
        self.whole = getattr(trunk, "whole", 1)
        self.tied, self.update = bool(tied), update
        self.ranks = ranks or Group(alone=True)
        self.route = routed(self)
        self.inline = self.sparse.device.inline("all", self.threads)
        dense_inline = self.dense.device.inline("all", self.threads)
        self._asking = Asking(self.route, dense_inline, self.inline)
        if trunk:
            dense_inline.run(trunk.place, self.dense.device, self.dense)
        if tied:
            check_settings(self)
            tie(embedding, readout)
        self.cores: Cores | None = None
        self._begun: dict[str, np.ndarray] = {}
        self._begun_of = self._sizes

    # Training

    def run(self, feed: Feed) -> Iterator[Tick]:
        """Train on the feed, from the tick where this engine stands to the feed's end; yields every finished tick.

        Between two ticks the caller may evaluate, save or stop: nothing but the `delay` batches begun is in flight. After
        a stop the next run goes on with the same numbers as if it had not stopped. An interrupt (SIGINT) waits for the end
        of the tick: KeyboardInterrupt leaves the engine between two ticks, and so does whatever the feed raises.

        Raises ValueError for a feed that does not fit this engine, FloatingPointError, naming the tick, for a loss that is
        not finite, and what a stage raises, with a note of stage and tick. After one of the latter two, and after a second
        interrupt, which breaks off a tick, parameters may have moved in part: such an engine neither runs nor saves any more
        (ValueError), and the last checkpoint stands.
        """
        check_feed(self, feed)
        self._check_whole()
        yield from self._follow(lambda: self._laid_out(feed, len(feed)))

    def _laid_out(self, feed: Feed, ticks: int) -> Course:
        """Queues, buffers and the schedule of a run."""
        self._begun, self._begun_of = self._begun_arrays(), self._sizes
        scale = Scale(self.schedule, ticks, self.warmup)
        self.trace, plan, slots = Trace(), self.route.plan(), self._slots(feed, scale)
        settings = self.threads, overlap_of(self), self.route.online, self.route.queues
        self.cores = Cores(self.dense.device, self.sparse.device, *settings)
        schedule = Schedule(plan, slots, self.cores.queues, self.delay, self.trace, whole=self.whole)
        return Course(
            schedule, self._batches(feed, ticks), lambda slots: begun.restored(slots, self.route, self._begun)
        )

    def _result(self, tick: Tick) -> Tick:
        assert self._schedule and self.cores
        self.cores.note(self._schedule)
        return tick

    def _explain(self, failure: BaseException) -> None:
        if isinstance(failure, FloatingPointError):
            raise FloatingPointError(f"tick {self.tick}: {failure}; the rates may be too high") from None

    def _leave(self) -> None:
        """Keep what the batches begun have computed, and end the queues."""
        assert self.cores
        # A device is closed here where the interpreter ends while a run is under way.
        lost = self.torn or self.dense.device.closed
        self._begun = {} if lost else self._begun_arrays()
        self.cores.close()

    def _batches(self, feed: Feed, ticks: int) -> Iterator[tuple[int, Batch]]:
        for tick in range(self.tick, ticks):
            yield tick, self._fitting(feed, tick)

    def _fitting(self, feed: Feed, tick: int) -> Batch:
        return fitting(feed, tick, self.embedding, several=self.route.several, whole=self.whole)

    def _slots(self, feed: Feed, scale: Callable[[int], float]) -> list[list[Slot]]:
        """All buffers of a run: delay + 2 sets of one slot a micro-batch."""
        most = feed.batch // self.whole
        if self.micro_batches > most:
            parts = "examples" if self.whole == 1 else f"sequences of {self.whole}"
            raise ValueError(
                f"micro_batches: found {self.micro_batches}, expected 1 to {most}, the {parts} of the feed's batches"
            )
        targets = most_targets(feed)
        sizes = (part(feed.batch, self.micro_batches, self.whole), feed.most_ids, scale, max(targets, feed.batch))
        return [[self.route.slot(*sizes) for _ in range(self.micro_batches)] for _ in range(self.delay + 2)]

    def _begun_arrays(self) -> dict[str, np.ndarray]:
        """Of batches begun and not finished: as they stand, or as the last run left them; none of a smaller engine's feed."""
        self.settle()
        if self._begun_of != self._sizes:
            return {}
        under_way = self._schedule.begun if self._schedule else ()
        return begun.ahead(self._begun, self.tick) | begun.kept(under_way, self.route)

    @property
    def _sizes(self) -> tuple[int, int]:
        return self.embedding.rows, self.readout.classes

    # Asking

    def hidden(
        self, ids: Any = None, bag_at: Any = None, *, values: Any = None, x: Any = None, rows: Any = None
    ) -> np.ndarray:
        """The hidden vectors (B, D) of B examples.

        ids     whole numbers, as many an example as the embedding concatenates; (B, n) or flat
        bag_at  (B + 1,) whole numbers, for an embedding that averages: example b has ids[bag_at[b]:bag_at[b + 1]]
        values  one float32 an id, for an embedding of weighted bags
        x       (B, width) float32, for an engine with Inputs, instead of ids
        rows    (n,) whole numbers: which of the B are wanted, as the last places of sequences; None: all

        Raises IndexError for an id or row out of range, ValueError for ids that make no whole number of examples, for places
        that do not rise from 0 to the number of ids and for arrays that this engine does not take, RuntimeError while
        another thread is in a tick or asks.
        """
        batch = question(self.embedding, self.whole, ids, bag_at, values, x)
        with self._runs.alone:
            self.settle()
            found = self._asking.hidden(batch, self.tick)
            return found if rows is None else found[check.indices("rows", rows, len(found))]

    def best(
        self,
        ids: Any = None,
        k: int = 10,
        bag_at: Any = None,
        exclude: Any = None,
        *,
        values: Any = None,
        x: Any = None,
        rows: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k most likely classes after each example: ids and log probabilities, both (B, k), most likely first.

        ids, bag_at, values, x, rows  see `hidden`
        exclude                       scipy.sparse CSR (B, V): the classes that each example leaves out; see Readout.best
        """
        with self._runs.alone:
            found: tuple[np.ndarray, np.ndarray]
            hidden = self.hidden(ids, bag_at, values=values, x=x, rows=rows)
            found = self.inline.run(self.readout.best, hidden, k, exclude).wait()
            return found

    def scores(
        self, ids: Any = None, bag_at: Any = None, *, values: Any = None, x: Any = None, rows: Any = None
    ) -> np.ndarray:
        """The log-probabilities of all classes after each example, (B, V) float32: 4 B V bytes; see Readout.scores."""
        with self._runs.alone:
            hidden = self.hidden(ids, bag_at, values=values, x=x, rows=rows)
            found: np.ndarray = self.inline.run(self.readout.scores, hidden).wait()
            return found

    def evaluate(self, feed: Feed) -> float:
        """Mean loss in nats over the feed's first epoch, weighted where examples have weights; exp of it is the perplexity.

        Nothing learns. Raises ValueError for a feed that does not fit this engine, or without any example that counts.
        """
        check_feed(self, feed)
        loss = total = 0.0
        unlabelled = getattr(self.readout, "counts_unlabelled", False)
        with self._runs.alone:
            self.settle()
            slot = self._asking.slot(feed.batch, feed.most_ids, targets=max(most_targets(feed), feed.batch))
            for tick in range(feed.ticks_per_epoch):
                batch = self._fitting(feed, tick)
                loss += self._asking.loss(self.readout, batch, self._asking.hidden(batch, self.tick, slot))
                slot.release()
                total += batch.total(unlabelled)
        if not total:
            raise ValueError("evaluation: the feed has no example with a target and a weight above 0, expected some")
        return loss / total

    # Keeping

    def parameters(self) -> dict[str, np.ndarray]:
        """Every parameter and optimiser state, by name, as they stand now: the host's live arrays."""
        if self.trunk:
            self.settle()
            self.trunk.fetch()
        parts = {"embedding": self.embedding, "trunk": self.trunk, "readout": self.readout}
        owned = {part: owner.parameters() for part, owner in parts.items() if owner is not None}
        found = {f"{part}.{name}": array for part, arrays in owned.items() for name, array in arrays.items()}
        return {name: array for name, array in found.items() if not (self.tied and name == TIED)}

    @property
    def size(self) -> int:
        """How many numbers are learned."""
        return saved.size(self)

    def save(self, folder: str | Path, facts: dict[str, Any] | None = None) -> None:
        """Write a checkpoint, atomically, keeping the one before; also between the ticks of a run; of ranks all call it.

        facts  whatever else should come back from `load`, JSON-able

        Raises ValueError where a tick failed half-way; see hybrid/storage/checkpoint.py for the rest.
        """
        self._check_whole()
        with self._runs.alone:
            saved.save(self, folder, facts or {}, self._begun_arrays())

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        trunk: TrunkProtocol | None = None,
        device: str | None = None,
        rows_device: str = "cpu",
        readout_device: str = "cpu",
        threads: int | None = None,
        overlap: bool | None = None,
        ranks: Group | None = None,
    ) -> tuple["Engine", dict[str, Any]]:
        """The engine of a checkpoint, standing where it was saved, and the facts saved with it.

        folder  of the checkpoint or of its run (the latest save), or one of the checkpoint's JSON files
        trunk   where no checkpoint keeps all of it: a TorchTrunk made as the one that was saved, which is filled
        device, rows_device, readout_device  where trunk, rows and readout are from here on, wherever they were before

        Raises ValueError or OSError for a checkpoint that is missing, truncated, altered or of another format.
        """
        places = {"rows": rows_device, "readout": readout_device}
        machine = {"device": device, "threads": threads, "overlap": overlap}
        return saved.load(cls, folder, places, ranks or Group(alone=True), given=trunk, **machine)

    def go_on(self, tick: int, arrays: dict[str, np.ndarray]) -> None:
        """Stand behind so many ticks; arrays: of batches begun and not finished, see hybrid/engine/begun.py."""
        self.tick, self._begun, self._begun_of = tick, arrays, self._sizes

    def __reduce__(self) -> tuple[Any, ...]:
        """An engine of its own parts, which stands where this one stands; not for one that failed half-way."""
        self._check_whole()
        names = ("threads", "micro_batches", "delay", "overlap", "decay", "schedule", "warmup", "tied", "update")
        settings = {name: getattr(self, name) for name in names} | {"device": self.dense.name}
        with self._runs.alone:
            arrays = {name: array.copy() for name, array in self._begun_arrays().items()}
            if self.trunk:
                self.settle()
            return _again, (self.embedding, self.trunk, self.readout, settings, self.tick, arrays)


def _again(
    embedding: Embedding | Inputs,
    trunk: TrunkProtocol | None,
    readout: Readout,
    settings: dict[str, Any],
    tick: int,
    begun: dict[str, np.ndarray],
) -> Engine:
    """An engine as it was pickled or copied."""
    engine = Engine(embedding, trunk, readout, **settings)
    engine.go_on(tick, begun)
    return engine

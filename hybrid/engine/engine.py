"""The engine, a model under training: rows or inputs -> trunk -> readout, run by a schedule."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .. import backend, check, sparse, trees
from .. import readout as readouts
from .. import trunk as trunks
from ..feeds import Batch, Feed, fitting, most_targets, width
from ..machine import available
from ..readout import Readout, base
from ..schedule.rates import RateSchedule
from ..schedule.runner import Course, Runner
from ..schedule.schedule import Cores, Schedule, Tick, part
from ..schedule.slot import Slot
from ..schedule.trace import Trace
from ..trunk import TrunkProtocol
from .embedding import Embedding, Inputs, rebuild
from .route import Pipeline, Route, routed

SHARED = "readout.weights"  # name of the shared table in a tied engine; its parameters list only the embedding's
# Name suffixes of arrays that are not trained
STATE = ("velocity", "mean", "squares", "updates", "counts", "parents", "leaf", "leaf_up", "node_up", "slot")


class Engine(Runner[Tick]):
    """Joint training of an embedding, a trunk (None: the rows are the hidden vectors) and a readout.

    embedding      on the CPU, or on the trunk's GPU (its backend): then ids are copied to the GPU, and the trunk's inputs and
                   their gradients stay there. Or Inputs, for feeds whose batches have numbers instead of ids
    readout        on the CPU, or on the trunk's GPU: then targets and losses are copied, and hidden vectors and gradients
                   stay there; a clustered head is on both, and all of them are copied
    device         "cpu", "cuda:0" or None: of the dense stages. Sparse ones run where rows and readout are
    threads        total CPU threads (None: all cores available to this process, see cpu/runtime/threads.py)
    pipeline       flow of batches: Pipeline(micro_batches=2), ...; None: whole batches in sequence, see Pipeline
    schedule       of all rates: "constant", "linear", "cosine" or "step"; with warm-up RateSchedule("cosine", warmup=100)
    tied           True: the readout uses the embedding's table, initialised as the embedding. For full or sampled readouts of
                   equal width, on the CPU, with one micro-batch

    tick, torn, trace  see Runner
    whole              the trunk's sequence length, otherwise 1: batches and micro-batches are multiples of it
    cores              use of the cores in the last run; None before the first

    Raises ValueError for mismatched widths, rows or readout on a third device, a device unsupported by the trunk, threads out
    of range, and an unknown schedule.
    """

    def __init__(
        self,
        embedding: Embedding | Inputs,
        trunk: TrunkProtocol | None,
        readout: Readout,
        *,
        device: str | None = None,
        threads: int | None = None,
        pipeline: Pipeline | None = None,
        schedule: str | RateSchedule = "linear",
        tied: bool = False,
    ):
        super().__init__("engine", "ask between two ticks, or give every thread an engine of its own (copy.deepcopy)")
        self.embedding: Any = embedding
        self.trunk, self.readout = trunk, readout
        _check_widths(embedding, trunk, readout)
        way = pipeline or Pipeline()
        self.micro_batches, self.overlap, self.update = way.micro_batches, way.overlap, way.update
        self.schedule = schedule if isinstance(schedule, RateSchedule) else RateSchedule(schedule)
        self.threads = available() if threads is None else threads
        self.sparse = backend.choose("cpu")
        self.dense = _dense_backend(trunk, device) if trunk else self.sparse
        _check_place("embedding", embedding, trunk, self.dense)
        _check_place("readout", readout, trunk, self.dense)
        self.whole = getattr(trunk, "whole", 1)
        self.tied = bool(tied)
        self.route = (way.route or routed)(self)
        self._question = dataclasses.replace(self.route, readout=None)
        self._forward_stages = self._question.begin(self._question.copies)
        self.inline = self.sparse.device.inline("all", self.threads)
        self._dense_inline = self.dense.device.inline("all", self.threads)
        if trunk:
            self._dense_inline.run(trunk.place, self.dense.device, self.dense)
        if tied:
            _tie(self)
        self.cores: Cores | None = None

    # Training

    def run(self, feed: Feed) -> Iterator[Tick]:
        """Trains from the current step to the feed's end; yields every finished step.

        Between two steps the caller may evaluate, save or stop. A stopped run resumes with bit-identical results. An
        interrupt (SIGINT) takes effect at the end of the step: KeyboardInterrupt, like any error of the feed, leaves the
        engine between two steps.

        Raises ValueError for a feed that does not fit this engine; FloatingPointError, with the step, for a loss that is not
        finite; errors of stages, with a note of stage and step. The latter two, and a second interrupt, which aborts a step,
        may leave parameters partly updated. Such an engine rejects runs and saves (ValueError); load the last checkpoint.
        """
        self._check_feed(feed)
        yield from self._follow(lambda: self._laid_out(feed))

    def _check_feed(self, feed: Feed) -> None:
        """Raises ValueError unless a feed's ids, classes and batch sizes fit this engine."""
        if width(feed) != self.embedding.dense:
            raise ValueError(f"feed: has {width(feed)} numbers per example, the engine takes {self.embedding.dense}")
        if feed.rows > self.embedding.rows:
            remedy = "; embedding.add_rows makes more" if self.embedding.rows else ""
            raise ValueError(f"feed: has ids up to {feed.rows - 1}, the embedding {self.embedding.rows} rows{remedy}")
        if feed.batch % self.whole:
            batch = f"feed: has batches of {feed.batch}"
            raise ValueError(f"{batch}, expected a multiple of {self.whole}, the trunk's sequence")
        if feed.classes != self.readout.classes:
            grows = feed.classes > self.readout.classes and hasattr(self.readout, "add_classes")
            remedy = "; readout.add_classes makes more" if grows else ""
            raise ValueError(f"feed: has {feed.classes} classes, the readout {self.readout.classes}{remedy}")
        rows = part(feed.batch, self.micro_batches, self.whole)
        if rows > self.readout.batch:
            raise ValueError(f"feed: {rows} examples per micro-batch, the readout was made for {self.readout.batch}")

    def _laid_out(self, feed: Feed) -> Course:
        route, self.trace = self.route, Trace()
        plan, slots = route.plan(), self._slots(feed, self.schedule.over(len(feed)))
        settings = self.threads, self._overlap(), route.online, route.queues
        self.cores = Cores(self.dense.device, self.sparse.device, *settings)
        schedule = Schedule(plan, slots, self.cores.queues, self.trace, whole=self.whole)
        batches = ((tick, self._batch(feed, tick)) for tick in range(self.tick, len(feed)))
        return Course(schedule, batches)

    def _overlap(self) -> bool | None:
        """Returns True if stages overlap; None: both ways are measured."""
        if self.trunk is None:  # no dense stage to overlap with
            return False
        measured = self.overlap is None and self.dense.device.threads
        return False if measured and getattr(self.trunk, "threaded", False) else self.overlap

    def _result(self, tick: Tick) -> Tick:
        assert self._schedule and self.cores
        self.cores.note(self._schedule)
        return tick

    def _explain(self, failure: BaseException) -> None:
        if isinstance(failure, FloatingPointError):
            raise FloatingPointError(f"tick {self.tick}: {failure}; the rates may be too high") from None

    def _leave(self) -> None:
        assert self.cores
        # If the interpreter exits during a run, the device is already closed here.
        if not (self.torn or self.dense.device.closed):
            self.settle()
        self.cores.close()

    def _batch(self, feed: Feed, tick: int) -> Batch:
        return fitting(feed, tick, self.embedding, several=self.route.several, whole=self.whole)

    def _slots(self, feed: Feed, scale: Callable[[int], float]) -> list[list[Slot]]:
        """Returns the buffers of a run: two sets of one slot per micro-batch."""
        most = feed.batch // self.whole
        if self.micro_batches > most:
            parts = "examples" if self.whole == 1 else f"sequences of {self.whole}"
            raise ValueError(f"micro_batches: found {self.micro_batches}, expected 1 to {most}, the {parts} of a batch")
        rows = part(feed.batch, self.micro_batches, self.whole)
        make = functools.partial(self.route.slot, rows, feed.most_ids, scale, _targets(feed))
        return [[make() for _ in range(self.micro_batches)] for _ in range(2)]

    # Queries

    def hidden(
        self, ids: Any = None, bag_at: Any = None, *, values: Any = None, x: Any = None, rows: Any = None
    ) -> np.ndarray:
        """Returns the hidden vectors (B, D) of B examples.

        ids     whole numbers, per example as many as the embedding concatenates; (B, n) or flat
        bag_at  (B + 1,) whole numbers, for an embedding with bags: example b has ids[bag_at[b]:bag_at[b + 1]]
        values  one float32 per id, for an embedding of weighted bags
        x       (B, width) float32, for an engine with Inputs, instead of ids
        rows    (n,) whole numbers: the selected examples of B, such as the last positions of sequences; None: all

        Raises IndexError for an id or row out of range; ValueError for a partial example, for offsets that do not rise from 0
        to the number of ids, and for unsupported arrays; RuntimeError during another thread's step or query.
        """
        batch = _question(self.embedding, self.whole, ids, bag_at, values, x)
        with self._runs.alone:
            self.settle()
            size = 0 if batch.ids is None else batch.ids.size
            hidden = self._forward(self._question.slot(batch.examples, size), batch, self.tick, 0, batch.examples)
            return hidden if rows is None else hidden[check.indices("rows", rows, len(hidden))]

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
        """Returns the k most likely classes per example: ids and log-probabilities, both (B, k), most likely first.

        A NeighbourReadout returns logits instead of log-probabilities.

        ids, bag_at, values, x, rows  see `hidden`
        exclude                       scipy.sparse CSR (B, V): classes to skip per example; see Readout.best
        """
        with self._runs.alone:
            hidden = self.hidden(ids, bag_at, values=values, x=x, rows=rows)
            return self.inline.run(self.readout.best, hidden, k, exclude).wait()

    def scores(
        self, ids: Any = None, bag_at: Any = None, *, values: Any = None, x: Any = None, rows: Any = None
    ) -> np.ndarray:
        """Returns the log-probabilities of all classes per example, (B, V) float32: 4 B V bytes; see Readout.scores."""
        with self._runs.alone:
            hidden = self.hidden(ids, bag_at, values=values, x=x, rows=rows)
            return self.inline.run(self.readout.scores, hidden).wait()

    def evaluate(self, feed: Feed, *, drawn: bool = False) -> float:
        """Returns the mean loss in nats over the feed's first epoch, weighted by example weights; its exp is the perplexity.

        drawn  True: the loss that the readout learns, among negatives that it draws; for examples of one target

        It trains nothing. Raises ValueError for a feed that does not fit this engine, or without any weighted example;
        FloatingPointError for a loss that is not finite.
        """
        self._check_feed(feed)
        loss = total = 0.0
        with self._runs.alone:
            self.settle()
            slot = self._question.slot(feed.batch, feed.most_ids, targets=_targets(feed))
            for tick in range(feed.ticks_per_epoch):
                batch = self._batch(feed, tick)
                hidden = self._forward(slot, batch, self.tick, 0, batch.examples)
                losses = self.inline.run(_losses, self.readout, hidden, batch.target, batch.target_at, drawn).wait()
                if batch.weight is None:
                    loss += float(losses.sum(dtype=np.float64))
                else:
                    loss += float(np.dot(losses.astype(np.float64), batch.weight))
                slot.release()
                total += batch.total()
        if not total:
            raise ValueError("evaluation: the feed has no example with a target and a weight above 0, expected some")
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"evaluation: found a mean loss of {loss / total}, expected a finite one; take an earlier checkpoint"
            )
        return loss / total

    def _forward(self, slot: Slot, batch: Batch, tick: int, first: int, last: int) -> np.ndarray:
        """Returns the hidden vectors of examples first..last of a batch; the slot stays in use, nothing is trained."""
        slot.fill(tick, 0, batch, first, last)
        slot.take()
        for stage in self._forward_stages if last > first else ():
            (self.inline if stage.queue == "sparse" else self._dense_inline).run(stage.work, slot)
        return slot.hidden

    def _teach(self, feed: Feed, ticks: range) -> None:
        """Trains the readout alone on the batches of some steps, at its initial rate."""
        slot = self._question.slot(feed.batch, feed.most_ids, targets=_targets(feed))
        readout: Any = self.readout
        before, readout.rate_scale = readout.rate_scale, 1.0
        try:
            for tick in ticks:
                batch = self._batch(feed, tick)
                size = part(batch.examples, self.micro_batches, self.whole) or 1  # as in a step
                for first in range(0, batch.examples, size):
                    hidden = self._forward(slot, batch, tick, first, min(first + size, batch.examples))
                    slot.grad = np.empty_like(hidden)  # required by the step, never read
                    self.inline.run(readout.step_slot, slot).wait()
                    slot.release()
        finally:
            readout.rate_scale = before

    # Checkpoints

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns all current parameters and optimiser state by name: the host's live arrays."""
        if self.trunk:
            self.settle()
            self.trunk.fetch()
        parts = {"embedding": self.embedding, "trunk": self.trunk, "readout": self.readout}
        owned = {part: owner.parameters() for part, owner in parts.items() if owner is not None}
        arrays = {f"{part}.{name}": array for part, arrays in owned.items() for name, array in arrays.items()}
        return {name: array for name, array in arrays.items() if not (self.tied and name == SHARED)}

    @property
    def size(self) -> int:
        """The number of trained parameters."""
        return sum(array.size for name, array in self.parameters().items() if _learned(name))

    def save(self, folder: str | Path, facts: dict[str, Any] | None = None) -> None:
        """Writes a checkpoint atomically and keeps the previous one; allowed between the steps of a run.

        facts  additional JSON-able data, returned by `load`

        Raises ValueError if a step failed midway; for other errors see hybrid/storage/checkpoint.py.
        """
        from ..storage import checkpoint

        self._check_whole()
        with self._runs.alone:
            self.settle()
            more: dict[str, Any] = {"tied": True} if self.tied else {}
            more |= {"update": self.update} if self.route.online else {}
            settings: dict[str, Any] = {"micro_batches": self.micro_batches}
            settings |= {"schedule": self.schedule.name, "warmup": self.schedule.warmup}
            own = {
                "embedding": self.embedding.describe(),
                "trunk": self.trunk.describe() if self.trunk else None,
                "readout": self.readout.describe() | {"state": self.readout.state()},
                "settings": settings | more,
                "tick": self.tick,
            }
            arrays = self.parameters()
            self.route.write(lambda: checkpoint.save(folder, arrays, {"engine": own, "facts": facts or {}}))

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
        route: Callable[["Engine"], Route] | None = None,
    ) -> tuple["Engine", dict[str, Any]]:
        """Returns the engine of a checkpoint at its saved step, and the facts saved with it.

        folder  of the checkpoint or of its run (the latest save), or one of the checkpoint's JSON files
        trunk   for trunks that checkpoints do not describe fully: a TorchTrunk constructed like the saved one, to be filled
        device, rows_device, readout_device  of trunk, rows and readout from now on, whatever they were before
        threads, overlap, route  as of Engine and Pipeline

        Raises ValueError or OSError for a checkpoint that is missing, truncated, altered or of another format.
        """
        from ..storage import checkpoint

        manifest, held = checkpoint.read_facts(folder), checkpoint.numbers(folder)
        with checkpoint.rebuilding(folder):
            own = manifest["engine"]
            output = {name: value for name, value in own["readout"].items() if name != "state"}
            settings = own["settings"]
            parts = {name: settings[name] for name in ("micro_batches", "update") if name in settings}
            _check_size(folder, own, output, held)
            engine = cls(
                _source(own["embedding"], rows_device),
                _trunk(own["trunk"], trunk),
                readouts.rebuild(output, backend.choose(readout_device)),
                device=device,
                threads=threads,
                pipeline=Pipeline(**parts, overlap=overlap, route=route),
                schedule=RateSchedule(settings["schedule"], settings["warmup"]),
                tied=settings.get("tied", False),
            )
            if trunk is not None:
                trunk.expect(own["trunk"])  # type: ignore[attr-defined]  # those have it that are given, see `_trunk`
            engine.route.read(lambda: checkpoint.load_into(folder, engine.parameters()))
            engine.embedding.send()
            if engine.trunk:
                engine.trunk.send()
            engine.readout.restore(own["readout"]["state"])
            engine.tick = check.whole("tick", own["tick"], 0)
            return engine, manifest["facts"]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies the engine with its parts and position; ValueError if a step failed midway."""
        self._check_whole()
        settings = {name: getattr(self, name) for name in ("threads", "schedule", "tied")} | {"device": self.dense.name}
        settings["pipeline"] = Pipeline(self.micro_batches, self.overlap, self.update)
        with self._runs.alone:
            self.settle()
            made = functools.partial(Engine, **settings)
            return made, (self.embedding, self.trunk, self.readout), self.tick

    def __setstate__(self, tick: int) -> None:
        self.tick = tick


def regrow(engine: Engine, feed: Feed, vectors: Any = None) -> int:
    """Replaces an engine's tree by `trees.clustered` of vectors; returns how many nodes keep their trained weights.

    engine   with a tree readout, between two steps; also inside `for tick in engine.run(feed)`
    feed     its training feed
    vectors  (V, D), a row per class: engine.embedding.vectors()[:V] if ids are classes; None: engine.readout.vectors()

    A node that separates the same two sets of classes is kept. Then the tree is trained on the last epoch's examples, those
    of the previous ticks_per_epoch steps. Their hidden vectors are recomputed by the current trunk without dropout; rows and
    trunk stay fixed. It uses the readout's initial rate, since a decayed rate is too low for new nodes. The result is
    determined by the engine's state: a saved and loaded engine gives the same.

    Raises ValueError for another readout, another feed and other vectors; then nothing changes.
    """
    engine._check_whole()
    readout: Any = engine.readout
    if not hasattr(readout, "regrow"):
        raise ValueError(f"readout: found a {readout.kind} readout, expected a tree, whose shape can be replaced")
    engine._check_feed(feed)
    with engine._runs.alone:
        engine.settle()
        rows = np.asarray(readout.vectors() if vectors is None else check.unmasked("vectors", vectors))
        if len(rows) != readout.classes:
            raise ValueError(f"vectors: found {rows.shape}, expected ({readout.classes}, any): one row per class")
        counts = feed.counts
        kept: int = engine.inline.run(lambda: readout.regrow(trees.clustered(rows, counts), counts=counts)).wait()
        engine._teach(feed, range(max(engine.tick - feed.ticks_per_epoch, 0), min(engine.tick, len(feed))))
        return kept


def _check_widths(embedding: Embedding | Inputs, trunk: TrunkProtocol | None, readout: Readout) -> None:
    """Raises ValueError unless each part's output width is the next one's input width."""
    if trunk and embedding.outputs != trunk.inputs:
        raise ValueError(f"trunk: takes {trunk.inputs} inputs, the embedding gives {embedding.outputs}")
    source, width = ("trunk", trunk.outputs) if trunk else ("embedding", embedding.outputs)
    if readout.width != width:
        raise ValueError(f"readout: width {readout.width}, the {source} gives {width}")


def _dense_backend(trunk: TrunkProtocol, device: str | None) -> backend.Backend:
    """Returns the backend of the dense stages; without a choice, a CPU-only trunk goes to the CPU."""
    kinds = trunk.places
    chosen = backend.choose("cpu" if kinds == ("cpu",) and device in (None, "auto") else device)
    if chosen.name.partition(":")[0] not in kinds:
        raise ValueError(
            f'device: found "{chosen.name}", expected one of {", ".join(kinds)}: a {trunk.kind} trunk runs nowhere else'
        )
    return chosen


def _check_place(name: str, part: Any, trunk: TrunkProtocol | None, dense: Any) -> None:
    """Raises ValueError unless the embedding or readout is on the CPU or on the device of the trunk, the backend `dense`."""
    found, option = part.backend, {"embedding": "--rows-device", "readout": "--readout-device"}[name]
    if found.device.host_memory:
        return
    if trunk is None:
        raise ValueError(
            f'{name}: found one on "{found.name}", expected one on the CPU: without a trunk the hidden vectors are rows, '
            f"which are the CPU's; make it without backend ({option} cpu)"
        )
    if found.device is not dense.device:
        raise ValueError(
            f'{name}: found one on "{found.name}", expected one on the CPU or on the trunk\'s device, "{dense.name}"; '
            f'make it without backend ({option} cpu), or give the engine device="{found.name}" (--device)'
        )


def _tie(engine: Engine) -> None:
    """Makes the readout use the embedding's first rows; ValueError if they cannot, or could be read during an update."""
    embedding: Any = engine.embedding
    readout: Any = engine.readout
    if (found := engine.micro_batches) != 1:
        raise ValueError(f"micro_batches: found {found}, expected 1 with tied=True: rows and readout update one table")
    if not hasattr(readout, "take"):
        raise ValueError(f"tied: found a {readout.kind} readout, expected full or sampled, with a row for every class")
    if not embedding.rows:
        raise ValueError("tied: found Inputs, expected an Embedding, whose rows the readout shares")
    if embedding.rows < readout.classes or embedding.width != readout.width:
        raise ValueError(
            f"tied: found {embedding.rows} input rows of width {embedding.width}, expected at least {readout.classes} of width "
            f"{readout.width}, as the readout has"
        )
    for owner in (embedding, readout):
        if not owner.backend.device.host_memory:
            raise ValueError(f'tied: found rows on "{owner.backend.name}", expected them on the CPU')
    from cpu.runtime import memory

    rows = memory.empty(embedding.table.shape, np.float32)
    rows[:] = embedding.table
    embedding.take(rows)
    readout.take(rows[: readout.classes])


def _targets(feed: Feed) -> int:
    return max(most_targets(feed), feed.batch)


def _question(source: Embedding | Inputs, whole: int, ids: Any, bag_at: Any, values: Any, x: Any) -> Batch:
    """Returns the batch of a query, with all targets 0; see Engine.hidden."""
    if source.dense:
        _check_none(f"an engine with Inputs({source.dense})", ids=ids, bag_at=bag_at, values=values)
        made, bags = check.array("x", x, (None, source.dense), np.float32), None
        check.finite("x", made)
        examples, taken = len(made), None
    else:
        _check_none("this engine, which has an embedding", x=x)
        made = None
        taken = check.indices("ids", ids, source.rows).reshape(-1)
        bags, values = _bags(source, taken, bag_at, values)
        examples = taken.size // source.per_example if bags is None else len(bags) - 1
    if examples % whole:
        raise ValueError(f"found {examples} examples, expected a multiple of {whole}, the sequence of the trunk")
    return Batch(taken, bags, np.zeros(examples, np.int32), None, values, made)


def _bags(source: Embedding | Inputs, ids: np.ndarray, bag_at: Any, values: Any) -> tuple[Any, Any]:
    kind = source.bags
    for name, given, wanted in (("bag_at", bag_at, kind is not None), ("values", values, kind == "weighted")):
        if (given is None) == wanted:
            raise ValueError(f"{name}: {'needed' if wanted else 'not used'} by this embedding")
    if ids.size % source.per_example:
        raise ValueError(f"ids: found {ids.size}, expected a multiple of {source.per_example}")
    if values is not None:
        check.finite("values", check.array("values", values, (ids.size,), np.float32))
    return None if bag_at is None else check.bags("bag_at", bag_at, ids.size), values


def _check_none(owner: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: found {type(value).__name__}, expected None: not used by {owner}")


def _losses(
    readout: Any, hidden: np.ndarray, target: np.ndarray, target_at: np.ndarray | None, drawn: bool
) -> np.ndarray:
    """Returns the loss of each example, the mean of -log p over its targets; drawn: that of a step."""
    if drawn:
        return readout.losses(hidden, target)
    if target_at is None:
        log_prob: np.ndarray = readout.log_prob(hidden, target)
        return -log_prob
    return -base.log_prob(readout, hidden, target, target_at)


# Checkpoints: settings, in addition to the parameters


def _learned(name: str) -> bool:
    """True if an array of Engine.parameters() is trained, not auxiliary state."""
    if name.startswith("trunk.module."):  # names of PyTorch modules are chosen by the user
        return True
    return not name.startswith(("trunk.buffer.", "trunk.optimiser.")) and not name.endswith(STATE)


def _source(facts: dict[str, Any], device: str) -> Embedding | Inputs:
    if facts.get("kind") == Inputs.kind:
        return Inputs(facts["width"])
    return rebuild(facts, backend.choose(device))


def _trunk(facts: dict[str, Any] | None, given: TrunkProtocol | None) -> TrunkProtocol | None:
    """Returns an untrained trunk from its describe() facts, or the one given, if checkpoints do not describe it fully."""
    if given is None:
        return trunks.rebuild(facts) if facts else None
    kind, ours = facts.get("kind") if facts else None, getattr(given, "kind", type(given).__name__)
    if kind != ours or not hasattr(given, "expect"):
        theirs = f"a {kind} trunk" if facts else "none"
        raise ValueError(f"trunk: found a {ours} trunk, the checkpoint has {theirs}, which it makes; leave it out")
    return given


def _check_size(folder: str | Path, own: dict[str, Any], output: dict[str, Any], held: int) -> None:
    """Raises ValueError, before allocation, if the facts imply more numbers than the checkpoint holds."""
    rows, dense = own["embedding"], own["trunk"]
    least = sparse.numbers(**rows) if rows.get("rows") else 0
    least += readouts.least(output) + (trunks.least(dense) if dense else 0)
    least -= output["classes"] * output["width"] if own["settings"].get("tied") else 0  # one shared table, stored once
    if least > held:
        raise ValueError(f"{folder}: declares {least} parameters, but holds {held} numbers; it was altered")

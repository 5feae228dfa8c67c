"""The way of a micro-batch through a model: which arrays of a slot are where, and the stages between them."""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import check
from .embedding import Embedding
from .schedule import Plan, Stage
from .slot import Slot
from .trunk.mlp import Trunk


class Route(NamedTuple):
    """Rows -> trunk -> readout and back.

    trunk       None: the rows are the hidden vectors
    device      of the dense stages
    rows_on     "host" or "device"
    readout_on  "host", "device", or "both" for a split tree
    """

    embedding: Embedding
    trunk: Trunk | None
    readout: Any
    device: Any
    rows_on: str
    readout_on: str

    def plan(self, scale: Callable[[Slot], float]) -> Plan:
        """All stages; `scale` says by how much a slot's rates are scaled.

        What a stage comes after counts only where that stage is: an array that does not cross has no copy to wait for. The
        trunk's parameters move on "dense", and what is on the device with it; those of rows and a readout on the host on
        "sparse".
        """
        trunk = self.trunk
        if trunk is None:
            read = Stage("readout", "sparse", self._read(scale), ("gather",))
            return Plan(self.begin, [read, self._scatter(scale)], [])
        parted, here, there = self.readout_on == "both", self.readout_on != "device", self.readout_on != "host"
        top = "top" if parted else "readout"  # the stage of a readout on the device
        finish = [
            *self._crossing("target in"),
            *_only(here, Stage("readout", "sparse", self._read(scale), ("forward", "hidden out"))),
            *self._crossing("grad in", "readout"),
            *_only(there, Stage(top, "dense", self._learn(scale), ("forward", "target in", "grad in"))),
            *self._crossing("losses out", top),
            Stage("backward", "dense", trunk.backward, ("readout", "grad in", "top")),
            *self._crossing("x_grad out", "backward"),
            *_only(there, Stage("loss", "sparse", self._judge, ("losses out",))),
            self._scatter(scale),
        ]
        return Plan(
            self.begin,
            finish,
            [Stage("update", "dense", lambda slot: trunk.update(scale(slot) / slot.examples), ("backward",))],
        )

    @property
    def fed(self) -> tuple[str, ...]:
        """What the feed wrote and the begin stages carry to the device."""
        return ("ids", "bag_at")[: 1 + self.embedding.mean] if self.rows_on == "device" else ()

    @property
    def begin(self) -> list[Stage]:
        """The stages up to the hidden vectors; nothing learns in them."""
        ends = self._rows_arrays("x", "bag_at", "ids")

        def gather(slot):
            self.embedding.forward(*ends(slot))

        if self.trunk is None:
            return [Stage("gather", "sparse", gather)]
        return [
            *self._crossing("ids in"),
            *self._crossing("bag_at in"),
            Stage("gather", self._rows_queue, gather, ("ids in", "bag_at in")),
            *self._crossing("x in", "gather"),
            Stage("forward", "dense", self.trunk.forward, ("gather", "x in")),
            *self._crossing("hidden out", "forward"),
        ]

    def slot(self, rows: int, most_ids: int) -> Slot:
        """The buffers of up to `rows` examples: those that this route needs, and no others."""
        ids = most_ids if self.embedding.mean else rows * self.embedding.per_example
        width, bags = self.embedding.outputs, self.embedding.mean
        if self.trunk is None:
            same = {"hidden": "x", "x_grad": "grad"}
            return Slot(rows, ids, {"x": width, "grad": width}, bags, self.device, same=same)
        inputs = dict.fromkeys(("x", "x_grad"), width)
        inner = dict.fromkeys(("inner", "inner_grad"), self.trunk.hidden)
        arrays = inner | inputs | dict.fromkeys(("hidden", "grad"), self.trunk.outputs)
        crossing = {name: size for name, size in arrays.items() if name in self._crossings}
        kept = {name: size for name, size in arrays.items() if name not in crossing}
        lists = [name for name in self._crossings if name not in crossing]
        return Slot(rows, ids, crossing, bags, self.device, kept, lists=lists)

    def _read(self, scale) -> Callable[[Slot], None]:
        step = self.readout.step_tail if self.readout_on == "both" else self.readout.step

        def read(slot):
            self.readout.rate_scale = scale(slot)
            try:
                slot.loss = step(slot.grad, slot.hidden, slot.target)
            except ValueError as failure:  # hidden vectors that are not finite: here no bad input, but divergence
                raise FloatingPointError(str(failure)) from None

        return read

    def _learn(self, scale) -> Callable[[Slot], None]:
        step = self.readout.learn_top if self.readout_on == "both" else self.readout.learn

        def learn(slot):
            self.readout.rate_scale = scale(slot)
            step(slot.grad_dev, slot.losses_dev, slot.hidden_dev, slot.target_dev)

        return learn

    def _judge(self, slot) -> None:
        slot.loss = check.loss(slot.losses) + (slot.loss if self.readout_on == "both" else 0.0)

    def _scatter(self, scale) -> Stage:
        ends = self._rows_arrays("bag_at", "ids", "x_grad")

        def scatter(slot):
            bag_at, ids, x_grad = ends(slot)
            self.embedding.backward(bag_at, ids, x_grad, scale(slot))

        return Stage("scatter", self._rows_queue, scatter, ("readout", "backward", "x_grad out"))

    @property
    def _rows_queue(self) -> str:
        return "dense" if self.rows_on == "device" else "sparse"

    def _rows_arrays(self, *names: str) -> Callable[[Slot], tuple]:
        """Those arrays of a slot, as they are where the rows are."""
        return operator.attrgetter(*(f"{name}_dev" if self.rows_on == "device" else name for name in names))

    def _crossing(self, name: str, *after: str) -> list[Stage]:
        """The stage "ARRAY in" or "ARRAY out", which copies an array of a slot to the device or home from it; none where
        the array stays where it is."""
        array, way = name.split()
        if self.device.host_memory or array not in self._crossings:
            return []
        ends = operator.attrgetter(*((f"{array}_dev", array) if way == "in" else (array, f"{array}_dev")))
        return [Stage(name, f"copy {way}", lambda slot: self.device.copy(*ends(slot)), after)]

    @property
    def _crossings(self) -> tuple[str, ...]:
        """The arrays of a slot that are wanted both on the host and on the device."""
        here, there = ("hidden", "grad"), ("target", "losses")
        rows = {"host": ("x", "x_grad"), "device": self.fed}
        readout = {"host": here, "device": there, "both": here + there}
        return rows[self.rows_on] + readout[self.readout_on]


def _only(wanted: bool, stage: Stage) -> list[Stage]:
    return [stage] if wanted else []


def where(name, part, trunk, dense) -> str:
    """Whether the embedding or the readout is on the "host", on the trunk's "device", which is a GPU, or on "both".

    ValueError for one on another device.
    """
    found, option = part.backend, {"embedding": "--rows-device", "readout": "--readout-device"}[name]
    if found.device.host_memory:
        return "host"
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
    return "both" if getattr(part, "split", 0) else "device"

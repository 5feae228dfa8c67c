"""The dense part of a model, between the input rows and the readout: one file a kind.

A kind of trunk is a file of this package, or of another distribution, which offers it by an entry point of the group
"hybrid.trunks". The file exports a class that keeps the Protocol below, and:

    Options     a frozen dataclass, a field for each option of its own on the command line, see hybrid/settings.py
    make(inputs, outputs, options, *, seed)   the untrained trunk; options: those of the command line by name
    rebuild(**facts)                          the untrained trunk that `describe()` described, without "kind"
    remade(facts, options)                    where no checkpoint keeps all of it (need not be there): the trunk that
                                              `describe()` described, made from the options of its run, for Engine.load
    least(**facts)                            how many numbers a checkpoint of it holds at least (need not be there): an
                                              altered one is then refused before it takes memory
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ..schedule.schedule import Buffers, Copies, Stage
from ..settings import Registry

registry = Registry("hybrid.trunk", "hybrid.trunks", "trunk")


class TrunkProtocol(Protocol):
    """A net from `inputs` to `outputs` numbers, which learns from the mean loss of a batch.

    kind     the name of its file
    places   kinds of devices where it computes: "cpu", "cuda"
    ready    names of the stages after which the gradient of its inputs is whole

    Its stages find in a slot, as float32 arrays (rows, width) of the device where it was placed: `x_dev`, what it reads;
    `hidden_dev`, what it writes; `grad_dev`, the gradient of that, which it may overwrite; `x_grad_dev`, the gradient of
    what it read, which it writes; and NAME_dev for each array more that `buffers` names. On the CPU these are NumPy's.
    Stages run in threads of their own and in the order of micro-batches; after the first tick they should allocate nothing.
    Where slot.learns is False the slot is a question: dropout is off.

    It may have more:

    spares     names of arrays among the above that are None in a slot where nobody reads them: ("x_grad",)
    whole      the examples of a batch come in groups of so many, which no micro-batch cuts: the length of a sequence
    threaded   whether its numbers on the CPU depend on how many threads its queue has: these are then not left to a measurement
    undelayed  why it cannot begin a batch before the one before is finished, in words
    falling, gradient, spans  of one whose work ranks can share, see hybrid/trunk/_stages.py
    expect     of a trunk that Engine.load is given: expect(facts) gets it ready to be filled as the described one
    """

    kind: str
    places: tuple[str, ...]
    ready: tuple[str, ...]
    inputs: int
    outputs: int

    def place(self, device: Any, kernels: Any) -> None:
        """Compute on this device from here on; called once, by the engine, within the work of a queue.

        kernels  the device's hybrid.backend.Backend: kernels.mlp, kernels.optimiser, kernels.units, ...
        """

    def buffers(self) -> Buffers:
        """hidden and grad, `outputs` wide; and arrays of its own, for what `begin` keeps for `finish`."""

    def begin(self, copy: Copies) -> list[Stage]:
        """From x_dev to hidden_dev, after the stages "gather" and "x in"; and `copy("hidden out", STAGE)`, where STAGE is
        the name of the one that writes it. Where slot.learns is False, a question is asked: nothing is to be dropped then.
        """

    def finish(self, copy: Copies, ready: tuple[str, ...]) -> list[Stage]:
        """From grad_dev to x_grad_dev, after the stages named in `ready`; and `copy("x_grad out", STAGE)`.

        It gathers the gradient of the parameters over micro-batches; nothing moves yet.
        """

    def update(self) -> list[Stage]:
        """Once a tick: the parameters move against that gradient, by slot.scale times the rate and divided by
        slot.examples: how many the batch has, or the sum of their weights.
        """

    def parameters(self) -> dict[str, np.ndarray]:
        """Every parameter and optimiser state, by name: live arrays of the host, as `fetch` left them."""

    def fetch(self) -> None:
        """Bring the parameters from the device to the host; nothing to do where the device shares its memory."""

    def send(self) -> None:
        """Go on from parameters() as they were filled; nothing to do where the device shares the host's memory."""

    def describe(self) -> dict[str, Any]:
        """JSON-able facts, "kind" among them, from which `rebuild` makes a trunk of the same kind and shape."""


def make(kind: str, inputs: int, outputs: int, options: Mapping[str, Any], *, seed: int) -> TrunkProtocol:
    """The untrained trunk of a kind, from options of the command line; ValueError for a kind that is not known."""
    made: TrunkProtocol = registry.load(kind).make(inputs, outputs, options, seed=seed)
    return made


def rebuild(facts: dict[str, Any]) -> TrunkProtocol:
    """The trunk that describe() described, untrained: fill its parameters(), then send() them.

    Raises ValueError for facts that describe no trunk.
    """
    made: TrunkProtocol = registry.load(facts["kind"]).rebuild(**_without_kind(facts))
    return made


def remade(facts: dict[str, Any], options: Mapping[str, Any]) -> TrunkProtocol | None:
    """For Engine.load: the trunk that describe() described, from the options of its run, where a checkpoint does not keep all
    of it, else None.
    """
    module = registry.load(facts["kind"])
    made: TrunkProtocol | None = module.remade(facts, options) if hasattr(module, "remade") else None
    return made


def least(facts: dict[str, Any]) -> int:
    """How many numbers a checkpoint of the trunk that describe() described holds at least."""
    module = registry.load(facts["kind"])
    return int(module.least(**_without_kind(facts))) if hasattr(module, "least") else 0


def _without_kind(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "kind"}

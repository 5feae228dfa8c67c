"""A trunk that is any module of PyTorch, trained by an optimiser of PyTorch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import check
from ...settings import option
from ..part import Buffers
from ..slot import Slot
from ._stages import Stages
from .pytorch import consent, program
from .pytorch.gradient import TorchGradient
from .pytorch.module import asked, checked, made_optimiser, scaled
from .pytorch.place import drawing, place
from .pytorch.state import State

FORWARD, BACKWARD, UPDATE, BEFORE = range(4)  # stages, and what comes before them, as they draw


@dataclass(frozen=True)
class Options:
    """What the command line takes for a module of PyTorch."""

    module: str | None = option(
        None,
        "torch trunk: a function of a program of yours, called with inputs and outputs, and with context, width and seed"
        " where it has such arguments, that returns the module, or the module and its optimiser",
        type=program.absolute,
        action=consent.Named,
        metavar="FILE.py:FUNCTION",
    )


class TorchTrunk(Stages):
    """A torch.nn.Module that takes float32 (B, inputs) and gives (B, outputs), trained on the mean loss of a batch.

    optimiser  a torch.optim.Optimizer of its parameters, or what makes one of a list of them:
               lambda parameters: torch.optim.Adam(parameters, lr=0.001). Its learning rates are the highest that the engine's
               schedule takes
    clip       the norm that the gradient of the mean loss is cut to; None: it is not cut
    sequence   T: the module takes (B / T, T, inputs) and gives (B / T, T, outputs): examples that follow each other in a
               batch are a sequence. Batches, and what is asked about, must then be multiples of T
    threads    with how many PyTorch computes on the CPU; None: as many as its queue has. PyTorch's numbers differ in their last
               bits with the number of threads, so for None an engine on the CPU whose `overlap` is None does not measure but
               takes all threads in turn: a run that goes on with as many has the same bytes
    seed       of what is drawn during training, such as dropout: a function of it, the tick and the micro-batch

    module and optimiser stay the user's own: they are moved to the engine's device, and learn there. The module is called
    once with zeros here, which shows whether it fits. While questions are asked it is in eval mode, as under module.eval().
    Arguments of the module that are no tensors, and generators of its own, are in no checkpoint: `Engine.load(folder,
    trunk=TorchTrunk(...))` takes a module made as the first one was, and fills it.

    Raises ValueError for a module that gives something of another shape or dtype, fails, or has nothing to learn; for what
    is no module or optimiser; for an optimiser whose step calls for a closure; and for sizes below 1.
    """

    kind = "torch"
    places: tuple[str, ...] = ("cpu", "cuda")
    undelayed = (
        "autograd goes back through a module that has not moved since its forward; overlap more with micro_batches"
    )

    def __init__(
        self,
        module: Any,
        inputs: int,
        outputs: int,
        *,
        optimiser: Any,
        clip: float | None = None,
        sequence: int | None = None,
        threads: int | None = None,
        seed: int = 0,
    ):
        import cpu  # noqa: F401  # says how threads wait; PyTorch's runtime reads it when it is loaded, unless that was before

        self.inputs, self.outputs = check.whole("inputs", inputs, 1), check.whole("outputs", outputs, 1)
        self.sequence = None if sequence is None else check.whole("sequence", sequence, 1)
        self.threads = None if threads is None else check.whole("threads", threads, 1)
        self.clip = clip
        if clip is not None and check.number("clip", clip, 0) == 0:
            raise ValueError("clip: found 0, expected a number above 0, or None: the gradient is not cut")
        self.seed = check.whole("seed", seed, 0)
        self.module = checked(module)
        self.source: dict[str, str] | None = None  # the program that made the module, where the command line called it
        self._try()
        self.optimiser = made_optimiser(optimiser, module)
        self._parameters = [own for group in self.optimiser.param_groups for own in group["params"]]
        self._state = State(self.module, self.optimiser)
        self._graphs: dict[int, tuple[Any, Any]] = {}  # by micro-batch

    @property
    def whole(self) -> int:
        """A batch is cut at multiples of so many examples."""
        return self.sequence or 1

    @property
    def threaded(self) -> bool:
        """Whether its numbers depend on how many threads its queue has."""
        return self.threads is None

    @property
    def unranked(self) -> str | None:
        """Why several ranks cannot share its work, None where they can."""
        kept = self._state.buffers()
        return f"the module keeps {kept[0]}, which would be of a part of each batch on every rank" if kept else None

    def _try(self) -> None:
        """Call the module with zeros, as a question; nothing is moved or drawn."""
        import torch

        own = next(self.module.parameters(), torch.empty(0))
        x = torch.zeros(self.whole, self.inputs, device=own.device)
        with drawing([torch.default_generator], (self.seed, BEFORE)), asked(self.module):
            try:
                out = self.module(self._shaped(x))
            except (RuntimeError, TypeError, ValueError, IndexError) as failure:
                shape = tuple(self._shaped(x).shape)
                raise ValueError(f"module: fails on float32 {shape}: {failure}") from failure
            self._flat(out, self.whole)

    def place(self, device: Any, kernels: Any) -> None:
        """Compute on this device from here on; called within the work of a queue. The kernels are PyTorch's own."""
        self._place = place(device, self.threads)
        with self._place.stage(self.seed, BEFORE):
            self.module.to(self._place.name)
            for state in self.optimiser.state.values():
                moved = {key: value for key, value in state.items() if key != "step" and hasattr(value, "to")}
                state.update({key: value.to(self._place.name) for key, value in moved.items()})
            self.gradient = TorchGradient(device, self._place, self._parameters)

    def buffers(self) -> Buffers:
        """The hidden vectors and their gradient; activations are autograd's."""
        return Buffers(dict.fromkeys(("hidden", "grad"), self.outputs), begun=("hidden",))

    def forward(self, slot: Slot) -> None:
        """Write slot.hidden_dev from slot.x_dev; where the slot learns, keep the graph for `backward`."""
        import torch

        with self._place.stage(self.seed, slot.tick, slot.micro, FORWARD):
            x = self._place.tensor(slot.x_dev)
            if slot.learns:
                x.requires_grad_(slot.x_grad_dev is not None)
                with torch.enable_grad():
                    out = self._flat(self.module(self._shaped(x)), slot.count)
                self._graphs[slot.micro] = x, out
            else:
                with asked(self.module):
                    out = self._flat(self.module(self._shaped(x)), slot.count)
            self._place.tensor(slot.hidden_dev).copy_(out.detach())

    def falling(self, slot: Slot) -> Iterator[int]:
        """Backward through the whole module at once; see Stages.

        The gradients of the parameters are those of the mean: it is the few numbers of slot.grad_dev that are divided.
        """
        import torch

        with self._place.stage(self.seed, slot.tick, slot.micro, BACKWARD):
            x, out = self._graphs.pop(slot.micro)
            grad = self._place.tensor(slot.grad_dev).mul_(1 / slot.examples)
            if out.requires_grad:
                out.backward(grad.to(out.dtype))
            self.gradient.take()
            if x.requires_grad:
                written = self._place.tensor(slot.x_grad_dev)
                torch.mul(torch.zeros_like(x) if x.grad is None else x.grad, slot.examples, out=written)
        yield 0

    def move(self, slot: Slot) -> None:
        """Let the optimiser step against the gradient that was gathered since the last call, and clear it."""
        import torch

        with self._place.stage(self.seed, slot.tick, slot.micro, UPDATE):
            self.gradient.give()
            if self.clip is not None:
                torch.nn.utils.clip_grad_norm_(self._parameters, self.clip)
            with scaled(self.optimiser, slot.scale):
                self.optimiser.step()
            self.gradient.clear()

    def _shaped(self, x: Any) -> Any:
        """A copy of rows as the module takes them: its first layer may work in place, which autograd's leaves refuse."""
        return x.clone() if self.sequence is None else x.view(-1, self.sequence, self.inputs).clone()

    def _flat(self, out: Any, rows: int) -> Any:
        """What the module gave, as rows; ValueError where it has another shape or dtype."""
        import torch

        lead = (rows,) if self.sequence is None else (rows // self.sequence, self.sequence)
        wanted = f"expected a floating tensor {(*lead, self.outputs)}"
        if not isinstance(out, torch.Tensor):
            raise ValueError(
                f"module: gives {type(out).__name__}, {wanted}; a module around it can take the part that is"
            )
        if tuple(out.shape) != (*lead, self.outputs) or not out.is_floating_point():
            raise ValueError(f"module: gives {str(out.dtype).removeprefix('torch.')} {tuple(out.shape)}, {wanted}")
        return out.reshape(rows, self.outputs)

    def parameters(self) -> dict[str, np.ndarray]:
        """The tensors of module and optimiser, by name; see hybrid/engine/trunk/pytorch/state.py."""
        return self._state.arrays()

    def fetch(self) -> None:
        """Bring what is on a GPU, or NumPy cannot show, to the host."""
        self._state.fetch()

    def send(self) -> None:
        """Bring that back from the host."""
        self._state.send()

    def describe(self) -> dict[str, Any]:
        """The arguments but for the module and the optimiser, of which their types and the optimiser's settings are told."""
        names = ("kind", "inputs", "outputs", "sequence", "clip", "seed", "source")
        told = {"module": type(self.module).__name__, "optimiser": type(self.optimiser).__name__}
        return {name: getattr(self, name) for name in names} | told | {"state": self._state.facts()}

    def expect(self, facts: dict[str, Any]) -> None:
        """Get ready for the arrays of the trunk that describe() told of; ValueError where it was another one."""
        own = {"module": type(self.module).__name__, "optimiser": type(self.optimiser).__name__}
        own |= {name: getattr(self, name) for name in ("kind", "inputs", "outputs", "sequence")}
        for name, value in own.items():
            if facts[name] != value:
                raise ValueError(f"trunk: found {name} {value}, expected {facts[name]}, as the checkpoint has")
        self.clip, self.seed = facts["clip"], facts["seed"]
        self._state.expect(facts["state"])

    def __reduce__(self) -> tuple[Any, ...]:
        settings = {name: getattr(self, name) for name in ("clip", "sequence", "threads", "seed")}
        return _again, (self.module, self.optimiser, self.inputs, self.outputs, settings, self.source)


def _again(
    module: Any, optimiser: Any, inputs: int, outputs: int, settings: dict[str, Any], source: dict[str, str] | None
) -> TorchTrunk:
    """A trunk as it was pickled or copied, not yet placed."""
    made = TorchTrunk(module, inputs, outputs, optimiser=optimiser, **settings)
    made.source = source
    return made


def make(inputs: int, outputs: int, options: Mapping[str, Any], *, seed: int) -> TorchTrunk:
    """From options of the command line; see hybrid/engine/trunk/__init__.py."""
    if not options.get("module"):
        raise ValueError("--module: needed by --trunk torch, found none; expected FILE.py:FUNCTION")
    told = {name: options[name] for name in ("context", "width") if name in options}
    given = program.call(options["module"], {"inputs": inputs, "outputs": outputs, "seed": seed} | told)
    module, optimiser = given if isinstance(given, tuple) else (given, _adam)
    settings: dict[str, Any] = {"sequence": options["history"]} if options.get("order") == "sequence" else {}
    made = TorchTrunk(module, inputs, outputs, optimiser=optimiser, seed=seed, **settings)
    made.source = program.told(options["module"])
    return made


def remade(facts: dict[str, Any], options: Mapping[str, Any]) -> TorchTrunk:
    """The trunk of a run that goes on, made again by the user's program: a checkpoint does not keep its code."""
    program.compare(options.get("module"), facts["source"])
    return make(facts["inputs"], facts["outputs"], options, seed=facts["seed"])


def rebuild(**facts: Any) -> TorchTrunk:
    """ValueError: a checkpoint does not keep a user's code."""
    raise ValueError(
        f"trunk: the checkpoint's is a {facts.get('module')} of PyTorch, whose code no checkpoint keeps; expected "
        "Engine.load(folder, trunk=TorchTrunk(...)), with a module made as that one was"
    )


def _adam(parameters: list[Any]) -> Any:
    import torch

    return torch.optim.Adam(parameters, lr=0.001)

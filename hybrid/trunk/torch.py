"""A trunk that is any PyTorch module, trained by a PyTorch optimiser.

PyTorch is imported within functions: the options of the command line are read without it.
"""

import argparse
import contextlib
import hashlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import check, console, machine
from ..data import caches
from ..schedule.schedule import Buffers
from ..schedule.slot import Slot
from ..settings import option
from . import Gradient, Stages

FORWARD, BACKWARD, UPDATE, BEFORE = range(4)  # stages, and construction before them, as keys of random draws
DEVICE_STATE = ("gradient", "_place", "_parameters", "_state", "_graphs")  # recreated in a copy


class TorchTrunk(Stages):
    """A torch.nn.Module that maps float32 (B, inputs) to (B, outputs), trained on the mean loss of a batch.

    optimiser  a torch.optim.Optimizer of its parameters, or a function that makes one of a list of them:
               lambda parameters: torch.optim.Adam(parameters, lr=0.001). Its rates are the maxima of the schedule
    clip       maximum norm of the gradient of the mean loss; None: no clipping
    sequence   T: the module maps (B / T, T, inputs) to (B / T, T, outputs): consecutive examples of a batch are a sequence.
               Batches and queries must then be multiples of T
    threads    PyTorch threads on the CPU; None: those of its queue. PyTorch's last bits depend on the number of threads. For
               None an engine on the CPU whose `overlap` is None therefore does not measure, but uses all threads in turn: a run
               resumed with as many has the same bytes
    seed       of draws in training, such as dropout: a function of it, the tick and the micro-batch

    module and optimiser remain the user's objects: they are moved to the engine's device, and learn there. The constructor
    calls the module once with zeros to check its shapes. Queries run in eval mode, as under module.eval(). No checkpoint holds
    non-tensor arguments of the module, or its own generators: `Engine.load(folder, trunk=TorchTrunk(...))` takes a module made
    as the first one was, and fills it.

    Raises ValueError for a module that returns another shape or dtype, fails, or has no parameters to learn; for any other
    type; for an optimiser whose step needs a closure; and for sizes below 1.
    """

    kind = "torch"
    places: tuple[str, ...] = ("cpu", "cuda")

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
        self.inputs, self.outputs = check.whole("inputs", inputs, 1), check.whole("outputs", outputs, 1)
        self.sequence = None if sequence is None else check.whole("sequence", sequence, 1)
        self.whole = self.sequence or 1
        self.threads = None if threads is None else check.whole("threads", threads, 1)
        self.threaded = threads is None
        self.clip = clip
        if clip is not None and check.number("clip", clip, 0) == 0:
            raise ValueError("clip: found 0, expected a number above 0, or None: the gradient is not cut")
        self.seed = check.whole("seed", seed, 0)
        self.module = module
        self.source: dict[str, str] | None = None  # the program that made the module, if the command line called it
        self._try()
        self.optimiser = _optimiser(optimiser, module)
        self._begin()

    def _try(self) -> None:
        """Calls the module with zeros, as a query; nothing is updated or drawn."""
        import torch

        if not isinstance(self.module, torch.nn.Module):
            raise ValueError(f"module: found {type(self.module).__name__}, expected a torch.nn.Module")
        own = next(self.module.parameters(), torch.empty(0))
        x = self._shaped(torch.zeros(self.whole, self.inputs, device=own.device))
        with drawing([torch.default_generator], (self.seed, BEFORE)), evaluating(self.module):
            try:
                out = self.module(x)
            except (RuntimeError, TypeError, ValueError, IndexError) as failure:
                raise ValueError(f"module: fails on float32 {tuple(x.shape)}: {failure}") from failure
            self._flat(out, self.whole)

    def _begin(self) -> None:
        self._parameters = [own for group in self.optimiser.param_groups for own in group["params"]]
        self._state = State(self.module, self.optimiser)
        self._graphs: dict[int, tuple[Any, Any]] = {}  # by micro-batch

    @property
    def unranked(self) -> str | None:
        """The reason why several ranks cannot partition its work, None if they can."""
        kept = [name.removeprefix("buffer.") for name in self._state.arrays() if name.startswith("buffer.")]
        return f"the module keeps {kept[0]}, which would be of a part of each batch on every rank" if kept else None

    def place(self, device: Any, kernels: Any) -> None:
        """Moves the computation to a device; called within the work of a queue. The kernels are PyTorch's own."""
        self._place = Host(self.threads) if device.host_memory else Cuda(device)
        with self._place.stage(self.seed, BEFORE):
            self.module.to(self._place.name)
            for state in self.optimiser.state.values():
                moved = {key: value for key, value in state.items() if key != "step" and hasattr(value, "to")}
                state.update({key: value.to(self._place.name) for key, value in moved.items()})
            self.gradient = TorchGradient(device, self._place, self._parameters)

    def buffers(self) -> Buffers:
        return Buffers(dict.fromkeys(("hidden", "grad"), self.outputs))

    def forward(self, slot: Slot) -> None:
        with self._place.stage(self.seed, slot.tick, slot.micro, FORWARD):
            x = self._place.tensor(slot.x_dev)
            x.requires_grad_(slot.learns and slot.x_grad_dev is not None)
            with contextlib.nullcontext() if slot.learns else evaluating(self.module):
                out = self._flat(self.module(self._shaped(x)), slot.count)
            if slot.learns:
                self._graphs[slot.micro] = x, out
            self._place.tensor(slot.hidden_dev).copy_(out.detach())

    def fall(self, slot: Slot) -> None:
        # The gradients of the parameters are those of the mean: the division applies to the few numbers of slot.grad_dev.
        with self._place.stage(self.seed, slot.tick, slot.micro, BACKWARD):
            x, out = self._graphs.pop(slot.micro)
            grad = self._place.tensor(slot.grad_dev).mul_(1 / slot.examples)
            if out.requires_grad:
                out.backward(grad.to(out.dtype))
            self.gradient.take()
            if x.requires_grad:
                written = self._place.tensor(slot.x_grad_dev)
                written.zero_() if x.grad is None else written.copy_(x.grad).mul_(slot.examples)

    def move(self, slot: Slot) -> None:
        rates = [(group, group["lr"]) for group in self.optimiser.param_groups if "lr" in group]
        with self._place.stage(self.seed, slot.tick, slot.micro, UPDATE):
            self.gradient.give(self.clip)
            try:
                for group, rate in rates:
                    group["lr"] = rate * slot.scale
                self.optimiser.step()
            finally:
                for group, rate in rates:
                    group["lr"] = rate
            self.gradient.clear()

    def _shaped(self, x: Any) -> Any:
        """Returns a copy of rows in the module's shape: its first layer may work in place, which autograd's leaves reject."""
        return x.clone() if self.sequence is None else x.view(-1, self.sequence, self.inputs).clone()

    def _flat(self, out: Any, rows: int) -> Any:
        """Returns the module's output as rows; ValueError for another shape or dtype."""
        import torch

        lead = (rows,) if self.sequence is None else (rows // self.sequence, self.sequence)
        wanted = f"expected a floating tensor {(*lead, self.outputs)}"
        if not isinstance(out, torch.Tensor):
            raise ValueError(f"module: gives {type(out).__name__}, {wanted}; a wrapper can take the part that is")
        if tuple(out.shape) != (*lead, self.outputs) or not out.is_floating_point():
            raise ValueError(f"module: gives {str(out.dtype).removeprefix('torch.')} {tuple(out.shape)}, {wanted}")
        return out.reshape(rows, self.outputs)

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns the tensors of module and optimiser, by name; see State."""
        return self._state.arrays()

    def fetch(self) -> None:
        self._state.fetch()

    def send(self) -> None:
        self._state.send()

    def describe(self) -> dict[str, Any]:
        names = ("kind", "inputs", "outputs", "sequence", "clip", "seed", "source")
        return {name: getattr(self, name) for name in names} | self._types() | {"state": self._state.facts()}

    def expect(self, facts: dict[str, Any]) -> None:
        own = self._types() | {name: getattr(self, name) for name in ("kind", "inputs", "outputs", "sequence")}
        for name, value in own.items():
            if facts[name] != value:
                raise ValueError(f"trunk: found {name} {value}, expected {facts[name]}, as the checkpoint has")
        self.clip, self.seed = facts["clip"], facts["seed"]
        self._state.expect(facts["state"])

    def _types(self) -> dict[str, str]:
        return {"module": type(self.module).__name__, "optimiser": type(self.optimiser).__name__}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in DEVICE_STATE}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()


# The module and its optimiser


def pytorch() -> Any:
    """Imports and returns PyTorch; MemoryError if a memory limit is too low, ValueError if it cannot be imported."""
    if "torch" not in sys.modules:
        machine.refuse_little_memory(machine.LEAST_TORCH)
        import cpu  # noqa: F401  # says how threads wait; PyTorch's runtime reads it when it is loaded
    try:
        import torch
    except ImportError as failure:
        raise ValueError(f"torch: cannot be imported ({failure}); pip install torch") from None
    return torch


def _optimiser(optimiser: Any, module: Any) -> Any:
    """Returns the optimiser, or the result of a function of the parameters; ValueError for others, or if it cannot step()."""
    import torch

    if not isinstance(optimiser, torch.optim.Optimizer) and callable(optimiser):
        learning = [own for own in module.parameters() if own.requires_grad]
        if not learning:
            raise ValueError(f"module: found {type(module).__name__} without a parameter that learns, expected one")
        optimiser = optimiser(learning)
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise ValueError(
            f"optimiser: found {type(optimiser).__name__}, expected a torch.optim.Optimizer, or a function that makes one of "
            "a list of parameters"
        )
    theirs = {id(own) for own in module.parameters()}
    if any(id(own) not in theirs for group in optimiser.param_groups for own in group["params"]):
        raise ValueError("optimiser: found a parameter that is not the module's, expected those of the module alone")
    for name, one in inspect.signature(optimiser.step).parameters.items():
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise ValueError(
                f"optimiser: found {type(optimiser).__name__}, whose step needs a {name}, expected one that steps by the "
                "gradient that is there, such as torch.optim.Adam"
            )
    return optimiser


@contextlib.contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Provides a context without learning and dropout; afterwards each part has its own training mode again."""
    import torch

    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, training in before:
            part.training = training


class TorchGradient(Gradient):
    """The concatenated gradients of the parameters, in float32, or float64 if any parameter has it.

    place  the device of the module: Host or Cuda

    Its flags mark the parameters with a gradient: an optimiser skips the others. A missing gradient of a micro-batch is zeros.
    """

    def __init__(self, device: Any, place: Any, parameters: Sequence[Any]):
        wide = any(str(own.dtype) == "torch.float64" for own in parameters)
        size = sum(own.numel() for own in parameters)
        super().__init__(device, size, self._merge, np.float64 if wide else np.float32)
        self._place, self._parameters = place, parameters
        self.flags = np.zeros(len(parameters), np.int8)

    def take(self) -> None:
        """Copies the parameters' gradients, which are those of the next micro-batch, and clears them."""
        for number, (own, room) in enumerate(self._rooms(self.next())):
            if own.grad is not None:
                room.copy_(own.grad.to_dense())
                self.flags[number], own.grad = 1, None

    def give(self, clip: float | None) -> None:
        """Sets the sum, clipped to this norm, as the parameters' gradients, until `clear`."""
        import torch

        self.close()
        for reached, (own, room) in zip(self.flags, self._rooms(self.part()), strict=True):
            own.grad = room.to(own.dtype) if reached else None
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(self._parameters, clip)

    def clear(self) -> None:
        for own in self._parameters:
            own.grad = None
        self._place.tensor(self.part()).zero_()
        self.flags[:] = 0

    def _rooms(self, array: Any) -> list[tuple[Any, Any]]:
        """Returns each parameter, and its view in an array, of its shape."""
        flat = self._place.tensor(array).split([own.numel() for own in self._parameters])
        return [(own, room.view(own.shape)) for own, room in zip(self._parameters, flat, strict=True)]

    def _merge(self, total: Any, part: Any) -> None:
        tensor = self._place.tensor(part)
        self._place.tensor(total).add_(tensor)
        tensor.zero_()


class State:
    """The tensors of a module and of its optimiser as arrays of the host, by name, which a checkpoint keeps:

        module.NAME           a parameter
        buffer.NAME           a buffer of the module, such as running means
        optimiser.NUMBER.KEY  of the parameter with this number in the optimiser's groups

    Numbers in the optimiser's state and its settings are facts. Raises ValueError for a module whose state is not only tensors.
    """

    def __init__(self, module: Any, optimiser: Any):
        self._module, self._optimiser = module, optimiser
        self._copies: dict[str, np.ndarray] = {}
        self._tensors()

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the tensors by name: their own memory if NumPy can view it, else copies as `fetch` left them."""
        return {name: self._array(name, tensor) for name, tensor in self._tensors().items()}

    def fetch(self) -> None:
        """Copies from those tensors whose memory NumPy cannot view."""
        for name, tensor in self._hidden():
            np.copyto(self._array(name, tensor), _on_host(tensor))

    def send(self) -> None:
        import torch

        with torch.no_grad():
            for name, tensor in self._hidden():
                tensor.copy_(torch.from_numpy(self._array(name, tensor)).view(tensor.dtype))

    def facts(self) -> dict[str, Any]:
        """Returns JSON-compatible facts: the settings of the optimiser, the form of each of its tensors, and its numbers."""
        kept = self._optimiser.state_dict()
        groups = [{key: _plain(value) for key, value in group.items()} for group in kept["param_groups"]]
        state = {str(number): {key: _form(value) for key, value in of.items()} for number, of in kept["state"].items()}
        return {"groups": groups, "state": state}

    def expect(self, facts: dict[str, Any]) -> None:
        """Takes settings and numbers of `facts`, makes the optimiser's tensors, to be filled; ValueError for other groups."""
        own = self._optimiser.state_dict()
        sizes = [[len(group["params"]) for group in groups] for groups in (own["param_groups"], facts["groups"])]
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"optimiser: found groups of {sizes[0]} parameters, expected {sizes[1]}, as the checkpoint has; make it as "
                "it was made then"
            )
        groups = [
            group | {key: _like(group.get(key), value) for key, value in kept.items() if value is not None}
            for group, kept in zip(own["param_groups"], facts["groups"], strict=True)
        ]
        state = {int(number): {key: _made(form) for key, form in of.items()} for number, of in facts["state"].items()}
        self._optimiser.load_state_dict({"state": state, "param_groups": groups})

    def _tensors(self) -> dict[str, Any]:
        import torch

        parameters = dict(self._module.named_parameters())
        tensors = {f"module.{name}": tensor for name, tensor in parameters.items()}
        shared = {id(tensor) for tensor in parameters.values()}
        for name, value in self._module.state_dict(keep_vars=True).items():
            if not isinstance(value, torch.Tensor):
                raise ValueError(f"module: keeps {type(value).__name__} {name}, expected tensors, for checkpoints")
            if id(value) not in shared:
                tensors[f"buffer.{name}"] = value
        for number, state in self._optimiser.state_dict()["state"].items():
            own = {key: value for key, value in state.items() if isinstance(value, torch.Tensor)}
            tensors |= {f"optimiser.{number}.{key}": value for key, value in own.items()}
        return tensors

    def _array(self, name: str, tensor: Any) -> Any:
        if _shown(tensor):
            return _on_host(tensor)
        if name not in self._copies or self._copies[name].shape != tensor.shape:
            self._copies[name] = _on_host(tensor).copy()
        return self._copies[name]

    def _hidden(self) -> list[tuple[str, Any]]:
        return [(name, tensor) for name, tensor in self._tensors().items() if not _shown(tensor)]


def _shown(tensor: Any) -> bool:
    """True if NumPy can view the memory of a tensor in a dtype of checkpoints."""
    return tensor.device.type == "cpu" and tensor.is_contiguous() and tensor is _bits(tensor)


def _on_host(tensor: Any) -> Any:
    """Returns a tensor as an array: its own memory if NumPy can view it."""
    return _bits(tensor.detach().cpu().contiguous()).numpy()


def _bits(tensor: Any) -> Any:
    """Returns the tensor, or its bits as integers if checkpoints lack its dtype."""
    import torch

    return tensor.view(torch.int16) if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def _plain(value: Any) -> Any:
    """Returns an optimiser setting in JSON form; None for an unsupported one, which keeps the user's value."""
    import torch

    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str) else None


def _like(own: Any, value: Any) -> Any:
    """Converts a setting from JSON to the type that the optimiser has."""
    import torch

    if isinstance(own, torch.Tensor):
        return torch.full_like(own, value)
    return tuple(value) if isinstance(own, tuple) else value


def _form(value: Any) -> Any:
    """Returns an entry of an optimiser's state as a fact: the form of a tensor, else the value itself."""
    import torch

    if isinstance(value, torch.Tensor):
        return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    if value is None or isinstance(value, bool | int | float):
        return value
    raise ValueError(f"optimiser: keeps {type(value).__name__}, expected tensors and numbers, which a checkpoint keeps")


def _made(form: Any) -> Any:
    """Inverts `_form`: returns a tensor that is still to be filled, or the value."""
    import torch

    return torch.zeros(form["shape"], dtype=getattr(torch, form["dtype"])) if isinstance(form, dict) else form


# The device of a module: arrays of a slot as tensors of its device, and the state of PyTorch during a stage.
#
# PyTorch keeps a thread count per thread, and one generator per device for the process. A stage sets both and restores them,
# so the user's own work with PyTorch is unaffected. Draws in a stage are a function of the seed, the tick, the micro-batch and
# the stage. A resumed run therefore repeats them, without saved state.


class Host:
    """The memory of the host."""

    name = "cpu"

    def __init__(self, threads: int | None):
        self._threads = threads

    def tensor(self, array: np.ndarray) -> Any:
        """Returns the array itself, as a tensor."""
        import torch

        return torch.from_numpy(array)

    @contextlib.contextmanager
    def stage(self, *key: int) -> Iterator[None]:
        """Provides a context for the work of a stage; key: the seed of its random numbers."""
        import numba
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(self._threads or numba.get_num_threads())
        try:
            with torch.enable_grad(), drawing([torch.default_generator], key):
                yield
        finally:
            torch.set_num_threads(before)


class Cuda:
    """The memory of a GPU. PyTorch uses the stream of the stage's queue, so events of our queues order its work too, and
    nothing waits. Both libraries are in the device's primary context.
    """

    def __init__(self, device: Any):
        import torch

        from gpu.device import current

        torch.cuda.init()
        self.name, self._current = device.name, current

    def tensor(self, array: Any) -> Any:
        """Returns the device array itself, as a tensor: through __cuda_array_interface__, without a copy."""
        import torch

        return torch.as_tensor(array, device=self.name)

    @contextlib.contextmanager
    def stage(self, *key: int) -> Iterator[None]:
        import torch

        stream = torch.cuda.ExternalStream(self._current().handle, device=self.name)
        generators = [torch.default_generator, torch.cuda.default_generators[stream.device.index]]
        with torch.enable_grad(), torch.cuda.stream(stream), drawing(generators, key):
            yield


@contextlib.contextmanager
def drawing(generators: list[Any], key: tuple[int, ...]) -> Iterator[None]:
    """Provides a context in which these generators are seeded by the key; it restores their state afterwards."""
    seed = int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=4).digest(), "little")
    kept = [generator.get_state() for generator in generators]
    try:
        for generator in generators:
            generator.manual_seed(seed)
        yield
    finally:
        for generator, state in zip(generators, kept, strict=True):
            generator.set_state(state)


# On the command line a function in a user's program makes the module: --module FILE.py:FUNCTION.
#
# A run keeps the path of its program and executes it again when it is opened, so the author of a run chooses the path. Only
# programs that the user has named are therefore executed: in --module, once here and unchanged, or in HYBRID_MODULES.

VARIABLE = "HYBRID_MODULES"  # further programs, separated by os.pathsep: for other machines, or an emptied cache
_named: set[str] = set()  # in this process


class Named(argparse.Action):
    """The option by which the user names a program, and thereby permits its execution."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        try:
            agree(_split(values)[0])
        except OSError as failure:
            raise argparse.ArgumentError(self, f"{failure.filename}: {failure.strerror}") from None
        setattr(namespace, self.dest, values)


def agree(program: Path) -> None:
    """Records that the user has named this program as it is, also for later commands; OSError if it cannot be read."""
    mark = _mark(program)
    if mark not in _agreed():
        _named.add(mark)
        with contextlib.suppress(OSError), open(_list(), "a") as file:  # otherwise for this process only
            file.write(f"{mark}\n")


def refuse_stranger(program: Path) -> None:
    """Raises PermissionError for a program that the user has not named as it is now, OSError for one that cannot be read."""
    listed = [os.path.realpath(path) for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]
    if os.path.realpath(program) not in listed and _mark(program) not in _agreed():
        raise PermissionError(
            f"{program}: found a program that the run names and would run, expected one that you have named to --module here,"
            f" unchanged; read it, then set {VARIABLE}={program}"
        )


def _mark(program: Path) -> str:
    """Digest of a program's real path and content."""
    return hashlib.sha256(os.fsencode(os.path.realpath(program)) + b"\0" + program.read_bytes()).hexdigest()


def _agreed() -> set[str]:
    try:
        kept = _list().read_text().splitlines()
    except OSError:  # missing, or writable by others
        kept = []
    return _named | set(kept)


def _list() -> Path:
    from cpu.runtime.private import private  # here, since it imports Numba, which a command line must not need

    return private(caches(), "XDG_CACHE_HOME") / "modules.txt"


def absolute(text: str) -> str:
    """Returns FILE.py:FUNCTION with the absolute path of the file, as a run keeps it."""
    file, _, function = text.rpartition(":")
    if not file or not function.isidentifier():
        raise argparse.ArgumentTypeError(f"found {text!r}, expected FILE.py:FUNCTION")
    return f"{os.path.abspath(file)}:{function}"


@dataclass(frozen=True)
class Options:
    """The command-line options of a PyTorch module."""

    module: str | None = option(
        None,
        "torch trunk: your function of inputs and outputs (and, if it takes them, context, width and seed) that returns the"
        " module, or the module and its optimiser",
        type=absolute,
        action=Named,
        metavar="FILE.py:FUNCTION",
    )


def make(inputs: int, outputs: int, options: Mapping[str, Any], *, seed: int) -> TorchTrunk:
    """Returns the trunk from command-line options; see hybrid/trunk/__init__.py."""
    if not options.get("module"):
        raise ValueError("--module: needed by --trunk torch, found none; expected FILE.py:FUNCTION")
    more = {name: options[name] for name in ("context", "width") if name in options}
    result = call(options["module"], {"inputs": inputs, "outputs": outputs, "seed": seed} | more)
    module, optimiser = result if isinstance(result, tuple) else (result, _adam)
    sequence = options["history"] if options.get("order") == "sequence" else None
    made = TorchTrunk(module, inputs, outputs, optimiser=optimiser, sequence=sequence, seed=seed)
    made.source = program_facts(options["module"])
    return made


def _adam(parameters: list[Any]) -> Any:
    import torch

    return torch.optim.Adam(parameters, lr=0.001)


def remade(facts: dict[str, Any], options: Mapping[str, Any]) -> TorchTrunk:
    """Returns the trunk of a resumed run, made again by the user's program: a checkpoint does not keep its code."""
    reference, before = options.get("module"), facts["source"]
    if reference and before and program_facts(reference)["sha256"] != before["sha256"]:
        console.note(f"--module: {_split(reference)[0]} has changed since the run was saved")
    return make(facts["inputs"], facts["outputs"], options, seed=facts["seed"])


def rebuild(**facts: Any) -> TorchTrunk:
    """Raises ValueError: a checkpoint does not keep a user's code."""
    raise ValueError(
        f"trunk: the checkpoint's is a {facts.get('module')} of PyTorch, whose code no checkpoint keeps; expected "
        "Engine.load(folder, trunk=TorchTrunk(...)), with a module made as that one was"
    )


def call(reference: str, arguments: dict[str, Any]) -> Any:
    """Calls the function with those of the arguments that it has, by name, and returns its result; "seed" seeds PyTorch.

    Raises OSError for a file that cannot be read, PermissionError for one that the user has not named; ValueError, naming file
    and function, if one of them fails or is missing.
    """
    path, name = _split(reference)
    path.read_bytes()  # OSError if it cannot be read
    refuse_stranger(path)
    torch = pytorch()
    with drawing([torch.default_generator], (arguments["seed"],)):
        try:
            function = _function(path, name)
            taken = inspect.signature(function).parameters
            every = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
            return function(**{name: value for name, value in arguments.items() if every or name in taken})
        except Exception as failure:
            raise ValueError(f"--module: {path}:{name} fails: {type(failure).__name__}: {failure}") from failure


def _function(path: Path, name: str) -> Any:
    """Executes the program, which may import its neighbours, and returns its function."""
    spec = importlib.util.spec_from_file_location(f"module_of_run_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError("expected a file of Python, FILE.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # for lookups of its classes
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"it has no function {name}; expected FILE.py:FUNCTION")
    return function


def program_facts(reference: str) -> dict[str, str]:
    """Returns the reference, and the sha256 of the current file."""
    return {"module": reference, "sha256": hashlib.sha256(_split(reference)[0].read_bytes()).hexdigest()}


def _split(reference: str) -> tuple[Path, str]:
    file, _, function = reference.rpartition(":")
    return Path(file), function

"""Checkpoints of the CUDA original, `Sim_<name>_<id>_<step>.zip` of piekniewski/PVM_cuda, read as models of ours.

    pvm = import_simulation("Sim_small_0badcafe_000100000.zip")

Such a zip holds the attributes of three objects, one by one: pvm/ the units, readout/ and mlp/ the readouts, if there are
any. An array is NAME.npy, its bytes as they lie (no header, whatever the ending says), and NAME.npy.meta, the pickle of
[shape, dtype]; all else is NAME.pkl, a pickle: also the three time slots, which are lists of arrays.

No pickle is run: pickles.py reads them as data. What is not needed is not opened.
"""

import dataclasses
import pickletools
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ... import check
from ...units import unit_layout
from .. import originals
from ..config import Config
from ..layout import TapeLayout, runs, tape_layout
from ..model import PVM
from ..rules import wire
from ..sizes import parameters
from ..wiring import Wiring, receptive

# Pickles read as data: nothing of them is run.
#
# A pickle is a program. Its opcodes are read by a machine of our own, which knows those of plain values, and the names under
# which NumPy's arrays are pickled. Anything else is refused; nothing is ever imported or called.


def unpickled(name: str, data: bytes) -> Any:
    """The value that a pickle describes: None, bools, numbers, str, bytes, tuples, lists, dicts, NumPy's dtypes and arrays.

    name  where it comes from, for messages

    Nothing of it is run: no name is imported, nothing is called. NumPy's numbers come as Python's. Raises ValueError, with
    the opcode and its place, for a pickle that asks for anything else, makes more bytes than it has twice, or is damaged.
    """
    machine, opcode = _Machine(2 * len(data)), None
    try:
        for opcode, argument, at in pickletools.genops(data):
            if opcode.name == "STOP":
                return _last(machine, len(data) - (at or 0) - 1)
            act = _ACTS.get(opcode.name)
            if act is None:
                raise _Refused(f"opcode {opcode.name} at byte {at}, which is none of plain data")
            try:
                act(machine, argument)
            except ValueError as error:
                raise _Refused(f"opcode {opcode.name} at byte {at}: {error}") from None
    except _Refused as error:
        raise ValueError(f"{name}: refused this pickle: {error}") from None
    except (ValueError, OverflowError) as error:  # of genops: what is unknown or cut off
        last = f" after opcode {opcode.name}" if opcode else ""
        raise ValueError(f"{name}: found a damaged pickle{last}: {error}") from None
    raise ValueError(f"{name}: found a pickle without an end")


def _last(machine: "_Machine", left: int) -> Any:
    value = machine.pop()
    if machine.stack or machine.below or left:
        raise _Refused(f"opcode STOP with {len(machine.stack)} values and {left} bytes left over")
    return value


class _Refused(ValueError):
    """Of a pickle."""


class _Known(NamedTuple):
    """A name of NumPy's that a pickle says, and what it stands for here."""

    name: str


class _Blank:
    """An array that has no content yet: it is announced first, and described later."""

    filled: np.ndarray | None = None


class _Machine:
    """The stack of a pickle, the stacks below its marks, and what it remembers.

    most  bytes that its calls may make: a text that it has becomes bytes, and these an array; what it remembers it could
          make again and again
    """

    def __init__(self, most: int) -> None:
        self.most, self.made = most, 0
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack:
            raise _Refused("nothing on its stack")
        return self.stack.pop()

    def top(self, kind: type) -> Any:
        if not self.stack or type(self.stack[-1]) is not kind:
            raise _Refused(f"no {kind.__name__} on its stack")
        return self.stack[-1]

    def take(self, count: int) -> list[Any]:
        """The last few values, in order."""
        return [self.pop() for _ in range(count)][::-1]

    def marked(self) -> list[Any]:
        """The values since the last mark, which goes."""
        if not self.below:
            raise _Refused("no mark on its stack")
        values, self.stack = self.stack, self.below.pop()
        return values

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def remember(self, at: int) -> None:
        if not self.stack:
            raise _Refused("nothing on its stack")
        self.memo[at] = self.stack[-1]

    def recall(self, at: int) -> None:
        if at not in self.memo:
            raise _Refused(f"nothing remembered as {at}")
        value = self.memo[at]
        self.push(value.filled if type(value) is _Blank and value.filled is not None else value)

    def extend(self, values: list[Any]) -> None:
        self.top(list).extend(values)

    def update(self, values: list[Any]) -> None:
        if len(values) % 2 or any(type(key) not in (str, int) for key in values[::2]):
            raise _Refused("keys of a dict that are neither words nor numbers")
        self.top(dict).update(zip(values[::2], values[1::2], strict=True))

    def name(self, module: Any, name: Any) -> None:
        """A name is looked up in a table of ours and nowhere else."""
        full = f"{module}.{name}" if type(module) is type(name) is str else "no words"
        if full not in _NAMES:
            raise _Refused(f"it names {full[:100]!r}; only NumPy's arrays and dtypes are known, and nothing is called")
        self.push(_Known(_NAMES[full]))

    def reduce(self) -> None:
        known, arguments = self.take(2)
        if type(known) is not _Known or known.name not in _MAKERS or type(arguments) is not tuple:
            raise _Refused("it calls what cannot be called")
        self.push(self.counted(_MAKERS[known.name](*_exactly(arguments, known.name))))

    def counted(self, made: Any) -> Any:
        """What a call has made, while it is all within bounds."""
        self.made += len(made) if type(made) is bytes else made.nbytes if isinstance(made, np.ndarray) else 0
        if self.made > self.most:
            raise _Refused(f"{self.made:,} bytes made, expected at most {self.most:,}, twice what the pickle has")
        return made

    def build(self) -> None:
        """Describe what was announced: the array on the stack, or the byte order of a dtype."""
        state = self.pop()
        value = self.pop()
        if type(state) is not tuple:
            raise _Refused("no description")
        if isinstance(value, np.dtype):
            if len(state) < 2 or type(state[1]) is not str or state[1] not in ("<", "|"):
                raise _Refused("a dtype that is not little-endian")
            return self.push(value)
        if type(value) is not _Blank or value.filled is not None or len(state) != 5:
            raise _Refused("it describes what is no array")
        _, shape, dtype, fortran, data = state
        value.filled = self.counted(_array(data, dtype, shape, "F" if fortran is True else "C"))
        self.push(value.filled)


_COUNTS = {"dtype": 3, "blank": 3, "scalar": 2, "frombuffer": 4, "bytes": 2}


def _exactly(arguments: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    if len(arguments) != _COUNTS[name]:
        raise _Refused(f"{len(arguments)} arguments for {name}, expected {_COUNTS[name]}")
    return arguments


def _dtype(code: Any, align: Any, copy: Any) -> np.dtype:
    if type(code) is not str or code not in ("f4", "f8", "i4", "i8", "b1"):
        raise _Refused("a dtype other than f4, f8, i4, i8 and b1")
    return np.dtype(f"<{code}")


def _blank(kind: Any, shape: Any, code: Any) -> _Blank:
    if type(kind) is not _Known or kind.name != "ndarray":
        raise _Refused("an array that is no ndarray")
    return _Blank()


def _scalar(dtype: Any, data: Any) -> Any:
    return _array(data, dtype, (), "C").item()


def _array(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    """An array of a pickle, read-only; its bytes must be as many as its shape asks for."""
    if type(data) not in (bytes, bytearray) or not isinstance(dtype, np.dtype) or type(shape) is not tuple:
        raise _Refused("an array of other than bytes, dtype and shape")
    if len(shape) > 1 or any(type(length) is not int or length < 0 for length in shape):
        raise _Refused("an array of more than one axis")  # so the order means nothing
    if len(data) != dtype.itemsize * (shape[0] if shape else 1):
        raise _Refused(f"an array of {len(data)} bytes, which do not fit its shape")
    return np.frombuffer(bytes(data), dtype).reshape(shape)


def _latin(text: Any, encoding: Any) -> bytes:
    """Protocol 2 has no bytes; it says them as text."""
    if type(text) is not str or encoding != "latin1":
        raise _Refused("an encoding other than latin1")
    return text.encode("latin-1")


_NAMES = {"numpy.dtype": "dtype", "numpy.ndarray": "ndarray", "_codecs.encode": "bytes"} | {
    f"numpy.{core}.{name}": known
    for core in ("core", "_core")  # before NumPy 2, and since
    for name, known in (
        ("multiarray._reconstruct", "blank"),
        ("multiarray.scalar", "scalar"),
        ("numeric._frombuffer", "frombuffer"),
    )
}
_MAKERS: dict[str, Callable[..., Any]] = {
    "dtype": _dtype,
    "blank": _blank,
    "scalar": _scalar,
    "frombuffer": _array,
    "bytes": _latin,
}
_ACTS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(("PROTO", "FRAME"), lambda machine, value: None),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"), _Machine.push),
    **dict.fromkeys(("BINUNICODE", "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES", "BYTEARRAY8"), _Machine.push),
    "NONE": lambda machine, value: machine.push(None),
    "NEWTRUE": lambda machine, value: machine.push(True),
    "NEWFALSE": lambda machine, value: machine.push(False),
    "EMPTY_LIST": lambda machine, value: machine.push([]),
    "EMPTY_DICT": lambda machine, value: machine.push({}),
    "EMPTY_TUPLE": lambda machine, value: machine.push(()),
    "MARK": lambda machine, value: machine.mark(),
    "TUPLE": lambda machine, value: machine.push(tuple(machine.marked())),
    "TUPLE1": lambda machine, value: machine.push(tuple(machine.take(1))),
    "TUPLE2": lambda machine, value: machine.push(tuple(machine.take(2))),
    "TUPLE3": lambda machine, value: machine.push(tuple(machine.take(3))),
    "APPEND": lambda machine, value: machine.extend(machine.take(1)),
    "APPENDS": lambda machine, value: machine.extend(machine.marked()),
    "SETITEM": lambda machine, value: machine.update(machine.take(2)),
    "SETITEMS": lambda machine, value: machine.update(machine.marked()),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Machine.remember),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.recall),
    "MEMOIZE": lambda machine, value: machine.remember(len(machine.memo)),
    "GLOBAL": lambda machine, value: machine.name(*value.split(" ", 1)),
    "STACK_GLOBAL": lambda machine, value: machine.name(*machine.take(2)),
    "REDUCE": lambda machine, value: machine.reduce(),
    "BUILD": lambda machine, value: machine.build(),
}


SLOTS = 3
# A file of the original's largest configuration has 1497 units, 35 thousand connections and 119 million weights.
MOST_UNITS, MOST_LINKS, MOST_NUMBERS, MOST_WEIGHTS = 2**13, 5_000_000, 2**16, 2**31 - 1
SMALL = 2**20  # bytes of a member that holds a few words and numbers
MOST_SQUEEZED = 20  # weights are noise, which no zip makes much smaller


class Members:
    """The members of a zip, each read whole and within bounds; `disk` is its size as it lies there."""

    def __init__(self, path: Path):
        self.disk = path.stat().st_size
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            raise ValueError(
                f"{path}: found no whole zip ({error}), expected Sim_<name>_<id>_<step>.zip as PVM_cuda saves it"
            ) from error

    def __enter__(self) -> "Members":
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    def have(self, prefix: str) -> bool:
        """Whether there is a member whose name begins so."""
        return any(name.startswith(prefix) for name in self._zip.namelist())

    def size(self, name: str) -> int:
        """The bytes that a member is said to hold."""
        return self._info(name).file_size

    def value(self, name: str, most: int = SMALL) -> Any:
        """The value of a pickle of at most so many bytes."""
        return unpickled(name, self._bytes(name, most))

    def array(self, name: str, count: int, dtype: Any = np.float32) -> np.ndarray:
        """A read-only array of so many finite numbers."""
        meta = self.value(f"{name}.meta", 4096)
        if type(meta) is not list or len(meta) != 2 or type(meta[0]) is not tuple or not isinstance(meta[1], np.dtype):
            raise ValueError(f"{name}.meta: found a {type(meta).__name__}, expected a list of shape and dtype")
        if any(type(length) is not int for length in meta[0]):
            raise ValueError(f"{name}.meta: found a shape of other than whole numbers, expected ({count},)")
        refuse_form(f"{name}.meta", meta[0], meta[1], count, dtype)
        expected = count * np.dtype(dtype).itemsize
        data = self._bytes(name, expected)
        if len(data) != expected:
            raise ValueError(f"{name}: found {len(data)} bytes, expected {expected}")
        values = np.frombuffer(data, dtype)
        check.finite(name, values)
        return values

    def _info(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._zip.getinfo(name)
        except KeyError:
            raise ValueError(f"{name}: missing; expected a checkpoint as PVM_cuda saves it") from None

    def _bytes(self, name: str, most: int) -> bytes:
        """`zipfile` gives no more than the size that a member says it has, whatever it unpacks to."""
        info = self._info(name)
        if info.file_size > most:
            raise ValueError(f"{name}: found {info.file_size} bytes, expected at most {most}")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise ValueError(f"{name}: found it encrypted or compressed otherwise, expected deflated")
        try:
            data = self._zip.read(info)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error, NotImplementedError) as error:
            why = str(error) or type(error).__name__
            raise ValueError(f"{name}: found it damaged ({why}), expected a whole file; copy it again") from error
        if len(data) != info.file_size:
            raise ValueError(f"{name}: found it truncated, {len(data)} bytes, expected {info.file_size}")
        return data


def refuse_form(name: str, shape: Any, dtype: Any, count: int, expected: Any) -> None:
    """ValueError unless an array has this dtype and so many numbers."""
    if shape != (count,) or dtype != expected:
        form = f"{np.dtype(expected)} ({count},)"
        raise ValueError(f"{name}: found {dtype} {shape}, expected {form}, as the specs ask for")


class Simulation(NamedTuple):
    """What is read from a checkpoint.

    config  with the rates in force, which may have been changed by hand, as events of the schedule
    notes   what is not taken, or is changed, a line each
    step    the number of the next frame
    arrays  for `PVM.put`
    """

    config: Config
    notes: list[str]
    step: int
    arrays: dict[str, np.ndarray]


def import_simulation(path: str | Path, *, device: str | None = None) -> PVM:
    """The model of an original's checkpoint; as the original would, it resets the rate of the readouts. It goes on without
    the original's mistakes.

    device  as of PVM

    Raises FileNotFoundError, and ValueError, naming file and member, for what is no such checkpoint, or a damaged one.
    """
    return model(read(path), device=device)


def model(simulation: Simulation, *, device: str | None = None) -> PVM:
    """The model of what `read` returned."""
    pvm = PVM(simulation.config, device=device)
    pvm.put(simulation.arrays)
    pvm.step_number = simulation.step
    return pvm


def read(path: str | Path) -> Simulation:
    """Everything in a checkpoint that a model of ours needs; arguments and errors as of `import_simulation`."""
    with Members(Path(path)) as members:
        try:
            return _simulation(members)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def _simulation(members: Members) -> Simulation:
    """The order matters: nothing is wired, laid out or read before its sizes are checked."""
    step = _whole("pvm/step.pkl", members.value("pvm/step.pkl"), 0, 2**62)
    config, notes, multiplier = _config(members)
    config = _with_readouts(members, config, notes)
    wiring = wire(config)
    weights, readouts = _counted(members, config, wiring)
    _refuse_other_graph(members, wiring)
    layout = tape_layout(wiring, config)
    config = _in_force(members, config, wiring, step, multiplier)
    if not config.rates(step)[0].any():
        notes.append(
            "rates: all 0 at this step, saved while it was frozen or before it began; the schedule sets the next"
        )
    resting = ~np.any(config.rates(step), axis=0)[wiring.layer]
    arrays = _units(members, layout, weights, resting) | _state(members, layout, int(np.prod(wiring.frame)), step)
    if config.readout:
        arrays |= _readouts(members, config, wiring, readouts)
    return Simulation(config, notes, step, arrays)


# What the model is


def _config(members: Members) -> tuple[Config, list[str], float]:
    """The configuration, notes, and the ratio of the readouts' rate to that of the units."""
    specs = _plain_specs(members.value("pvm/specs.pkl"))
    name = members.value("pvm/name.pkl")
    plain = type(name) is str and re.fullmatch(r"[\w.-]{1,99}", name)
    config, notes = originals.read(specs, name if plain else "simulation", wiring="cuda")
    asked = members.value("pvm/poly.pkl")  # of the specs that it began with; later ones do not change it
    if type(asked) is not bool:
        raise ValueError(f"pvm/poly.pkl: found a {type(asked).__name__}, expected a bool")
    config = dataclasses.replace(config, activation="rational" if asked else "logistic")
    _refuse_size(config)
    return config, notes, check.number("readout_multiplier", float(specs.get("readout_multiplier", 10)), 0)


def _plain_specs(specs: Any) -> dict[str, Any]:
    """The specs, if they are what a configuration file says; ValueError otherwise."""
    if type(specs) is not dict or not originals.recognised(specs):
        raise ValueError(f"pvm/specs.pkl: found a {type(specs).__name__}, expected the options of a model")
    for name, value in specs.items():
        if type(name) is not str or not name.isprintable():  # they stand in notes
            raise ValueError(f"pvm/specs.pkl: found the name {name!r}, expected words")
        for one in value if type(value) is list else [value]:
            if type(one) not in (str, int, float, bool, type(None)) or (type(one) is int and abs(one) > 2**53):
                raise ValueError(f"pvm/specs.pkl: {name}: found a {type(one).__name__}, expected words and numbers")
    return specs


def _refuse_size(config: Config) -> None:
    """ValueError for a model so large that even to count its weights takes long."""
    units = sum(rows * columns for rows, columns in config.grids)
    _whole("pvm/specs.pkl: units", units, 1, MOST_UNITS)
    _whole("pvm/specs.pkl: hidden numbers of a unit", config.hidden[0], 1, MOST_NUMBERS)
    _whole("pvm/specs.pkl: numbers of a patch", config.block[0] * config.block[1] * config.channels, 1, MOST_NUMBERS)
    top = config.grids[-1][0] * config.grids[-1][1]
    links = units * ((2 * int(config.lateral_radius) + 1) ** 2 + 2 * config.fan_in**4 + top)  # there are no more
    _whole("pvm/specs.pkl: connections", links, 1, MOST_LINKS)


def _with_readouts(members: Members, config: Config, notes: list[str]) -> Config:
    """The configuration with the readouts that the file has: their sizes are of the run, not of the specs."""
    if not members.have("mlp/") or not members.have("readout/"):
        notes.append("readout: none in this file, none taken; the original would begin a new one")
        return dataclasses.replace(config, readout=None)
    layers = _whole("mlp/max_layers.pkl", members.value("mlp/max_layers.pkl"), 1, 9)
    if layers != 2:
        raise ValueError(f"mlp/max_layers.pkl: found {layers}, expected 2: readouts with more layers are not built yet")
    tiles = config.grids[0][0] * config.grids[0][1]
    hidden = _one("mlp/objects/shape0_00.npy", members.array("mlp/objects/shape0_00.npy", tiles, np.int32))
    momentum = _one("mlp/objects/momentum_mem_00.npy", members.array("mlp/objects/momentum_mem_00.npy", tiles))
    name, block = "readout/heatmap_block_size.pkl", config.block[0]
    if members.have(name) and (found := members.value(name)) is not None:  # older files have none, or None
        block = _whole(name, found, 1, MOST_NUMBERS)
    assert config.readout
    readout = dataclasses.replace(
        config.readout,
        hidden=(_whole("mlp/objects/shape0_00.npy", int(hidden), 1, MOST_NUMBERS),),
        block=() if (block, block) == config.block else ((block, block),),
        momentum=_short(momentum),
    )
    return dataclasses.replace(config, readout=readout)


def _counted(members: Members, config: Config, wiring: Wiring) -> tuple[int, int]:
    """Weights of the units and of the readouts, which is what the file has, to the byte; else ValueError."""
    units, readouts = parameters(config, wiring)
    first, second = (members.size(f"mlp/objects/weight_mem_{k:02d}.npy") if readouts else 0 for k in range(2))
    for name, expected, size in (
        ("pvm/weight_memory_main.npy", units, members.size("pvm/weight_memory_main.npy")),
        ("mlp/objects/weight_mem_00.npy and _01", readouts, first + second),
    ):
        if size != 4 * expected:
            raise ValueError(f"{name}: found {size} bytes, expected {4 * expected}, which the specs ask for")
        _whole(f"{name}: numbers", expected, 0, min(MOST_WEIGHTS, MOST_SQUEEZED * members.disk // 4))
    return units, readouts


def _refuse_other_graph(members: Members, wiring: Wiring) -> None:
    """ValueError unless the connections that the file lists are those that we make of its specs."""
    links = sum(map(len, wiring.signal)) + sum(map(len, wiring.context))
    units, name = len(wiring.hidden), "pvm/graph.pkl"
    graph = members.value(name, 4096 + 4096 * units + 32 * links)
    if type(graph) is not list or len(graph) != units or any(type(unit) is not dict for unit in graph):
        raise ValueError(f"{name}: found a {type(graph).__name__}, expected a list of {units} units")
    for at, unit in enumerate(graph):
        for key, expected in (("primary_sources", wiring.signal[at]), ("context_sources", wiring.context[at])):
            found = unit.get(key)
            if type(found) is not list or found != expected.tolist():
                raise ValueError(
                    f"{name}: found other {key} of unit {at} than the specs ask for, expected {expected.tolist()}; "
                    "specs that were exchanged while it ran, or a rule of the original that ours corrects"
                )


def _in_force(members: Members, config: Config, wiring: Wiring, step: int, multiplier: float) -> Config:
    """With an event for each layer that has another rate or momentum than scheduled, and for the readouts."""
    names = "pvm/learning_rate_arr.npy", "pvm/momentum_arr.npy"
    units = [members.array(name, len(wiring.layer)) for name in names]
    layers = [wiring.layer == layer for layer in range(len(config.grids))]
    rate, momentum = (
        np.array([check.number(name, float(_one(name, values[layer])), 0) for layer in layers])
        for name, values in zip(names, units, strict=True)
    )
    # What is due at this very step is still to come, and wins.
    kept = config.rates_after((rate, momentum), step)
    found, planned = (np.array(one, np.float32) for one in (kept, config.rates(step)))
    changed = np.flatnonzero((found != planned).any(axis=0))
    events = tuple((step, int(layer), _short(found[0, layer]), _short(found[1, layer])) for layer in changed)
    readout = config.readout
    if readout:
        # The original resets them when it loads a file, by the rate of unit 0.
        reset = readout.rate(step, _short(np.float32(multiplier * _short(units[0][0]))))
        if np.float32(reset) != np.float32(readout.rate(step)):
            readout = dataclasses.replace(readout, schedule=(*readout.schedule, (step, reset)))
    return dataclasses.replace(config, schedule=(*config.schedule, *events), readout=readout)


# What the model holds


def _units(members: Members, layout: TapeLayout, count: int, resting: np.ndarray) -> dict[str, np.ndarray]:
    """Weights and velocity. The last change stands in the one of two buffers that is not written next."""
    last = 1 - _whole("pvm/buffer_index.pkl", members.value("pvm/buffer_index.pkl"), 0, 1)
    bias = np.stack([layout.columns[::2], layout.hidden], 1).ravel()
    weights, velocity = (
        _repacked([members.array(member, count)], layout.rows, layout.columns, bias, layout.w_at)
        for member in ("pvm/weight_memory_main.npy", f"pvm/dweight_memory_{last}.npy")
    )
    begin = np.append(layout.w_at[::2], count)
    for u in np.flatnonzero(resting):  # the original's next frame does that; we leave units alone that do not learn
        velocity[begin[u] : begin[u + 1]] = 0
    return {"weights": weights, "velocity": velocity}


def _readouts(members: Members, config: Config, wiring: Wiring, count: int) -> dict[str, np.ndarray]:
    """The same of the readouts, whose first and second matrices stand in members of their own."""
    assert config.readout
    (h,), (rows, columns) = config.readout.hidden, (config.readout.block or (config.block,))[0]
    inputs = [int(wiring.hidden[ids].sum()) for ids in receptive(wiring)]
    layout = unit_layout(inputs, [h] * len(inputs), [rows * columns] * len(inputs))
    for name, expected in (("shape0_00", [h]), ("shape1_00", np.add(inputs, 1)), ("shape0_01", [rows * columns])):
        if (members.array(f"mlp/objects/{name}.npy", len(inputs), np.int32) != expected).any():
            raise ValueError(
                f"mlp/objects/{name}.npy: found other sizes, expected {expected[:3]}... as the specs ask for"
            )
    flipped = members.value("mlp/flip_buf.pkl")
    if type(flipped) is not bool:
        raise ValueError(f"mlp/flip_buf.pkl: found a {type(flipped).__name__}, expected a bool")
    first = h * np.add(inputs, 1)
    w_at = np.stack([layout.w_at[:-1], layout.w_at[:-1] + first], 1).ravel()
    high, wide = (
        np.stack([layout.hidden, layout.outputs], 1).ravel(),
        np.stack([layout.inputs, layout.hidden], 1).ravel(),
    )
    sizes = int(first.sum()), count - int(first.sum())
    arrays = {}
    for name, member in (("weights", "weight_mem"), ("velocity", "dweight_mem" if flipped else "mweight_mem")):
        parts = [members.array(f"mlp/objects/{member}_{k:02d}.npy", size) for k, size in enumerate(sizes)]
        arrays[f"readout.{name}"] = _repacked(parts, high, wide, wide, w_at)
    return arrays


def _repacked(
    parts: list[np.ndarray], rows: np.ndarray, columns: np.ndarray, bias: np.ndarray, w_at: np.ndarray
) -> np.ndarray:
    """Weights in our order, each matrix and then its bias: the original has all first matrices and then all second ones.

    parts     one or more flat arrays, one behind the other, that end with a matrix
    rows, columns, bias, w_at  of the dense layers, two a unit; the bias is so many columns from the left of its matrix
    """
    flat = np.concatenate(parts) if len(parts) > 1 else parts[0]
    packed, at = np.empty_like(flat), 0
    for k in (*range(0, len(rows), 2), *range(1, len(rows), 2)):
        high, wide, middle = int(rows[k]), int(columns[k]), int(bias[k])
        matrix = flat[at : at + high * (wide + 1)].reshape(high, wide + 1)
        at += matrix.size
        place = packed[w_at[k] : w_at[k] + matrix.size]
        weights = place[: high * wide].reshape(high, wide)
        weights[:, :middle], weights[:, middle:] = matrix[:, :middle], matrix[:, middle + 1 :]
        place[high * wide :] = matrix[:, middle]
    return packed


def _state(members: Members, layout: TapeLayout, frame: int, step: int) -> dict[str, np.ndarray]:
    """Tapes, signals and worlds of the last frames. Frame t stands in slot t modulo 3, with the original as with us."""
    read = layout.columns[::2]  # behind which stands a 1
    later = layout.columns[1::2] + 1  # with the 1 behind the hidden vector
    x, y = (_slots(members, f"pvm/{name}_mem_activation.pkl", int((read + 1).sum())) for name in ("input", "output"))
    z = _slots(members, "pvm/repre_mem_activation.pkl", int(later.sum()))
    x_at, z_at = np.cumsum(read + 1) - read - 1, np.cumsum(later) - later
    arrays = {}
    for k in range(SLOTS):
        pieces = []
        for u, h in enumerate(layout.hidden):
            tail = slice(z_at[u] + h + 1, z_at[u] + later[u])  # raw context, where it goes into the second matrix
            predicted = slice(x_at[u], x_at[u] + layout.rows[2 * u + 1])
            pieces += [x[k][x_at[u] : x_at[u] + read[u]], z[k][z_at[u] : z_at[u] + h], z[k][tail], y[k][predicted]]
        arrays[f"tape_{k}"] = np.concatenate(pieces)[None]
    signals, hidden = runs(x_at, np.diff(layout.signal_at)), runs(z_at, layout.hidden)
    for back in (1, 2):
        arrays[f"signals_{(step - back) % 2}"] = x[(step - back) % SLOTS][signals][None]
        # A tick reads what the one before has published, and writes its frame beside it.
        published = z[(step - back) % SLOTS][hidden]
        arrays[f"world_{(step - back + 1) % 2}"] = np.concatenate([np.zeros(frame, np.float32), published])[None]
    return arrays


def _slots(members: Members, name: str, count: int) -> list[np.ndarray]:
    """What a member holds for each of the three time slots. Protocol 2 spells bytes as text, of up to twice their size."""
    slots = members.value(name, 2 * SLOTS * 4 * count + 4096)
    if type(slots) is not list or len(slots) != SLOTS or any(type(one) is not np.ndarray for one in slots):
        raise ValueError(f"{name}: found a {type(slots).__name__}, expected a list of {SLOTS} arrays")
    for one in slots:
        refuse_form(name, one.shape, one.dtype, count, np.float32)
        check.finite(name, one)
    return slots


def _one(name: str, values: np.ndarray) -> Any:
    """The one number that all of them are; ValueError where they differ."""
    if (values != values[0]).any():
        raise ValueError(f"{name}: found {values.min()} and {values.max()}, expected the same throughout a layer")
    return values[0]


def _short(number: np.floating) -> float:
    """The shortest decimal that a float32 is the nearest to: 0.002, not 0.0020000000949949026."""
    return float(str(np.float32(number)))


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if type(value) is not int:
        raise ValueError(f"{name}: found a {type(value).__name__}, expected a whole number")
    return check.whole(name, value, low, high)

"""Import of checkpoints of the CUDA original, `Sim_<name>_<id>_<step>.zip` of piekniewski/PVM_cuda.

    pvm = model(read("Sim_small_0badcafe_000100000.zip"))

Such a zip holds the attributes of three objects individually: pvm/ the units, readout/ and mlp/ the readouts, if any. An array
is NAME.npy, its raw bytes (without a header, despite the suffix), and NAME.npy.meta, the pickle of [shape, dtype]. All else is
NAME.pkl, a pickle, including the three time slots, which are lists of arrays.

No pickle is executed: pickles.py parses them as data. Unneeded members are not opened.
"""

import dataclasses
import re
import struct
import zipfile
import zlib
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ... import check
from ...units import UnitLayout
from .. import originals
from ..config import Config
from ..heads import layout_of
from ..layout import TapeLayout, runs, tape_layout, weights_at
from ..model import PVM
from ..wiring import Wiring, wire
from .pickles import unpickled

SLOTS = 3
# The original's largest configuration has 1497 units, 35 thousand connections and 119 million weights.
MOST_UNITS, MOST_LINKS, MOST_NUMBERS, MOST_WEIGHTS = 2**13, 5_000_000, 2**16, 2**31 - 1
SMALL = 2**20  # bytes of a member with a few words and numbers
MOST_SQUEEZED = 20  # weights are noise, which hardly compresses


class Members:
    """The members of a zip, each read completely and within bounds; `disk` is its size in the file. Close `zip`."""

    def __init__(self, path: Path):
        self.disk = path.stat().st_size
        try:
            self.zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            raise ValueError(
                f"{path}: found no valid zip ({error}), expected Sim_<name>_<id>_<step>.zip as PVM_cuda saves it"
            ) from error

    def have(self, prefix: str) -> bool:
        """True if a member's name starts with the prefix."""
        return any(name.startswith(prefix) for name in self.zip.namelist())

    def value(self, name: str, most: int = SMALL) -> Any:
        """Returns the value of a pickle of at most `most` bytes."""
        return unpickled(name, self._bytes(name, most))

    def array(self, name: str, count: int, dtype: Any = np.float32) -> np.ndarray:
        """Returns a read-only array of `count` finite numbers."""
        meta = self.value(f"{name}.meta", 4096)
        if type(meta) is not list or len(meta) != 2 or type(meta[0]) is not tuple or not isinstance(meta[1], np.dtype):
            raise ValueError(f"{name}.meta: found a {type(meta).__name__}, expected a list of shape and dtype")
        if any(type(length) is not int for length in meta[0]):
            raise ValueError(f"{name}.meta: found a shape of other than whole numbers, expected ({count},)")
        _check_form(f"{name}.meta", meta[0], meta[1], count, dtype)
        expected = count * np.dtype(dtype).itemsize
        data = self._bytes(name, expected)
        if len(data) != expected:
            raise ValueError(f"{name}: found {len(data)} bytes, expected {expected}")
        values = np.frombuffer(data, dtype)
        check.finite(name, values)
        return values

    def info(self, name: str) -> zipfile.ZipInfo:
        """Returns the facts of a member, such as its stated size in bytes."""
        try:
            return self.zip.getinfo(name)
        except KeyError:
            raise ValueError(f"{name}: missing; expected a checkpoint as PVM_cuda saves it") from None

    def _bytes(self, name: str, most: int) -> bytes:
        """Reads a member; `zipfile` returns at most its stated size, whatever it unpacks to."""
        info = self.info(name)
        if info.file_size > most:
            raise ValueError(f"{name}: found {info.file_size} bytes, expected at most {most}")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise ValueError(f"{name}: found it encrypted or compressed otherwise, expected deflated")
        try:
            data = self.zip.read(info)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error, NotImplementedError) as error:
            why = str(error) or type(error).__name__
            raise ValueError(f"{name}: found it damaged ({why}), expected it intact; copy it again") from error
        if len(data) != info.file_size:
            raise ValueError(f"{name}: found it truncated, {len(data)} bytes, expected {info.file_size}")
        return data


def _check_form(name: str, shape: Any, dtype: Any, count: int, expected: Any) -> None:
    if shape != (count,) or dtype != expected:
        form = f"{np.dtype(expected)} ({count},)"
        raise ValueError(f"{name}: found {dtype} {shape}, expected {form}, as the specs say")


class Simulation(NamedTuple):
    """The content of a checkpoint.

    config  with the rates in force, which may have been set manually, as events of the schedule
    notes   one line for each part that is ignored or changed
    step    the number of the next frame
    arrays  for `PVM.put`
    """

    config: Config
    notes: list[str]
    step: int
    arrays: dict[str, np.ndarray]


def model(simulation: Simulation, *, device: str | None = None) -> PVM:
    """Returns the model of a `read` result, which continues without the original's errors; device: as in PVM."""
    pvm = PVM(simulation.config, device=device)
    pvm.put(simulation.arrays)
    pvm.tick = simulation.step
    return pvm


def read(path: str | Path) -> Simulation:
    """Reads the parts of a checkpoint that our model needs; as in the original, it resets the rate of the readouts.

    Raises FileNotFoundError, and ValueError, naming file and member, for any other or a damaged file.
    """
    members = Members(Path(path))
    try:
        with members.zip:
            return _simulation(members)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _simulation(members: Members) -> Simulation:
    # The order matters: sizes are checked before anything is wired, laid out or read.
    step = _whole("pvm/step.pkl", members.value("pvm/step.pkl"), 0, 2**62)
    config, notes, multiplier = _config(members)
    config = _with_readouts(members, config, notes)
    wiring = wire(config)
    layout = tape_layout(wiring, config)
    heads = layout_of(wiring, config)[0] if config.readout else None
    _check_sizes(members, int(weights_at(layout)[-1]), int(heads.w_at[-1]) if heads else 0)
    _refuse_other_graph(members, wiring)
    config = _in_force(members, config, wiring, step, multiplier)
    if not config.rates(step)[0].any():
        saved = "saved while it was frozen or before it began"
        notes.append(f"rates: all 0 at this step, {saved}; the schedule sets the next")
    resting = ~np.any(config.rates(step), axis=0)[wiring.layer]
    arrays = _units(members, layout, resting) | _state(members, layout, int(np.prod(wiring.frame)), step)
    if heads:
        arrays |= _readouts(members, heads)
    return Simulation(config, notes, step, arrays)


def _config(members: Members) -> tuple[Config, list[str], float]:
    """Returns the configuration, notes, and the ratio of the readouts' rate to that of the units."""
    specs = _plain_specs(members.value("pvm/specs.pkl"))
    name = members.value("pvm/name.pkl")
    plain = type(name) is str and re.fullmatch(r"[\w.-]{1,99}", name)
    config, notes = originals.read(specs, name if plain else "simulation", wiring="cuda")
    asked = members.value("pvm/poly.pkl")  # of the initial specs; later ones do not change it
    if type(asked) is not bool:
        raise ValueError(f"pvm/poly.pkl: found a {type(asked).__name__}, expected a bool")
    config = dataclasses.replace(config, activation="rational" if asked else "logistic")
    # A model so large that even counting its weights takes long is refused first.
    units = _whole("pvm/specs.pkl: units", sum(map(prod, config.grids)), 1, MOST_UNITS)
    _whole("pvm/specs.pkl: hidden activations of a unit", config.hidden[0], 1, MOST_NUMBERS)
    _whole("pvm/specs.pkl: numbers of a patch", prod(config.block) * config.channels, 1, MOST_NUMBERS)
    beside, top = (2 * int(config.lateral_radius) + 1) ** 2, prod(config.grids[-1])
    links = units * (beside + 2 * config.fan_in**4 + top)  # an upper bound
    _whole("pvm/specs.pkl: connections", links, 1, MOST_LINKS)
    return config, notes, check.number("readout_multiplier", float(specs.get("readout_multiplier", 10)), 0)


def _plain_specs(specs: Any) -> dict[str, Any]:
    if type(specs) is not dict or not originals.recognised(specs):
        raise ValueError(f"pvm/specs.pkl: found a {type(specs).__name__}, expected the options of a model")
    for name, value in specs.items():
        if type(name) is not str or not name.isprintable():  # they appear in notes
            raise ValueError(f"pvm/specs.pkl: found the name {name!r}, expected words")
        for one in value if type(value) is list else [value]:
            if type(one) not in (str, int, float, bool, type(None)) or (type(one) is int and abs(one) > 2**53):
                raise ValueError(f"pvm/specs.pkl: {name}: found a {type(one).__name__}, expected words and numbers")
    return specs


def _with_readouts(members: Members, config: Config, notes: list[str]) -> Config:
    """Returns the configuration with the readouts of the file: their sizes are those of the run, not of the specs."""
    if not members.have("mlp/") or not members.have("readout/"):
        notes.append("readout: none in this file, none taken; the original would begin a new one")
        return dataclasses.replace(config, readout=None)
    layers = _whole("mlp/max_layers.pkl", members.value("mlp/max_layers.pkl"), 1, 9)
    if layers != 2 or config.readout is None:
        raise ValueError(f"mlp/max_layers.pkl: found {layers}, expected 2: readouts with more layers are not built yet")
    tiles = prod(config.grids[0])
    hidden = _one("mlp/objects/shape0_00.npy", members.array("mlp/objects/shape0_00.npy", tiles, np.int32))
    momentum = _one("mlp/objects/momentum_mem_00.npy", members.array("mlp/objects/momentum_mem_00.npy", tiles))
    name, block = "readout/heatmap_block_size.pkl", config.block[0]
    if members.have(name) and (found := members.value(name)) is not None:  # older files have none, or None
        block = _whole(name, found, 1, MOST_NUMBERS)
    readout = dataclasses.replace(
        config.readout,
        hidden=(_whole("mlp/objects/shape0_00.npy", int(hidden), 1, MOST_NUMBERS),),
        block=() if (block, block) == config.block else ((block, block),),
        momentum=_short(momentum),
    )
    return dataclasses.replace(config, readout=readout)


def _check_sizes(members: Members, units: int, readouts: int) -> None:
    first, second = "mlp/objects/weight_mem_00.npy", "mlp/objects/weight_mem_01.npy"
    of_readouts = members.info(first).file_size + members.info(second).file_size if readouts else 0
    main = "pvm/weight_memory_main.npy"
    of_units = members.info(main).file_size
    for name, expected, size in ((main, units, of_units), (f"{first} and _01", readouts, of_readouts)):
        if size != 4 * expected:
            raise ValueError(f"{name}: found {size} bytes, expected {4 * expected}, as the specs say")
        _whole(f"{name}: numbers", expected, 0, min(MOST_WEIGHTS, MOST_SQUEEZED * members.disk // 4))


def _refuse_other_graph(members: Members, wiring: Wiring) -> None:
    """Raises ValueError unless the connections in the file equal those that we make of its specs."""
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
                    f"{name}: found other {key} of unit {at} than the specs say, expected {expected.tolist()}; "
                    "specs that were exchanged while it ran, or a rule of the original that ours corrects"
                )


def _in_force(members: Members, config: Config, wiring: Wiring, step: int, multiplier: float) -> Config:
    """Adds an event for each layer whose rate or momentum differs from the schedule, and for the readouts."""
    names = "pvm/learning_rate_arr.npy", "pvm/momentum_arr.npy"
    units = [members.array(name, len(wiring.layer)) for name in names]
    layers = [wiring.layer == layer for layer in range(len(config.grids))]
    rate, momentum = (
        np.array([check.number(name, float(_one(name, values[layer])), 0) for layer in layers])
        for name, values in zip(names, units, strict=True)
    )
    # Events due at this very step are still to come, and override.
    kept = config.rates_after((rate, momentum), step)
    found, planned = (np.array(one, np.float32) for one in (kept, config.rates(step)))
    changed = np.flatnonzero((found != planned).any(axis=0))
    events = tuple((step, int(layer), _short(found[0, layer]), _short(found[1, layer])) for layer in changed)
    readout = config.readout
    if readout:
        # The original resets them on loading a file, by the rate of unit 0.
        reset = readout.rate(step, _short(np.float32(multiplier * _short(units[0][0]))))
        if np.float32(reset) != np.float32(readout.rate(step)):
            readout = dataclasses.replace(readout, schedule=(*readout.schedule, (step, reset)))
    return dataclasses.replace(config, schedule=(*config.schedule, *events), readout=readout)


def _units(members: Members, layout: TapeLayout, resting: np.ndarray) -> dict[str, np.ndarray]:
    """Returns weights and velocity. The last update is in the one of two buffers that is not written next."""
    last, begin = 1 - _whole("pvm/buffer_index.pkl", members.value("pvm/buffer_index.pkl"), 0, 1), weights_at(layout)
    bias = np.stack([layout.columns[::2], layout.hidden], 1).ravel()
    weights, velocity = (
        _repacked([members.array(member, int(begin[-1]))], layout.rows, layout.columns, bias, layout.w_at)
        for member in ("pvm/weight_memory_main.npy", f"pvm/dweight_memory_{last}.npy")
    )
    for u in np.flatnonzero(resting):  # the original does so in the next frame; we never touch units that do not learn
        velocity[begin[u] : begin[u + 1]] = 0
    return {"weights": weights, "velocity": velocity}


def _readouts(members: Members, layout: UnitLayout) -> dict[str, np.ndarray]:
    """Returns the same of the readouts, whose first and second matrices are separate members."""
    inputs, hidden, outputs = (size.astype(np.int64) for size in layout[:3])
    for name, expected in (("shape0_00", hidden), ("shape1_00", inputs + 1), ("shape0_01", outputs)):
        if (members.array(f"mlp/objects/{name}.npy", len(inputs), np.int32) != expected).any():
            raise ValueError(f"mlp/objects/{name}.npy: found other sizes, expected {expected[:3]}... as the specs say")
    flipped = members.value("mlp/flip_buf.pkl")
    if type(flipped) is not bool:
        raise ValueError(f"mlp/flip_buf.pkl: found a {type(flipped).__name__}, expected a bool")
    first = hidden * (inputs + 1)
    w_at = np.stack([layout.w_at[:-1], layout.w_at[:-1] + first], 1).ravel()
    high, wide = np.stack([hidden, outputs], 1).ravel(), np.stack([inputs, hidden], 1).ravel()
    sizes = int(first.sum()), int(layout.w_at[-1] - first.sum())
    arrays = {}
    for name, member in (("weights", "weight_mem"), ("velocity", "dweight_mem" if flipped else "mweight_mem")):
        parts = [members.array(f"mlp/objects/{member}_{k:02d}.npy", size) for k, size in enumerate(sizes)]
        arrays[f"readout.{name}"] = _repacked(parts, high, wide, wide, w_at)
    return arrays


def _repacked(
    parts: list[np.ndarray], rows: np.ndarray, columns: np.ndarray, bias: np.ndarray, w_at: np.ndarray
) -> np.ndarray:
    """Returns weights in our order, each matrix and then its bias: the original has all first matrices before all second ones.

    parts     flat arrays to concatenate, the last of which ends with a matrix
    rows, columns, bias, w_at  of the dense layers, two per unit; the bias is column `bias` of its matrix
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
    """Returns tapes, signals and worlds of the last frames. Frame t is in slot t modulo 3, in the original and here."""
    read = layout.columns[::2]  # followed by a 1
    later = layout.columns[1::2] + 1  # with the 1 after the hidden vector
    x, y = (_slots(members, f"pvm/{name}_mem_activation.pkl", int((read + 1).sum())) for name in ("input", "output"))
    z = _slots(members, "pvm/repre_mem_activation.pkl", int(later.sum()))
    x_at, z_at = np.cumsum(read + 1) - read - 1, np.cumsum(later) - later
    arrays = {}
    for k in range(SLOTS):
        pieces = []
        for u, h in enumerate(layout.hidden):
            tail = slice(z_at[u] + h + 1, z_at[u] + later[u])  # raw context, if it enters the second matrix
            predicted = slice(x_at[u], x_at[u] + layout.rows[2 * u + 1])
            pieces += [x[k][x_at[u] : x_at[u] + read[u]], z[k][z_at[u] : z_at[u] + h], z[k][tail], y[k][predicted]]
        arrays[f"tape_{k}"] = np.concatenate(pieces)[None]
    signals, hidden = runs(x_at, np.diff(layout.signal_at)), runs(z_at, layout.hidden)
    for back in (1, 2):
        arrays[f"signals_{(step - back) % 2}"] = x[(step - back) % SLOTS][signals][None]
        # A tick reads the values that the previous one published, and writes its frame next to them.
        published = z[(step - back) % SLOTS][hidden]
        arrays[f"world_{(step - back + 1) % 2}"] = np.concatenate([np.zeros(frame, np.float32), published])[None]
    return arrays


def _slots(members: Members, name: str, count: int) -> list[np.ndarray]:
    """Returns a member's content for each of the three time slots. Protocol 2 spells bytes as text, up to twice their size."""
    slots = members.value(name, 2 * SLOTS * 4 * count + 4096)
    if type(slots) is not list or len(slots) != SLOTS or any(type(one) is not np.ndarray for one in slots):
        raise ValueError(f"{name}: found a {type(slots).__name__}, expected a list of {SLOTS} arrays")
    for one in slots:
        _check_form(name, one.shape, one.dtype, count, np.float32)
        check.finite(name, one)
    return slots


def _one(name: str, values: np.ndarray) -> Any:
    if (values != values[0]).any():
        raise ValueError(f"{name}: found {values.min()} and {values.max()}, expected the same throughout a layer")
    return values[0]


def _short(number: np.floating) -> float:
    """Returns the shortest decimal that rounds to a float32: 0.002, not 0.0020000000949949026."""
    return float(str(np.float32(number)))


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if type(value) is not int:
        raise ValueError(f"{name}: found a {type(value).__name__}, expected a whole number")
    return check.whole(name, value, low, high)

"""The graph of units: that of a configuration, by the rules of the two originals, or a custom one."""

from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from .. import check
from .config import Config

Patch = tuple[int, int, int, int]
Lists = list[list[int]]


class Wiring(NamedTuple):
    """A graph of U units, which are numbered layer by layer, within a layer row by row.

    layer        (U,) int32, ascending from 0
    row, column  (U,) int32: the unit's position in its layer's grid
    hidden       (U,) int32: hidden activations, which a unit publishes
    patch        U: the part of the frame that the unit predicts, (row, column, rows, columns); None: it has a signal
    signal       U x int32: units whose hidden activations it predicts, in the order of its input
    context      U x int32: units whose hidden activations are only input, in the order of its input; may repeat
    feedback     U x bool, one for each context unit: True from above, False from the same layer
    grids        rows and columns of each layer
    frame        rows, columns, channels
    """

    layer: np.ndarray
    row: np.ndarray
    column: np.ndarray
    hidden: np.ndarray
    patch: list[Patch | None]
    signal: list[np.ndarray]
    context: list[np.ndarray]
    feedback: list[np.ndarray]
    grids: tuple[tuple[int, int], ...]
    frame: tuple[int, int, int]


def wire(config: Config) -> Wiring:
    """Returns the graph of `config` by its rule, "cuda" or "classic"."""
    first = accumulate((rows * columns for rows, columns in config.grids), initial=0)
    grids = [_Grid(base, *shape) for base, shape in zip(first, config.grids, strict=False)]
    signal: Lists = [[] for _ in grids[0].places()]
    for low, up in pairwise(grids):
        signal += _blocks(config, low, up)
    if any(not ids for ids in signal[grids[0].rows * grids[0].columns :]):
        raise ValueError(
            f"fan_in: found {config.fan_in} within {config.fan_in_radius}, which leaves a unit without a signal, "
            "expected no more than the layer below has; make fan_in smaller or fan_in_radius larger"
        )
    lateral = [ids for grid in grids for ids in _lateral(config, grid)]
    above = (_above_cuda if config.wiring == "cuda" else _above_classic)(config, grids, signal, lateral)
    (rows, columns), units = config.block, list[Unit]()
    for layer, grid in enumerate(grids):
        for row, column in grid.places():
            beside, over = lateral[len(units)], above[len(units)]
            patch = None if layer else (row * rows, column * columns, rows, columns)
            feedback = (False,) * len(beside) + (True,) * len(over)
            sources = tuple(signal[len(units)]), (*beside, *over)
            units.append(Unit(layer, config.hidden[layer], patch, *sources, feedback, row, column))
    return _built(units, config.frame)


class Unit(NamedTuple):
    """One unit of a custom graph; see `Wiring` for its fields."""

    layer: int
    hidden: int
    patch: Patch | None = None
    signal: tuple[int, ...] = ()
    context: tuple[int, ...] = ()
    feedback: tuple[bool, ...] | None = None  # None: True for units of a higher layer
    row: int | None = None  # None: units of a layer form one column
    column: int = 0


def custom(frame: tuple[int, int, int], units: Iterable[Unit | Mapping[str, Any]]) -> Wiring:
    """Returns a custom graph.

    frame  rows, columns, channels
    units  `Unit`s, or mappings with the names of its fields; in ascending order of their layers

    Raises ValueError, naming the unit, for an invalid graph.
    """
    found = [unit if isinstance(unit, Unit) else _unit(at, unit) for at, unit in enumerate(units)]
    if len(frame) != 3:
        raise ValueError(f"frame: found {frame!r}, expected (rows, columns, channels)")
    for name, size in zip(("rows", "columns", "channels"), frame, strict=True):
        check.whole(f"frame {name}", size, 1)
    if not found:
        raise ValueError("units: found none, expected at least one that sees a patch of the frame")
    for at, unit in enumerate(found):
        before = found[at - 1].layer if at else 0
        _refuse(f"units[{at}]", unit, before, len(found), frame)
    if found[0].layer != 0:
        raise ValueError(f"units[0].layer: found {found[0].layer}, expected 0; layers are counted from 0 without a gap")
    layers, first, complete = [unit.layer for unit in found], dict[int, int](), []
    for at, unit in enumerate(found):
        start = first.setdefault(unit.layer, at)
        feedback = unit.feedback
        if feedback is None:
            feedback = tuple(layers[source] > unit.layer for source in unit.context)
        row = at - start if unit.row is None else unit.row  # by default in one column of their layer
        patch: Any = None if unit.patch is None else tuple(map(int, unit.patch))
        complete.append(unit._replace(patch=patch, feedback=feedback, row=row))
    return _built(complete, (int(frame[0]), int(frame[1]), int(frame[2])))


def describe(wiring: Wiring) -> dict[str, Any]:
    """Returns the arguments of `custom` that make this graph again, for JSON."""
    layer, hidden, row, column = (part.tolist() for part in (wiring.layer, wiring.hidden, wiring.row, wiring.column))
    lists = (map(np.ndarray.tolist, part) for part in (wiring.signal, wiring.context, wiring.feedback))
    units = map(Unit, layer, hidden, wiring.patch, *lists, row, column)
    return {"frame": list(wiring.frame), "units": [unit._asdict() for unit in units]}


def receptive(wiring: Wiring) -> list[np.ndarray]:
    """Returns, for each tile (a unit that sees a patch), the ascending int32 ids of all units with it in their receptive field.

    A unit's receptive field: the tiles that reach it through signals, over any number of layers.
    """
    reach: list[set[int]] = [set() if patch is None else {unit} for unit, patch in enumerate(wiring.patch)]
    moved = True
    while moved:  # one pass for a hierarchy, and one to detect the fixed point; custom graphs may have loops
        moved = False
        for unit, sources in enumerate(wiring.signal):
            before = len(reach[unit])
            reach[unit].update(*(reach[source] for source in sources))
            moved |= len(reach[unit]) > before
    over: dict[int, list[int]] = {unit: [] for unit, patch in enumerate(wiring.patch) if patch is not None}
    for unit, tiles in enumerate(reach):
        for tile in tiles:
            over[tile].append(unit)
    return [np.array(units, np.int32) for units in over.values()]


def _built(units: list[Unit], frame: tuple[int, int, int]) -> Wiring:
    """Returns a wiring of complete units. Their positions determine the extent of each layer's grid."""
    layers = np.array([unit.layer for unit in units], np.int32)
    place = np.array([(unit.row, unit.column) for unit in units], np.int32)
    ends = [place[layers == one].max(axis=0) + 1 for one in range(layers.max() + 1)]
    return Wiring(
        layer=layers,
        row=place[:, 0].copy(),
        column=place[:, 1].copy(),
        hidden=np.array([unit.hidden for unit in units], np.int32),
        patch=[unit.patch for unit in units],
        signal=[np.array(unit.signal, np.int32) for unit in units],
        context=[np.array(unit.context, np.int32) for unit in units],
        feedback=[np.array(unit.feedback, np.bool_) for unit in units],
        grids=tuple((int(rows), int(columns)) for rows, columns in ends),
        frame=frame,
    )


# The rules of the two originals: blocks of the layer below, neighbours, feedback from above.


class _Grid(NamedTuple):
    """The units of one layer: base + row * columns + column."""

    base: int
    rows: int
    columns: int

    def places(self) -> Iterable[tuple[int, int]]:
        return ((row, column) for row in range(self.rows) for column in range(self.columns))


def _blocks(config: Config, low: _Grid, up: _Grid, times: int = 1) -> Lists:
    """Returns the ids of `low`, ascending, that each unit of `up` sees: fan_in x fan_in blocks, evenly spread, without wrap.

    Offsets farther than fan_in_radius from the centre of the block are omitted; block and radius are `times` as large.
    """
    size, radius = config.fan_in * times, config.fan_in_radius * times
    centre = (size - 1) / 2
    rows = [_along(low.rows, up.rows, size, row) for row in range(up.rows)]
    columns = [_along(low.columns, up.columns, size, column) for column in range(up.columns)]
    lists = []
    for row, column in up.places():
        ids = [
            low.base + at * low.columns + beside
            for y, at in rows[row]
            for x, beside in columns[column]
            if (y - centre) ** 2 + (x - centre) ** 2 <= radius * radius
        ]
        lists.append(ids)
    return lists


def _along(low: int, up: int, size: int, at: int) -> list[tuple[int, int]]:
    """Returns (position in the block, position in `low`) of a block of `size` for unit `at` of `up`; one unit is centred."""
    begin = int((low - size) * at / (up - 1)) if up > 1 else int((low - size) / 2)
    return [(offset, begin + offset) for offset in range(max(0, -begin), min(size, low - begin))]


def _lateral(config: Config, grid: _Grid) -> Lists:
    """Returns the ids of the neighbours within the radius, ascending, for each unit of a layer."""
    radius = config.lateral_radius
    high, wide = (min(int(radius), size - 1) for size in (grid.rows, grid.columns))
    offsets = [
        (y, x)
        for y in range(-high, high + 1)
        for x in range(-wide, wide + 1)
        if y * y + x * x <= radius**2 and (config.self_context or (y, x) != (0, 0))
    ]
    return [
        [
            grid.base + (row + y) * grid.columns + column + x
            for y, x in offsets
            if 0 <= row + y < grid.rows and 0 <= column + x < grid.columns
        ]
        for row, column in grid.places()
    ]


def _fed(signal: Lists) -> Lists:
    fed: Lists = [[] for _ in signal]
    for unit, sources in enumerate(signal):
        for source in sources:
            fed[source].append(unit)
    return fed


def _above_cuda(config: Config, grids: list[_Grid], signal: Lists, lateral: Lists) -> Lists:
    """Returns feedback by the rule "cuda": parents, their parents once for every path, then tops that are not listed yet."""
    parents = _fed(signal)
    above = [list(ids) for ids in parents]
    if config.two_layers_back:
        for unit, ids in enumerate(parents):
            above[unit] += [grandparent for parent in ids for grandparent in parents[parent]]
    if config.top_to_all:
        for unit, ids in enumerate(above):
            known = {*lateral[unit], *ids}
            ids += [top for top in range(grids[-1].base, len(signal)) if top not in known]
    return above


def _above_classic(config: Config, grids: list[_Grid], signal: Lists, lateral: Lists) -> Lists:
    """Returns feedback by the rule "classic": parents, units two layers up by one wider fan-in, then every top, repeatable."""
    above = _fed(signal)
    if config.two_layers_back:
        wider: Lists = [[] for _ in signal]
        for low, up in zip(grids, grids[2:], strict=False):
            ids = _blocks(config, low, up, times=2)
            wider[up.base : up.base + len(ids)] = ids
        above = [near + far for near, far in zip(above, _fed(wider), strict=True)]
    if config.top_to_all:
        tops = list(range(grids[-1].base, len(signal)))
        above = [ids if unit >= tops[0] else ids + tops for unit, ids in enumerate(above)]
    return above


def _unit(at: int, fields: Mapping[str, Any]) -> Unit:
    unknown = [name for name in fields if name not in Unit._fields]
    missing = [name for name in ("layer", "hidden") if name not in fields]
    if unknown or missing:
        problem = f"found {unknown[0]!r}" if unknown else f"found no {missing[0]!r}"
        raise ValueError(f"units[{at}]: {problem}, expected layer and hidden, and any of {', '.join(Unit._fields[2:])}")
    return Unit(**fields)


def _refuse(name: str, unit: Unit, before: int, units: int, frame: tuple[int, int, int]) -> None:
    """Raises ValueError for an invalid unit among `units`, after one of layer `before`."""
    check.whole(f"{name}.layer", unit.layer, 0)
    if not before <= unit.layer <= before + 1:
        raise ValueError(
            f"{name}.layer: found {unit.layer} after {before}, expected {before} or {before + 1}; "
            "order the units by layer, and leave no layer out"
        )
    check.whole(f"{name}.hidden", unit.hidden, 1)
    if unit.patch is None and not len(unit.signal):
        raise ValueError(f"{name}: found no patch and no signal, expected either: it is what the unit predicts")
    if unit.patch is not None:
        if len(unit.patch) != 4:
            raise ValueError(f"{name}.patch: found {unit.patch!r}, expected (row, column, rows, columns)")
        for at, low in enumerate((0, 0, 1, 1)):
            check.whole(f"{name}.patch[{at}]", unit.patch[at], low)
        row, column, rows, columns = unit.patch
        if row + rows > frame[0] or column + columns > frame[1]:
            raise ValueError(
                f"{name}.patch: found rows {row} to {row + rows} and columns {column} to {column + columns}, "
                f"expected within {frame[0]} x {frame[1]}; make the frame larger or the patch smaller"
            )
    for kind, sources in (("signal", unit.signal), ("context", unit.context)):
        for at, source in enumerate(sources):
            check.whole(f"{name}.{kind}[{at}]", source, 0, units - 1)
    if unit.feedback is not None and len(unit.feedback) != len(unit.context):
        raise ValueError(
            f"{name}.feedback: found {len(unit.feedback)}, expected {len(unit.context)}, one for each context unit; "
            "leave it out to mark what comes from higher layers"
        )
    if unit.row is not None:
        check.whole(f"{name}.row", unit.row, 0)
    check.whole(f"{name}.column", unit.column, 0)

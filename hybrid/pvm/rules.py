"""Which unit sees what by the rules of the two originals: blocks of the layer below, neighbours, feedback from above."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from .config import Config
from .wiring import Lists, Patch, Wiring, built


class _Grid(NamedTuple):
    """One layer's units: base + row * columns + column."""

    base: int
    rows: int
    columns: int

    def places(self) -> Iterable[tuple[int, int]]:
        return ((row, column) for row in range(self.rows) for column in range(self.columns))


def wire(config: Config) -> Wiring:
    """The graph of `config` by its rule, "cuda" or "classic"."""
    grids = _number(config.grids)
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
    rows, columns = config.block
    patch: list[Patch | None] = [None] * len(signal)
    for unit, (row, column) in enumerate(grids[0].places()):
        patch[unit] = (row * rows, column * columns, rows, columns)
    return built(
        layer=[layer for layer, grid in enumerate(grids) for _ in grid.places()],
        places=[place for grid in grids for place in grid.places()],
        hidden=[hidden for grid, hidden in zip(grids, config.hidden, strict=True) for _ in grid.places()],
        patch=patch,
        signal=signal,
        context=[beside + feedback for beside, feedback in zip(lateral, above, strict=True)],
        feedback=[[False] * len(beside) + [True] * len(over) for beside, over in zip(lateral, above, strict=True)],
        frame=config.frame,
    )


def _number(shapes: Iterable[tuple[int, int]]) -> list[_Grid]:
    """Grids whose units are numbered one layer after the other."""
    grids: list[_Grid] = []
    base = 0
    for rows, columns in shapes:
        grids.append(_Grid(base, rows, columns))
        base += rows * columns
    return grids


def _blocks(config: Config, low: _Grid, up: _Grid, times: int = 1) -> Lists:
    """Ids of `low`, ascending, that each unit of `up` sees: blocks of fan_in x fan_in spread evenly, without wrap.

    Offsets farther than fan_in_radius from the centre of the block are left out; block and radius are `times` as large.
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
    """Where a block of `size` stands among `low` for the unit at `at` of `up`, (place in the block, place in `low`) of what
    lies within; a single unit sees the middle.
    """
    begin = int((low - size) * at / (up - 1)) if up > 1 else int((low - size) / 2)
    near = range(max(0, int(-begin) - 1), min(size, int(low - begin) + 1))
    places = ((offset, int(begin + offset)) for offset in near)
    return [(offset, place) for offset, place in places if 0 <= place < low]


def _lateral(config: Config, grid: _Grid) -> Lists:
    """Ids of the neighbours within the radius, ascending, for each unit of a layer."""
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
    """The units that each unit feeds, ascending."""
    fed: Lists = [[] for _ in signal]
    for unit, sources in enumerate(signal):
        for source in sources:
            fed[source].append(unit)
    return fed


def _above_cuda(config: Config, grids: list[_Grid], signal: Lists, lateral: Lists) -> Lists:
    """Feedback by the rule "cuda": parents, their parents once for every path, then tops that are not listed yet."""
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
    """Feedback by the rule "classic": parents, units two layers up by one wider fan-in, then every top, listed or not."""
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

"""Numbers of tables: as a reader wants them on the page, and whole in the CSV file."""

import csv
from pathlib import Path

from bench.section import Cell, Table

NONE = "\u2013"  # a dash


def shown(cell: Cell) -> str:
    """Three digits or more of a number that was measured, all of one that was counted."""
    if cell is None:
        return NONE
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.0f}" if 1000 <= abs(cell) < 1e9 else f"{cell:.3g}"


def is_number(table: Table, column: int) -> bool:
    """Whether a column has numbers, and nothing else."""
    cells = [row[column] for row in table.rows if row[column] is not None]
    return bool(cells) and all(isinstance(cell, int | float) for cell in cells)


def write(table: Table, folder: Path) -> None:
    """NAME.csv, with all digits."""
    with (folder / f"{table.name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.header)
        writer.writerows(table.rows)

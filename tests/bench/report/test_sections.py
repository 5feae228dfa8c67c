"""Sections: names are one of a kind, numbers are the records', figures have tables, what is not measured is a gap."""

import pytest

from bench.__main__ import benchmarks, misplaced, parser
from bench.report.section import NEEDS, found_sections, found_steps
from bench.report.sections import crossover
from bench.report.sections.crossover import NEAR, Curve, curves, targets
from tests.support import records
from tests.support.crossover_records import ROW, SECONDS, planted

SECTIONS = found_sections()


def test_every_figure_has_its_table_and_names_are_one_of_a_kind():
    made = [module.section(records.every_section()) for module in SECTIONS.values()]
    for section in made:
        tables = {table.name for table in section.tables}
        assert {figure.table for figure in section.figures} <= tables
        assert all(len(row) == len(table.header) for table in section.tables for row in table.rows)
        assert all(figure.caption.strip() for figure in section.figures)
    for kind in ("figures", "tables"):
        names = [one.name for section in made for one in getattr(section, kind)]
        assert names and len(names) == len(set(names))


def test_steps_are_commands_that_exist():
    names = [step.name for _, step in found_steps()]
    assert len(names) == len(set(names)) and names
    for _, step in found_steps():
        for command in filter(None, (step.command, step.quick)):
            given = parser().parse_args(command)
            assert given.name in benchmarks() and misplaced(given) is None
        assert set(step.needs) <= NEEDS.keys()


# The crossover

LARGE = {"bench": "large", "work": "large.pairs", "threads": 1}
TRAINED = [
    LARGE | {"who": "tree", "params": {"classes": 7_000}, "quality": {"after 60 s": [200.0], "after 120 s": [100.0]}},
    LARGE | {"who": "sampled", "params": {"classes": 7_000}, "quality": {"after 60 s": [104.0]}},
]


@pytest.fixture(scope="module")
def made():
    return crossover.section([*planted(), *TRAINED])


def table(section, name):
    found = next(one for one in section.tables if one.name == name)
    return [dict(zip(found.header, row, strict=True)) for row in found.rows]


def test_every_point_is_in_the_tables(made):
    rows = table(made, "crossover_points")
    assert len(rows) == len(planted())
    first = next(row for row in rows if row["contender"] == "tree" and row["V"] == 1_000)
    assert first["ms a step"] == pytest.approx(1e3 * SECONDS["tree"](ROW[0]))
    assert first["from"] == pytest.approx(first["ms a step"] / 1.1)
    short = table(made, "crossover_short_output")
    assert [row["classes"] for row in short] == [size.classes for size in ROW]
    for row, size in zip(short, ROW, strict=True):
        assert all(row[name] == pytest.approx(1e3 * seconds(size)) for name, seconds in SECONDS.items())


def curve(*points, who="tree"):
    return Curve(who, 1_000, "seconds", points)


def test_when_a_curve_reaches_a_perplexity():
    """The way between two points is straight on logarithmic axes; longer trainings may overfit."""
    found = curve((10, 400.0), (40, 100.0), (80, 300.0))
    asked = [found.seconds_to(perplexity) for perplexity in (200, 100, 500, 99)]
    assert asked == [pytest.approx(20), pytest.approx(40), 10, None]
    assert found.best == (40, 100.0)
    assert targets([curve((10, 400.0)), curve((10, 200.0))]) == [times * 200 for times in NEAR]


def test_looks_at_large_trainings_are_points_unless_they_diverged_and_lstms_are_left_out():
    lost = LARGE | {"who": "head", "params": {"classes": 7_000}, "quality": {"after 60 s": [3.9e143], "epochs": [0.1]}}
    clock = "CPU seconds"
    lstm = {"bench": "quality", "who": "LSTM 2 x 256: tree", "params": {}, "data": "", "threads": 2, "lowest": True}
    lstm |= {"work": "language.seconds", "run": {"seconds": 9}, "seconds": 9.0, "valid": {"perplexity": 50.0}}
    assert curves([lstm, TRAINED[0], lost]) == {7_000: [Curve("tree", 7_000, clock, ((60.0, 200.0), (120.0, 100.0)))]}

"""Every file of bench/sections: its names are one of a kind, its numbers are the records', and nothing measured is a gap."""

import pytest

from bench.section import Section
from bench.steps import NEEDS, found_sections, found_steps
from tests.support import records

SECTIONS = found_sections()


@pytest.mark.parametrize("name", SECTIONS)
def test_without_records_a_section_says_what_is_missing(name):
    made = SECTIONS[name].section([])
    assert isinstance(made, Section) and made.title
    assert made.gaps or not getattr(SECTIONS[name], "STEPS", ())
    assert not made.figures


def test_every_figure_has_its_table_and_names_are_one_of_a_kind():
    made = [module.section(records.every_section()) for module in SECTIONS.values()]
    for section in made:
        tables = {table.name for table in section.tables}
        assert {figure.table for figure in section.figures} <= tables
        assert all(len(row) == len(table.header) for table in section.tables for row in table.rows)
        assert all(figure.told.strip() and figure.caption.strip() for figure in section.figures)
    for kind in ("figures", "tables"):
        names = [one.name for section in made for one in getattr(section, kind)]
        assert names and len(names) == len(set(names))


def test_steps_are_commands_that_exist():
    from bench.__main__ import benchmarks, parser

    names = [step.name for _, step in found_steps()]
    assert len(names) == len(set(names)) and names
    for _, step in found_steps():
        for command in filter(None, (step.command, step.quick)):
            assert parser().parse_args(command).name in benchmarks()
        assert set(step.needs) <= NEEDS.keys()

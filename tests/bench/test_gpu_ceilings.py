"""The copy bandwidth is taken from a file of results where it was measured on this machine, at this size."""

from types import SimpleNamespace

import pytest

from bench.gpu import ceilings
from bench.gpu.machine import SINGLY
from tests.support.records import write

FACTS = {"gpu": "Chip", "nvcc": "13.0"}


def copied(value, who="ours", numbers=ceilings.NUMBERS, **facts):
    environment = FACTS | {"cpu": "Host"} | facts
    return {"work": "gpu.copy", "who": who, "params": {"numbers": numbers}, "value": value, "env": environment}


@pytest.fixture
def measured(tmp_path):
    """The bandwidth that a file of these records gives."""

    def ask(*records, quick=False):
        path = write(tmp_path / "results.jsonl", records)
        return ceilings.measured(str(path), SimpleNamespace(facts=FACTS), quick)

    return ask


def test_the_best_copy_counts_but_not_one_by_the_clock_of_the_host(measured):
    assert measured(copied(3e12), copied(9e12, SINGLY), copied(3.1e12, "torch 9 copy_")) == 3.1e12


def test_other_machines_compilers_sizes_and_works_do_not_count(measured, tmp_path):
    product = copied(9e12) | {"work": "gpu.gemm"}
    assert measured(copied(1e12, gpu="Other"), copied(1e12, nvcc="12.8"), product) is None
    assert measured(copied(1e12), quick=True) is None
    assert measured(copied(1e9, numbers=ceilings.QUICK_NUMBERS), quick=True) == 1e9
    assert ceilings.measured(str(tmp_path / "none"), SimpleNamespace(facts=FACTS), False) is None

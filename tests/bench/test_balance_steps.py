"""How evenly other steps are shared: parts dealt by hand, and what holds for any number of threads."""

import numpy as np
import pytest

from bench import balance, balance_steps
from cpu.rows import owner


def test_a_part_goes_to_the_thread_that_is_free_first():
    assert balance_steps.largest(np.array([3, 1, 1, 1, 2]), 2) == 5 / 8  # 3 and 2; 1, 1 and 1
    assert balance_steps.largest(np.array([4, 4]), 64) == 1 / 2


def test_what_a_batch_has_most_often():
    assert balance_steps.most(np.array([[0, 1, 1, 2], [3, 3, 3, 0]])) == (2 + 3) / 2 / 4


def test_blocks_are_of_one_size_but_the_last():
    assert balance_steps.blocks(10, 4).tolist() == [4, 4, 2]
    assert balance_steps.blocks(8, 4).tolist() == [4, 4]


def test_rows_go_to_threads_there_and_back():
    assert [owner.py_func(row, 3) for row in range(9)] == [0, 1, 2, 2, 1, 0, 0, 1, 2]
    assert {owner.py_func(row, 1) for row in range(9)} == {0}


@pytest.fixture(scope="module")
def found():
    return list(balance_steps.steps(balance.THREADS))


def test_nobody_has_less_than_the_mean_and_more_threads_never_more(found):
    for before, one in zip([None, *found], found, strict=False):
        shares = one._replace(threads=1, met=1)
        assert min(shares) >= 1 / one.threads
        assert one.scatter >= one.met
        assert before is None or all(np.array(shares) <= before._replace(threads=1, met=1))


def test_what_no_constant_bounds_is_even_up_to_64_threads(found):
    last = found[-1]
    assert last.threads == 64 and max(last.gather, last.units, last.pvm, last.parted) < 1.2 / 64


def test_the_table_has_a_row_a_number_of_threads(found):
    said = balance_steps.table(found).splitlines()
    assert [line.split(" | ")[0] for line in said if line.startswith("| ")][1:] == [f"| {t}" for t in balance.THREADS]

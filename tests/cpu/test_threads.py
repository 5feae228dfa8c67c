"""How threads wait: as was measured to be best, unless the user has said otherwise."""

import importlib.metadata
import json
import os
import subprocess
import sys

import numba
import pytest

from cpu.runtime import threads

CHOICE = "GOMP_SPINCOUNT OMP_WAIT_POLICY OMP_NUM_THREADS KMP_BLOCKTIME NUMBA_THREADING_LAYER NUMBA_NUM_THREADS".split()


def started(code: str, **said: str):
    """What a fresh process, told so by its environment, prints as JSON."""
    environment = {name: value for name, value in os.environ.items() if name not in CHOICE} | said
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


WAITING = """
import json, os, cpu
from cpu import threads
print(json.dumps([threads.layer(), *(os.environ.get(name) for name in threads.SAID[:2])]))
"""


def has_tbb() -> bool:
    try:
        return bool(importlib.metadata.version("tbb"))
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.mark.parametrize(
    "said, expected",
    [
        ({}, ["tbb" if has_tbb() else "omp", threads.SPINS, None]),
        ({"NUMBA_THREADING_LAYER": "omp"}, ["omp", threads.SPINS, None]),
        ({"NUMBA_THREADING_LAYER": "omp", "OMP_WAIT_POLICY": "active"}, ["omp", None, "active"]),
        ({"NUMBA_THREADING_LAYER": "omp", "GOMP_SPINCOUNT": "7"}, ["omp", "7", None]),
    ],
)
def test_threads_wait_as_measured_to_be_best_and_what_the_user_says_stays(said, expected):
    assert started(WAITING, **said) == expected


def test_a_loop_is_cut_finer_only_inside():
    before = numba.get_parallel_chunksize()
    with threads.shared(1000):
        assert numba.get_parallel_chunksize() == 1000 // (threads.PARTS * numba.get_num_threads())
    with threads.shared(3):
        assert numba.get_parallel_chunksize() == 1
    assert numba.get_parallel_chunksize() == before

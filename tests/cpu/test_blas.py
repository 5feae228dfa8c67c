"""GEMM for kernels, and the rows of a table dealt to shards in whole chunks."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
import threadpoolctl

from cpu.vectors.blas import CHUNK, SHARDS, gemm, largest_shard, shard_part

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}


@numba.njit
def one(out, a, b, alpha, beta):
    gemm(out, a, b, alpha, beta)


def matrices(rng, *shapes):
    """Small whole numbers: products and sums of them are exact in float32."""
    return [rng.integers(-8, 9, shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 5, 3), (5, 1, 3), (5, 3, 1), (17, 33, 65), (4, 1, 1), (1, 1, 4)])
@pytest.mark.parametrize("turned", ["", "a", "b", "ab"])
def test_gemm_is_exact_on_small_integers(sizes, turned):
    m, n, k = sizes
    out, a, b = matrices(np.random.default_rng(m), (m, n), (m, k), (k, n))
    expected = 2 * a @ b - 3 * out
    one(out, a.T.copy().T if "a" in turned else a, b.T.copy().T if "b" in turned else b, 2.0, -3.0)
    np.testing.assert_array_equal(out, expected)


def test_nothing_summed_scales_the_result_and_beta_zero_overwrites_nan():
    out = np.full((2, 3), 4, np.float32)
    one(out, np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), 1.0, 0.5)
    np.testing.assert_array_equal(out, np.full((2, 3), 2))
    out = np.full((2, 2), np.nan, np.float32)
    one(out, np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), 1.0, 0.0)
    np.testing.assert_array_equal(out, np.eye(2))


def test_scipys_blas_computes_in_the_calling_thread_and_numpys_is_left_alone():
    threads = {
        library["filepath"].split("/")[-2]: library["num_threads"]
        for library in threadpoolctl.threadpool_info()
        if library["user_api"] == "blas"
    }
    if "scipy.libs" not in threads or "numpy.libs" not in threads:
        pytest.skip("SciPy and NumPy are not from wheels here: they may share one BLAS")
    assert threads["scipy.libs"] == 1
    script = (
        "import threadpoolctl as t, numpy; n = t.threadpool_info(); import cpu.vectors.blas; m = t.threadpool_info()"
    )
    script += "; key = lambda i: [x['num_threads'] for x in i if 'numpy.libs' in x['filepath']]"
    script += "; assert key(n) == key(m) != []"
    subprocess.run([sys.executable, "-c", script], check=True, env=ENVIRONMENT)


PROGRAM = """
import numba, numpy as np
from cpu.vectors.blas import gemm

@numba.njit(cache=True, parallel=True)
def product(out, a, b):
    for i in numba.prange(1):
        gemm(out, a, b, 1.0, 0.0)

out = np.empty((2, 2), np.float32)
product(out, np.full((2, 3), 2, np.float32), np.full((3, 2), 5, np.float32))
assert (out == 30).all()
print(sum(product.stats.cache_hits.values()))
"""


def test_a_kernel_that_calls_gemm_is_cached_for_the_next_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program)]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT) for _ in range(2)]
    assert [run.stdout.strip() for run in runs] == ["0", "1"]


@pytest.mark.parametrize("shards", [1, SHARDS, 64])
@pytest.mark.parametrize("count", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, SHARDS * CHUNK, SHARDS * CHUNK + 1, 100_003])
def test_every_row_has_one_shard_and_no_chunk_is_cut(count, shards):
    parts = [shard_part(shard, shards, count) for shard in range(shards)]
    assert [row for first, last in parts for row in range(first, last)] == list(range(count))
    assert all(first % CHUNK == 0 for first, last in parts if last > first)
    assert max(last - first for first, last in parts) <= largest_shard(shards, count)


def test_by_hand():
    assert [largest_shard(16, count) for count in (1, 16 * CHUNK, 16 * CHUNK + 1)] == [CHUNK, CHUNK, 2 * CHUNK]
    assert shard_part(15, 16, 1) == (0, 1) and shard_part(0, 16, 1) == (0, 0)

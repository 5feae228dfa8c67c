"""Products of row-major matrices on the device, against NumPy in float64."""

import ctypes
import functools
import inspect
from pathlib import Path

import numpy as np
import pytest

from gpu.device import Device, DeviceError
from gpu.runtime import blas
from gpu.runtime.blas import Matrix
from tests.cudasim import cublas

SIZES = [(1, 1, 1), (1, 5, 33), (31, 1, 2), (3, 32, 1), (33, 31, 40)]  # M, N, K


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def gemm(gpu, *matrices, **options):
    gpu.run(functools.partial(blas.gemm, *matrices, **options))


@pytest.mark.parametrize(
    ("sizes", "a_transposed", "b_transposed"),
    [(size, bool(n & 1), bool(n & 2)) for n, size in enumerate([*SIZES, SIZES[-1]])],
)
def test_against_float64(gpu, sizes, a_transposed, b_transposed):
    m, n, k = sizes
    a, b, out = random(m, k), random(k, n, seed=1), random(m, n, seed=2)
    stored = [gpu.put(x.T if turned else x) for x, turned in ((a, a_transposed), (b, b_transposed))]
    there = gpu.put(out)
    gemm(gpu, there, *stored, alpha=0.5, beta=-2.0, a_transposed=a_transposed, b_transposed=b_transposed)
    expected = 0.5 * a.astype(float) @ b.astype(float) - 2.0 * out
    np.testing.assert_allclose(gpu.get(there), expected, atol=1e-5)


def test_beta_0_never_reads_what_was_there(gpu):
    there = gpu.put(np.full((3, 4), np.nan, np.float32))
    gemm(gpu, there, gpu.put(random(3, 2)), gpu.put(random(2, 4)))
    assert np.isfinite(gpu.get(there)).all()


def test_columns_of_wider_arrays(gpu):
    """out[:, 1:4] = x[:, 2:7] w^T, w a piece of a flat array, as a unit's first layer; the other columns stay."""
    x, flat, out = random(6, 9), random(40, seed=1), random(6, 5, seed=2)
    there = [gpu.put(array) for array in (out, x, flat)]
    rows = Matrix(there[0].pointer + 4, 6, 3, 5)
    inputs = Matrix(there[1].pointer + 4 * 2, 6, 5, 9)
    weights = Matrix(there[2].pointer + 4 * 11, 3, 5, 5)
    gemm(gpu, rows, inputs, weights, b_transposed=True)
    expected = out.copy()
    expected[:, 1:4] = x[:, 2:7] @ flat[11:26].reshape(3, 5).T
    np.testing.assert_allclose(gpu.get(there[0]), expected, atol=1e-6)


def test_a_collection_of_units_in_one_launch(gpu):
    """Four units of 5 inputs and 3 outputs: columns of the signals, pieces of the weights."""
    x, weights, out = random(6, 20), random(4, 3, 5, seed=1), random(6, 12, seed=2)
    there, x_there, weights_there = (gpu.put(array) for array in (out, x, weights))
    products = Matrix(there.pointer, 6, 3, 12, 3, 4), Matrix(x_there.pointer, 6, 5, 20, 5, 4), weights_there
    gemm(gpu, *products, beta=1.0, b_transposed=True)
    expected = out + np.einsum("bui,uoi->buo", x.reshape(6, 4, 5), weights).reshape(6, 12)
    np.testing.assert_allclose(gpu.get(there), expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 2, 3)])
def test_nothing_to_do(gpu, shape):
    there = gpu.empty(shape, np.float32)
    rows, columns = shape[-2:]
    gemm(gpu, there, gpu.empty((rows, 4), np.float32), gpu.empty((4, columns), np.float32))


def test_tf32_only_by_name(gpu, monkeypatch):
    a, b = random(16, 64), random(64, 16, seed=1)
    there, factors = gpu.empty((16, 16), np.float32), (gpu.put(a), gpu.put(b))
    results = []
    for precision in ("fp32", "tf32", "fp32"):
        monkeypatch.setattr(gpu.device, "precision", precision)
        gemm(gpu, there, *factors)
        results.append(gpu.get(there))
    expected = a.astype(float) @ b.astype(float)
    np.testing.assert_allclose(results[0], expected, atol=1e-5)
    np.testing.assert_allclose(results[1], expected, atol=0.1)
    np.testing.assert_array_equal(results[0], results[2])
    if gpu.simulated or gpu.device.capability >= (8, 0):  # Turing has no TF32
        assert np.abs(results[1] - expected).max() > 1e-4
    assert inspect.signature(Device).parameters["precision"].default == "fp32"


def test_queues_that_take_turns(gpu):
    """Products on two queues, where the second waits for the first only when told to: the same bytes in any order."""
    a, b = random(12, 12), random(12, 12, seed=1)
    wanted = a.astype(float) @ np.linalg.matrix_power(0.1 * b.astype(float) @ b, 3)
    careless = cublas.careless() if gpu.simulated else 0
    for _ in gpu.orders(2):
        queues = [gpu.device.queue(name, 1) for name in "ab"]
        held = [[gpu.put(a), gpu.put(b), gpu.empty((12, 12), np.float32)] for _ in queues]
        for _ in range(3):
            for queue, (x, y, out) in zip(queues, held, strict=True):
                queue.run(blas.gemm, out, x, y)
                queue.run(blas.gemm, x, out, y, 0.1)
        first = queues[0].run(blas.gemm, held[0][2], held[0][0], held[0][1])
        queues[1].run(blas.gemm, held[1][2], held[0][2], held[1][1], after=[first]).wait()
        for queue in queues:
            queue.close()
        np.testing.assert_array_equal(gpu.get(held[0][0]), gpu.get(held[1][0]))
        for found, expected in ((held[0][0], wanted), (held[1][2], wanted @ b @ b)):
            np.testing.assert_allclose(gpu.get(found), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    if gpu.simulated:
        assert cublas.careless() == careless  # every product had its queue's own workspace


def test_the_library_is_named_when_it_refuses(gpu):
    there = gpu.empty((4, 4), np.float32)
    narrow = Matrix(there.pointer, 4, 4, 3)
    with pytest.raises(DeviceError, match=r"cuda:0: cublasSgemm_v2 answers with CUBLAS_STATUS_INVALID_VALUE"):
        gemm(gpu, narrow, there, there)


def test_the_handle_ends_with_its_device(simulated):
    before = cublas.handles()
    device = Device(0)
    arrays = [device.from_host(random(3, 3)) for _ in range(3)]
    device.inline("test", 1).run(blas.gemm, *arrays)
    assert cublas.handles() == before + 1
    device.close()
    assert cublas.handles() == before


# Finding the library


@pytest.fixture
def search(monkeypatch, tmp_path):
    """Nothing is named, and the only folder of packages is tmp_path; the toolkit is below it too."""
    monkeypatch.delenv("HYBRID_CUBLAS", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    monkeypatch.setattr(blas.sys, "path", [str(tmp_path)])
    monkeypatch.setattr(blas.ctypes.util, "find_library", lambda name: None)
    return tmp_path


def place(path: Path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"not a library")
    return str(path)


def test_the_wheel_comes_before_the_toolkit_and_13_before_12(search):
    old = place(search / "nvidia/cublas/lib/libcublas.so.12")
    toolkit = place(search / "toolkit/lib64/libcublas.so.13")
    wheel = place(search / "nvidia/cu13/lib/libcublas.so.13")
    assert list(blas._places()) == [wheel, toolkit, "libcublas.so.13", old, "libcublas.so.12"]


def test_no_library(search, monkeypatch):
    monkeypatch.setattr(blas, "_places", list)
    with pytest.raises(OSError, match=r"HYBRID_CUBLAS.*pip install nvidia-cublas"):
        next(blas.libraries())


def test_a_library_that_does_not_open_is_named(search, monkeypatch):
    path = place(search / "nvidia/cu13/lib/libcublas.so.13")
    monkeypatch.setattr(blas, "_places", lambda: [path])
    with pytest.raises(OSError, match=r"pip install.*libcublas\.so\.13: "):
        next(blas.libraries())
    monkeypatch.setenv("HYBRID_CUBLAS", path)
    with pytest.raises(OSError, match=r"HYBRID_CUBLAS: .*libcublas\.so\.13: "):
        next(blas.libraries())


class Newer:
    """A cuBLAS for a newer driver: it opens, and makes no handle."""

    _name = "libcublas.so.13"

    def cublasCreate_v2(self, handle):
        return 1

    def cublasGetStatusName(self, status):
        return b"CUBLAS_STATUS_NOT_INITIALIZED"


def test_an_older_library_is_tried_where_the_newer_one_cannot_work(gpu, monkeypatch):
    older = next(blas.libraries())
    monkeypatch.delenv("HYBRID_CUBLAS", raising=False)
    monkeypatch.setattr(blas, "_load", {"13": Newer(), "12": older}.get)
    monkeypatch.setattr(blas, "_declare", lambda found: found)
    a, b = random(3, 3), random(3, 3, seed=1)
    own = Device(0)
    monkeypatch.setattr(blas, "_places", lambda: ["13"])
    with pytest.raises(DeviceError, match=r"cublasCreate_v2 of libcublas\.so\.13 answers with CUBLAS_STATUS_NOT_INIT"):
        own.inline("test", 1).run(blas.ready)
    monkeypatch.setattr(blas, "_places", lambda: ["13", "12"])
    out, *factors = (own.from_host(array) for array in (a, a, b))
    own.inline("test", 1).run(blas.gemm, out, *factors)
    np.testing.assert_allclose(own.to_host(out), a @ b, atol=1e-5)
    own.close()


def test_cublas_lt_is_opened_first(search, monkeypatch):
    opened = []
    monkeypatch.setattr(ctypes, "CDLL", lambda path: opened.append(Path(path).name))
    for name in ("libcublas.so.13", "libcublasLt.so.13"):
        place(search / name)
    blas._load(str(search / "libcublas.so.13"))
    assert opened == ["libcublasLt.so.13", "libcublas.so.13"]

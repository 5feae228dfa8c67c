"""The doctor names what is missing, with the command that mends it, and never falls ill itself."""

import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from cpu.runtime import threads
from hybrid import backend
from hybrid import machine as processors
from hybrid.cli.commands import doctor


def finding(report, name):
    return next(one for one in report["findings"] if one["name"] == name)


def broken_import(monkeypatch, *broken, error=ImportError):
    """Make the import of some modules raise."""
    real = importlib.import_module

    def importing(name, *more):
        if name in broken:
            raise error(f"{name} is broken")
        return real(name, *more)

    monkeypatch.setattr(importlib, "import_module", importing)


def test_a_machine_that_runs_the_tests_is_usable():
    report = doctor.report(megabytes=4)
    assert report["usable"] and json.loads(json.dumps(report)) == report
    assert all(one["ok"] for one in report["findings"] if one["needed"])
    assert all((one["remedy"] is None) == one["ok"] for one in report["findings"])
    assert report["bandwidth"]["read-modify-write"] > 1e8


def test_the_packages_are_those_of_pyproject():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]

    def names(requirements):
        return {re.match(r"[\w.-]+", requirement)[0] for requirement in requirements}

    assert {*doctor.NEEDED, "tbb"} == names(project["dependencies"])  # without tbb it is omp
    for package, (_, extra) in doctor.OPTIONAL.items():
        assert package in names(project["optional-dependencies"][extra])


def test_missing_packages_come_with_their_remedies_and_optional_ones_cost_nothing(monkeypatch):
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-package": ("to read and write video", "video")})
    report = doctor.report(megabytes=4)
    assert finding(report, "no-such-package")["remedy"] == "to read and write video: pip install 'hybrid-engine[video]'"
    assert report["usable"] and "--  no-such-package" in doctor.text(report)
    monkeypatch.setattr(doctor, "NEEDED", (*doctor.NEEDED, "another-package"))
    report = doctor.report(megabytes=4)
    missing = finding(report, "another-package")
    assert (missing["found"], missing["remedy"]) == ("not installed", "pip install another-package")
    assert not report["usable"] and report["bandwidth"] == {}
    lines = doctor.text(report)
    assert "!!  another-package" in lines and lines.endswith("Not usable: fix the lines marked !!")


def test_a_broken_package_is_named_with_its_error(monkeypatch):
    broken_import(monkeypatch, "tqdm", error=OSError)
    found = next(one for one in doctor._packages() if one["name"] == "tqdm")
    assert "cannot be imported: tqdm is broken" in found["found"]
    assert found["remedy"] == "pip install --force-reinstall tqdm"
    assert not found["ok"]


def test_only_workqueue_or_an_unwritable_kernel_cache_is_not_enough(monkeypatch):
    broken_import(monkeypatch, "numba.np.ufunc.tbbpool", "numba.np.ufunc.omppool")
    monkeypatch.setattr(threads, "layer", lambda: "workqueue")
    found = doctor._threads()
    assert found["found"] == f"{processors.available()}; workqueue, of workqueue"
    assert not found["ok"]
    assert "pip install tbb" in found["remedy"]
    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", raising(PermissionError("may not write")))
    cache = doctor._kernel_cache()
    assert (cache["ok"], cache["found"]) == (False, "may not write") and "NUMBA_CACHE_DIR" in cache["remedy"]


def test_the_mpi_of_mpi4py_is_named_and_one_that_is_broken_or_missing_comes_with_its_remedy(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name, **where: f"/somewhere/{name}")
    mpi, program = doctor._mpi()
    assert mpi["ok"] and not mpi["needed"] and program["found"] == "/somewhere/mpiexec"
    open_mpi = subprocess.CompletedProcess([], 0, "Open MPI v4.1.6, Sep 30, 2023\0\n", "")
    monkeypatch.setattr(doctor.subprocess, "run", lambda *_, **settings: open_mpi)
    assert doctor._mpi()[0]["found"] == "Open MPI v4.1.6, Sep 30, 2023"
    broken = subprocess.CalledProcessError(1, "python", stderr="Traceback\nOSError: libmpi.so.12 is gone")
    monkeypatch.setattr(doctor.subprocess, "run", raising(broken))
    monkeypatch.setattr(doctor.shutil, "which", lambda name, **where: None)
    mpi, program = doctor._mpi()
    assert (mpi["ok"], mpi["found"]) == (False, "OSError: libmpi.so.12 is gone")
    assert (program["ok"], program["found"]) == (False, "none found")
    assert "hybrid-engine[mpi]" in mpi["remedy"] and "hybrid-engine[mpi]" in program["remedy"]
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    assert doctor._mpi() == []


def driver(*capabilities, starts=True):
    """Returns a pycuda.driver with devices of some capability, or one that does not start."""

    def card(at):
        facts = {"compute_capability": capabilities[at], "name": "Abacus", "total_memory": 24 << 30}
        return SimpleNamespace(**{name: (lambda value=value: value) for name, value in facts.items()})

    card.count = lambda: len(capabilities)
    init = (lambda: None) if starts else raising(RuntimeError("cuInit failed"))
    return SimpleNamespace(Error=RuntimeError, init=init, get_driver_version=lambda: 13000, Device=card)


@pytest.fixture
def machine(monkeypatch):
    """A machine where a GPU can be used; a test takes something away."""
    from gpu.runtime import blas, compiler

    monkeypatch.setitem(sys.modules, "pycuda", SimpleNamespace(__name__="pycuda"))
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver((9, 0)))
    monkeypatch.setattr(compiler, "compiler", lambda: SimpleNamespace(name="nvcc 13.0", path="/toolkit/bin/nvcc"))
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "2026.1")
    monkeypatch.setattr(importlib, "import_module", lambda name: None)
    monkeypatch.setattr(blas, "libraries", lambda: iter([SimpleNamespace(_name="/lib/libcublas.so.13")]))
    monkeypatch.setattr(backend, "why_no_gpu", lambda: None)
    return monkeypatch


def gpu(name):
    """One of the findings about the GPU."""
    return finding({"findings": doctor.gpu()}, name)


def amiss(name, cause, remedy):
    """A finding has this cause and remedy, and nobody needs it to be mended."""
    found = gpu(name)
    assert (found["ok"], found["needed"]) == (False, False)
    assert re.search(cause, found["found"]), found["found"]
    assert re.search(remedy, found["remedy"]), found["remedy"]


def raising(error):
    def fail(*arguments, **named):
        raise error

    return fail


def test_a_gpu_that_can_be_used(machine):
    lines = {one["name"]: one["found"] for one in doctor.gpu() if one["ok"] and not one["needed"]}
    assert lines == {
        "NVIDIA driver": "CUDA 13.0",
        "cuda:0": "Abacus, sm_90, 24.0 GiB",
        "kernel compiler": "nvcc 13.0, /toolkit/bin/nvcc",
        "PyCUDA": "2026.1",
        "cuBLAS": "/lib/libcublas.so.13",
        "gpu": "can be used: --device cuda:0",
    }


def test_the_last_line_says_where_the_engine_runs_and_the_last_finding_why_not_on_a_gpu(machine):
    report = {"usable": True, "machine": {"processor": "", "cores": 1, "memory": 1}, "system": {"os": "", "python": ""}}
    report |= {"findings": doctor.gpu(), "bandwidth": {}}
    assert doctor.text(report).endswith("Ready: the engine runs on the CPU and on the GPU.")
    machine.setattr(backend, "why_no_gpu", lambda: "the driver is older than nvcc 13.0; update the driver")
    assert doctor.text(report | {"findings": doctor.gpu()}).endswith("Ready: the engine runs on the CPU.")
    amiss("gpu", "^not used: the driver is older than nvcc 13.0$", "^update the driver$")
    machine.setattr(backend, "why_no_gpu", raising(RuntimeError("cuInit failed")))
    amiss("gpu", "PyCUDA fails: cuInit failed", "--device cpu")


def test_devices_that_are_too_old_and_a_driver_that_does_not_start(machine):
    machine.setitem(sys.modules, "pycuda.driver", driver((8, 0), (7, 0)))
    amiss("cuda:1", "Abacus has compute capability 7.0, the kernels need 7.5", "--device cpu")
    assert gpu("cuda:0")["ok"] and gpu("gpu")["ok"]
    machine.setitem(sys.modules, "pycuda.driver", driver((8, 0), starts=False))
    machine.setattr(
        backend, "why_no_gpu", lambda: "the NVIDIA driver does not start (cuInit failed); nvidia-smi says more"
    )
    amiss("gpu", "does not start", "nvidia-smi")
    assert not {"NVIDIA driver", "cuda:0"} & {one["name"] for one in doctor.gpu()}


def test_no_compiler_or_no_pycuda(machine):
    from gpu.runtime import compiler

    machine.setattr(compiler, "compiler", raising(OSError("nothing compiles the kernels; pip install it")))
    amiss("kernel compiler", "^nothing compiles the kernels$", "^pip install it$")
    machine.setattr(importlib, "import_module", raising(ImportError("undefined symbol: cuCtxCreate_v4")))
    amiss("PyCUDA", "2026.1, but it cannot be imported: undefined symbol", "python -m gpu.install")
    machine.setattr(importlib.metadata, "version", raising(importlib.metadata.PackageNotFoundError()))
    amiss("PyCUDA", "not installed", r"^pip install 'hybrid-engine\[gpu\]' && python -m gpu\.install")


def test_no_cublas(machine):
    from gpu.runtime import blas

    machine.setattr(blas, "libraries", raising(OSError("HYBRID_CUBLAS: no such file")))
    amiss("cuBLAS", "HYBRID_CUBLAS: no such file", "name libcublas.so in HYBRID_CUBLAS")

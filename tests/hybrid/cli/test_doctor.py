"""The doctor names what is missing, with the command that mends it, and never falls ill itself."""

import importlib
import json
import re
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from cpu.runtime import threads
from hybrid import backend
from hybrid import machine as processors
from hybrid.cli.commands import doctor


@pytest.fixture(scope="module")
def healthy():
    """A report of this machine."""
    return doctor.report(megabytes=4)


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


def test_a_machine_that_runs_the_tests_is_usable(healthy):
    assert healthy["usable"]
    assert json.loads(json.dumps(healthy)) == healthy
    assert all(one["ok"] for one in healthy["findings"] if one["needed"])
    assert all(one["remedy"] is None for one in healthy["findings"] if one["ok"])
    assert all(one["remedy"] for one in healthy["findings"] if not one["ok"])
    assert all(value > 1e8 for value in healthy["bandwidth"].values())
    assert [*healthy["bandwidth"]] == ["read-modify-write"]


def test_the_packages_are_those_of_pyproject():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]

    def names(requirements):
        return {re.match(r"[\w.-]+", requirement)[0] for requirement in requirements}

    assert {*doctor.NEEDED, "tbb"} == names(project["dependencies"])  # without tbb it is omp
    for package, (_, extra) in doctor.OPTIONAL.items():
        assert package in names(project["optional-dependencies"][extra])


def test_a_missing_package_comes_with_its_remedy(monkeypatch):
    monkeypatch.setattr(doctor, "NEEDED", (*doctor.NEEDED, "no-such-package"))
    report = doctor.report(megabytes=4)
    missing = finding(report, "no-such-package")
    assert (missing["found"], missing["remedy"]) == ("not installed", "pip install no-such-package")
    assert not report["usable"]
    assert report["bandwidth"] == {}
    said = doctor.text(report)
    assert "!!  no-such-package" in said
    assert said.endswith("Not usable: mend the lines marked !!")


def test_an_optional_package_that_is_missing_comes_with_what_it_is_for_and_costs_nothing(monkeypatch):
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-package": ("to read and write video", "video")})
    report = doctor.report(megabytes=4)
    missing = finding(report, "no-such-package")
    assert missing["remedy"] == "to read and write video: pip install 'hybrid-engine[video]'"
    assert report["usable"] and "--  no-such-package" in doctor.text(report)


def test_a_broken_package_is_named_with_its_error(monkeypatch):
    broken_import(monkeypatch, "tqdm", error=OSError)
    found = next(one for one in doctor._packages() if one["name"] == "tqdm")
    assert "cannot be imported: tqdm is broken" in found["found"]
    assert found["remedy"] == "pip install --force-reinstall tqdm"
    assert not found["ok"]


def test_only_workqueue_is_not_enough(monkeypatch):
    broken_import(monkeypatch, "numba.np.ufunc.tbbpool", "numba.np.ufunc.omppool")
    monkeypatch.setattr(threads, "layer", lambda: "workqueue")
    found = doctor._threads()
    assert found["found"] == f"{processors.available()}; workqueue, of workqueue"
    assert not found["ok"]
    assert "pip install tbb" in found["remedy"]


def test_an_unwritable_kernel_cache(monkeypatch):
    def full(**_):
        raise PermissionError("may not write")

    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", full)
    found = doctor._kernel_cache()
    assert (found["ok"], found["found"]) == (False, "may not write")
    assert "NUMBA_CACHE_DIR" in found["remedy"]


@pytest.mark.parametrize("compiler", ["/no/such/compiler", "false"])
def test_a_compiler_that_does_not_run_is_no_obstacle_to_running(monkeypatch, compiler):
    monkeypatch.setenv("CXX", compiler)
    found = doctor._compiler()
    assert (found["ok"], found["needed"]) == (False, False)
    assert "apt install g++" in found["remedy"]


def test_the_mpi_of_mpi4py_is_named(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name, **where: f"/somewhere/{name}")
    mpi, program = doctor._mpi()
    assert mpi["ok"] and not mpi["needed"] and program["found"] == "/somewhere/mpiexec"


def test_an_mpi_that_is_broken_or_missing_comes_with_its_remedy(monkeypatch):
    broken = subprocess.CalledProcessError(1, "python", stderr="Traceback\nOSError: libmpi.so.12 is gone")
    monkeypatch.setattr(doctor.subprocess, "run", raising(broken))
    monkeypatch.setattr(doctor.shutil, "which", lambda name, **where: None)
    mpi, program = doctor._mpi()
    assert (mpi["ok"], mpi["found"]) == (False, "OSError: libmpi.so.12 is gone")
    assert (program["ok"], program["found"]) == (False, "none found")
    assert "hybrid-engine[mpi]" in mpi["remedy"] and "hybrid-engine[mpi]" in program["remedy"]
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    assert doctor._mpi() == []


class Driver:
    """A libcuda.so.1 with devices of some capability, or whose cuInit fails."""

    def __init__(self, *capabilities, version=13000, status=0):
        self.capabilities, self.version, self.status = capabilities, version, status

    def cuInit(self, flags):
        return self.status

    def cuDriverGetVersion(self, pointer):
        pointer._obj.value = self.version
        return 0

    def cuDeviceGetCount(self, pointer):
        pointer._obj.value = len(self.capabilities)
        return 0

    def cuDeviceGet(self, pointer, number):
        pointer._obj.value = number
        return 0

    def cuDeviceGetName(self, buffer, size, device):
        buffer.value = b"Abacus"
        return 0

    def cuDeviceGetAttribute(self, pointer, attribute, device):
        pointer._obj.value = self.capabilities[device][attribute - 75]
        return 0

    cuDevicePrimaryCtxRetain = cuCtxPushCurrent_v2 = cuCtxPopCurrent_v2 = cuDevicePrimaryCtxRelease_v2 = (
        lambda self, *given: 0
    )

    def cuDeviceTotalMem_v2(self, pointer, device):
        pointer._obj.value = 24 << 30
        return 0


class Cublas:
    """A cuBLAS that makes handles and says its version, as the real one does."""

    _name = "/lib/libcublas.so.13"

    cublasCreate_v2 = cublasDestroy_v2 = lambda self, handle: 0

    def cublasGetProperty(self, which, pointer):
        pointer._obj.value = (13, 1, 0)[which]
        return 0


@pytest.fixture
def machine(monkeypatch):
    """A machine where a GPU can be used; a test takes something away."""
    from gpu.runtime import blas, compiler

    nvcc = {"name": "nvcc 13.0", "path": "/toolkit/bin/nvcc", "version": (13, 0), "architectures": [75, 80, 90, 120]}
    monkeypatch.setattr(doctor, "_cuda", lambda: Driver((9, 0)))
    monkeypatch.setattr(compiler, "compiler", lambda: SimpleNamespace(**nvcc))
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "2026.1")
    monkeypatch.setattr(importlib, "import_module", lambda name: None)
    monkeypatch.setattr(blas, "libraries", lambda: iter([Cublas()]))
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
    said = {one["name"]: one["found"] for one in doctor.gpu() if one["ok"] and not one["needed"]}
    assert said == {
        "NVIDIA driver": "CUDA 13.0, 1 device",
        "cuda:0": "Abacus, sm_90, 24.0 GiB",
        "kernel compiler": "nvcc 13.0, /toolkit/bin/nvcc",
        "PyCUDA": "2026.1",
        "cuBLAS": "13.1.0, /lib/libcublas.so.13",
        "gpu": "can be used: --device cuda:0",
    }


def test_the_last_line_says_where_the_engine_runs(machine):
    report = {"usable": True, "machine": {"processor": "", "cores": 1, "memory": 1}, "system": {"os": "", "python": ""}}
    report |= {"findings": doctor.gpu(), "bandwidth": {}}
    assert doctor.text(report).endswith("Ready: the engine runs on the CPU and on the GPU.")
    machine.setattr(backend, "why_no_gpu", lambda: "no driver")
    assert doctor.text(report | {"findings": doctor.gpu()}).endswith("Ready: the engine runs on the CPU.")


def test_no_driver(machine):
    machine.setattr(doctor, "_cuda", raising(OSError("libcuda.so.1: cannot open shared object file")))
    machine.setattr(backend, "why_no_gpu", lambda: "there is no NVIDIA driver")
    amiss("NVIDIA driver", r"none \(libcuda.so.1: cannot open", "install it, where there is a GPU")
    amiss("gpu", "not used: there is no NVIDIA driver", "--device cpu")
    assert not [one for one in doctor.gpu() if one["name"].startswith("cuda:")]


@pytest.mark.parametrize(
    ("driver", "cause"),
    [
        (Driver(), "CUDA 13.0, 0 devices"),
        (Driver((9, 0), status=100), "CUDA 13.0, 0 devices"),
        (Driver((9, 0), status=803), "cuInit answers with error 803"),
    ],
)
def test_a_driver_without_devices_or_that_does_not_start(machine, driver, cause):
    machine.setattr(doctor, "_cuda", lambda: driver)
    amiss("NVIDIA driver", cause, "nvidia-smi says more; reboot")


def test_a_driver_older_than_the_toolkit(machine):
    machine.setattr(doctor, "_cuda", lambda: Driver((9, 0), version=12080))
    amiss(
        "NVIDIA driver",
        "CUDA 12.8, 1 device; older than nvcc 13.0",
        r"update the driver \(CUDA 13: 580 or newer\), or name an older nvcc in HYBRID_NVCC, or, .*: pip install nvidia",
    )
    amiss("gpu", "mend NVIDIA driver", "--device cpu")


def test_devices_that_the_compiler_does_not_know(machine):
    machine.setattr(doctor, "_cuda", lambda: Driver((8, 0), (7, 0), (12, 9)))
    assert gpu("cuda:0")["ok"]
    amiss("cuda:1", "Abacus, sm_70, 24.0 GiB; the kernels need sm_75 or newer", "--device cpu")
    assert gpu("cuda:2")["ok"]
    assert gpu("cuda:2")["found"].endswith(
        "sm_129, 24.0 GiB; newer than nvcc 13.0: the driver translates its newest PTX"
    )
    assert gpu("gpu")["ok"]


def test_no_compiler(machine):
    from gpu.runtime import compiler

    machine.setattr(compiler, "compiler", raising(OSError("nothing compiles the kernels; pip install it")))
    amiss("kernel compiler", "^nothing compiles the kernels$", "^pip install it$")
    assert gpu("cuda:0")["ok"]


def test_no_pycuda(machine):
    machine.setattr(importlib.metadata, "version", raising(importlib.metadata.PackageNotFoundError()))
    amiss(
        "PyCUDA", "not installed", r"^pip install 'hybrid-engine\[gpu\]' && python -m gpu\.install, which needs a C\+\+"
    )


def test_a_pycuda_that_cannot_be_imported(machine):
    machine.setattr(importlib, "import_module", raising(ImportError("undefined symbol: cuCtxCreate_v4")))
    amiss("PyCUDA", "2026.1, but it cannot be imported: undefined symbol", "python -m gpu.install")
    machine.setattr(doctor, "_cuda", raising(OSError("libcuda.so.1")))
    amiss("PyCUDA", "2026.1, but it cannot be imported", "it needs the NVIDIA driver, see above")


def test_no_cublas(machine):
    from gpu.runtime import blas

    machine.setattr(blas, "libraries", raising(OSError(blas.MISSING)))
    amiss("cuBLAS", "is not found$", "pip install nvidia-cublas")
    amiss("gpu", "not used: mend cuBLAS", "--device cpu")
    machine.setattr(blas, "libraries", raising(OSError("HYBRID_CUBLAS: no such file")))
    amiss("cuBLAS", "HYBRID_CUBLAS: no such file", "name libcublas.so in HYBRID_CUBLAS")


class Newer(Cublas):
    """One that opens and makes no handle with this driver."""

    _name = "/lib/libcublas.so.14"

    def cublasCreate_v2(self, handle):
        return 1

    def cublasGetStatusName(self, status):
        return b"CUBLAS_STATUS_NOT_INITIALIZED"


def test_the_cublas_that_makes_a_handle_is_named(machine):
    from gpu.runtime import blas

    machine.setattr(blas, "libraries", lambda: iter([Newer(), Cublas()]))
    assert gpu("cuBLAS")["found"] == "13.1.0, /lib/libcublas.so.13"
    machine.setattr(blas, "libraries", lambda: iter([Newer()]))
    amiss("cuBLAS", r"libcublas\.so\.14 answers with CUBLAS_STATUS_NOT_INIT", "pip install nvidia-cublas-cu12")
    machine.setattr(doctor, "_cuda", lambda: Driver())
    assert gpu("cuBLAS")["ok"]  # no handle can be made where there is no device

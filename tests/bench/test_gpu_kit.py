"""The kit has what a GPU machine lacks, and every kernel is compiled once."""

import subprocess
import sys
import zipfile

import pytest

from bench.gpu import kit as gpu_kit


@pytest.mark.slow
def test_a_kit_for_this_python_has_extensions_for_it(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_kit, "BUILD", tmp_path)
    monkeypatch.setattr(gpu_kit, "KIT", tmp_path / "gpu-kit")
    gpu_kit.build(sys.executable)
    interface = "cp{}{}".format(*sys.version_info)
    for name in gpu_kit.BUILT:
        (wheel,) = gpu_kit.KIT.glob(f"{name}-*-{interface}-*.whl")
        assert any(file.endswith(".so") for file in zipfile.ZipFile(wheel).namelist())
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps"]
    subprocess.run([*command, *map(str, gpu_kit.KIT.glob("*.whl"))], check=True)


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The sources that were compiled; each leaves its file once."""
    sources = []

    def cubin(source, target):
        path = tmp_path / f"{source.stem}-{target}.cubin"
        if not path.exists():
            sources.append(source.name)
            path.touch()
        return path

    monkeypatch.setattr(gpu_kit.kernels, "cache", lambda: tmp_path)
    monkeypatch.setattr(gpu_kit.kernels, "cubin", cubin)
    return sources


def test_every_kernel_once(compiled, capsys):
    assert gpu_kit.main(["compile", "sm_90"]) == 0
    assert {"units.cu", "pvm.cu"} <= {*compiled}
    assert f"{len(compiled)} files for sm_90 in " in capsys.readouterr().out
    assert gpu_kit.main(["compile", "sm_90"]) == 0
    assert ", 0 compiled, " in capsys.readouterr().out and len({*compiled}) == len(compiled)

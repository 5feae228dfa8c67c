"""All kernels are compiled for the target that is named; what is there already is not compiled again."""

import pytest

from bench.gpu import compile


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

    monkeypatch.setattr(compile.kernels, "cache", lambda: tmp_path)
    monkeypatch.setattr(compile.kernels, "cubin", cubin)
    return sources


def test_every_kernel_and_that_of_the_rival_once(compiled, capsys):
    assert compile.main(["sm_90"]) == 0
    assert {"units.cu", "pvm.cu", "hogwild.cu"} <= {*compiled}
    assert f"{len(compiled)} files for sm_90 in " in capsys.readouterr().out
    assert compile.main(["sm_90"]) == 0
    assert ", 0 compiled, " in capsys.readouterr().out and len({*compiled}) == len(compiled)


def test_the_target_is_that_of_the_device_unless_named(compiled, monkeypatch, tmp_path):
    monkeypatch.setattr(compile, "_target", lambda: "sm_100")
    assert compile.main([]) == 0
    assert (tmp_path / "units-sm_100.cubin").exists()


def test_a_kernel_that_does_not_compile_is_said(monkeypatch, compiled, capsys):
    def fails(source, target):
        raise OSError(f"{source.name} does not compile for {target}")

    monkeypatch.setattr(compile.kernels, "cubin", fails)
    assert compile.main(["sm_90"]) == 1
    assert "does not compile for sm_90" in capsys.readouterr().err

"""Every kernel compiles with the real nvcc for every architecture, without a warning, a spill or a stack frame."""

import pytest

from tests.gpu import ptxas


@pytest.fixture(scope="module")
def nvcc():
    """The real one, or the reason why there is none."""
    try:
        return ptxas.real_nvcc()
    except OSError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "architecture",
    [*(pytest.param(one, marks=pytest.mark.slow) for one in ptxas.ARCHITECTURES[:-1]), ptxas.ARCHITECTURES[-1]],
)
@pytest.mark.parametrize("source", ptxas.SOURCES, ids=lambda source: source.stem)
def test_no_kernel_spills(nvcc, source, architecture):
    if not ptxas.knows(nvcc, architecture):
        pytest.skip(f"{nvcc} does not know {architecture}; pip install nvidia-cuda-nvcc==13.0.* does")
    text = ptxas.said(nvcc, source, architecture)
    assert ptxas.functions(text)
    assert ptxas.faults(text) == [], f"{source.name} for {architecture}"


def test_a_real_spill_and_a_real_warning_are_seen(nvcc, tmp_path, monkeypatch):
    """An array that is indexed at run time lies in memory; a variable that nobody reads is worth a warning."""
    monkeypatch.setattr(ptxas, "BUILD", tmp_path)
    source = tmp_path / "bad.cu"
    source.write_text(
        'extern "C" __global__ void bad(float *x, int n) {\n    int unread;\n    float kept[64];\n'
        "    for (int i = 0; i < 64; i++) kept[(i * n) & 63] = x[i];\n    x[0] = kept[n & 63];\n}\n"
    )
    warning, kernel = ptxas.faults(ptxas.said(nvcc, source, "sm_90"))
    assert "bad.cu(2)" in warning and '"unread"' in warning
    assert kernel.startswith("bad: 256 B stack")

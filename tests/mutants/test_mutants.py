"""Which faults are planted, which tests meet them, and that what survives, is killed or hangs is told apart."""

import shutil

import pytest

from tests.mutants import __main__ as driver
from tests.mutants.plant import drawn, mutants
from tests.support.imports import ROOT

TOY = '''
def clipped(x: int | float, *, most=5):
    """At most 5."""
    return most if x > most else x


def halvings(n):
    while not n <= 1:
        n = n // 2
        yield n
'''
TESTS = """
from toy.scale import clipped, halvings


def test_halvings():
    assert list(halvings(8)) == [4, 2, 1]


def test_clipped():
    assert clipped(9) == 5 and clipped(2) == 2
"""


def test_a_name_outlives_lines_put_before_it_and_a_larger_draw_begins_with_the_smaller_one():
    before = {one.name: one.plant(TOY) for one in mutants("m.py", TOY)}
    after = {one.name: one.plant("# é\n" + TOY) for one in mutants("m.py", "# é\n" + TOY)}
    assert after == {name: "# é\n" + text for name, text in before.items()}
    every = mutants("m.py", TOY)
    assert drawn(every, 9, 1)[:3] == drawn(every, 3, 1) != drawn(every, 3, 2)


def test_tokens_of_kernels():
    text = """// 1 < 2
template <int N> __global__ void __launch_bounds__(256) add(float *y, const float *x)
{
    if (x[0] < 1.5f && N > 2000) __syncthreads();  // 7
    for (int k = 0; k < N; ++k) bring(x + k);
}
"""
    found = {(one.old, one.new): one.plant(text) for one in mutants("gpu/m.cu", text)}
    assert [old for old, _ in found] == ["0", "0", "<", "1.5f", "1.5f", "&&", ">", "__syncthreads()"]
    assert found["0", "(-1)"] == text.replace("x[0]", "x[(-1)]")
    assert found["__syncthreads()", ""] == text.replace("__syncthreads();", ";")


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A tree with one module and its tests; what each kind of fault comes to."""
    root = tmp_path / "sources"
    files = {"toy/scale.py": TOY, "toy/__init__.py": "", "tests/__init__.py": "", "tests/toy/__init__.py": ""}
    files |= {"tests/toy/test_scale.py": TESTS, "tests/toy/test_failing.py": "import toy.scale\ndef test(): assert 0"}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    shutil.copytree(ROOT / "tests/mutants", root / "tests/mutants")
    (root / "cpu/runtime").mkdir(parents=True)
    shutil.copy(ROOT / "cpu/runtime/cache.py", root / "cpu/runtime")
    monkeypatch.setattr(driver, "ROOT", root)
    words = ["--paths", "toy", "--limit", "3", "--folder", str(tmp_path / "kept")]
    monkeypatch.setattr("sys.argv", ["tests.mutants", *words])
    return root


def test_what_survives_is_told_and_what_fails_or_hangs_is_killed(toy, capsys, monkeypatch):
    changes = [(">", ">="), ("<=", "<"), ("//", "*")]
    chosen = [one for one in mutants("toy/scale.py", TOY) if (one.old, one.new) in changes]
    monkeypatch.setattr(driver, "mutants", lambda path, text: chosen if path == "toy/scale.py" else [])
    assert driver.main() == 0
    out = capsys.readouterr().out
    [survivor] = [line for line in out.splitlines() if line.startswith("survived: ")]
    # In a file with a test that fails without a mutant too
    assert survivor == "survived: toy/scale.py | > to >= | return most if x > most else x | 0"
    assert out.splitlines()[-1] == "| toy | 3 | 0 | 2 (66.7%) | 2 (66.7%) |"

"""The instrument sees what it should: which faults are planted, which tests meet them, that what survives is told."""

import shutil
from pathlib import Path

import pytest

from tests.mutants import campaign, cuda, python
from tests.mutants.campaign import Campaign
from tests.mutants.mutant import drawn
from tests.mutants.score import equivalent, survivor, table
from tests.mutants.selection import Selection
from tests.mutants.tree import Tree, unaffected
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


def test_clipped():
    assert clipped(9) == 5 and clipped(2) == 2


def test_halvings():
    assert list(halvings(8)) == [4, 2, 1]
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A tree with one module and its tests."""
    monkeypatch.setattr(campaign, "ROOM", 2.0)
    root = tmp_path / "sources"
    for path, text in {"toy/scale.py": TOY, "tests/toy/test_scale.py": TESTS}.items():
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(text)
        (root / path).with_name("__init__.py").touch()
    (root / "tests/__init__.py").touch()
    return root


def run(root: Path, folder: Path, *kinds: str) -> tuple[Campaign, dict[str, tuple[str, str]]]:
    made = Campaign(root, folder)
    chosen = {mutant.kind: mutant for mutant in made.mutants(["toy"]) if mutant.kind in kinds}
    came = {kind: made.held(mutant) or made.run(mutant) for kind, mutant in sorted(chosen.items())}
    made.close()
    return made, {kind: (result.outcome, result.how) for kind, result in came.items()}


BOUND = "ReplaceComparisonOperator_Gt_GtE"  # both sides of `clipped` give the same there
TURNED = "ReplaceUnaryOperator_Delete_Not"
ENDLESS = "ReplaceBinaryOperator_FloorDiv_Mul"


def test_mutants_survive_are_killed_or_hang_and_the_survivor_is_told(toy, tmp_path):
    made, came = run(toy, tmp_path / "kept", BOUND, TURNED, ENDLESS)
    assert came == {BOUND: ("survived", "passed"), TURNED: ("killed", "failed"), ENDLESS: ("killed", "hung")}
    assert (made.tree.root / "toy/scale.py").read_text() == TOY, "the copy is whole again"

    every = made.mutants(["toy"])
    told = table([(mutant, made.held(mutant)) for mutant in every], {})
    assert told.splitlines()[2] == f"| toy | {len(every)} | 2 | 1 | 1 | 0 | {len(every) - 3} | 66.7% |"
    [mutant] = [mutant for mutant in every if mutant.kind == BOUND]
    told = survivor(mutant, TOY)
    assert "-    return most if x > most else x\n+    return most if x >= most else x\n" in told
    assert told.rstrip().endswith(f"python -m tests.mutants --paths toy/scale.py --only {mutant.key}")


def test_a_result_holds_until_the_tests_change_and_a_test_that_fails_anyhow_kills_nothing(toy, tmp_path):
    kept = tmp_path / "kept"
    for _ in range(2):
        run(toy, kept, BOUND)
        assert len((kept / "results.jsonl").read_text().splitlines()) == 1
    (toy / "tests/toy/test_scale.py").write_text(TESTS + "\n\ndef test_failing():\n    assert False\n")
    assert run(toy, kept, BOUND)[1] == {BOUND: ("survived", "passed")}
    assert len((kept / "results.jsonl").read_text().splitlines()) == 2


def test_a_kill_holds_until_the_test_that_killed_changes(toy, tmp_path):
    def ran() -> int:
        assert run(toy, tmp_path / "kept", TURNED)[1] == {TURNED: ("killed", "failed")}
        return len((tmp_path / "kept" / "results.jsonl").read_text().splitlines())

    assert ran() == 1
    (toy / "tests/toy/test_scale.py").write_text(TESTS + "\n\ndef test_more():\n    pass\n")
    assert ran() == 1
    (toy / "tests/toy/test_scale.py").write_text(TESTS.replace("halvings(8)) == [4, 2, 1]", "halvings(4)) == [2, 1]"))
    assert ran() == 2


def test_a_campaign_elsewhere_goes_on_with_what_is_recorded_and_still_holds(toy, tmp_path):
    (toy / "tests/mutants").mkdir()
    made, came = run(toy, tmp_path / "here", BOUND, TURNED)
    made.record()
    assert run(toy, tmp_path / "there", BOUND, TURNED)[1] == came
    assert not (tmp_path / "there" / "results.jsonl").exists(), "nothing was run again"

    (toy / "tests/toy/test_scale.py").write_text(TESTS + "\n\ndef test_more():\n    pass\n")
    made = Campaign(toy, tmp_path / "there")
    made.record()
    made.close()
    [kept] = (toy / campaign.RECORD).read_text().splitlines()
    assert TURNED in kept, "what survived meets the changed tests first"


def test_a_folder_may_be_named_from_here(toy, tmp_path, monkeypatch):
    """Tests that write, which they do in that folder, run from the copy."""
    (toy / "tests/toy/test_scale.py").write_text(TESTS.replace("()", "(tmp_path)"))
    monkeypatch.chdir(tmp_path)
    assert run(toy, Path("kept"), TURNED)[1] == {TURNED: ("killed", "failed")}


def test_two_campaigns_share_no_folder(toy, tmp_path):
    first = Campaign(toy, tmp_path / "kept")
    with pytest.raises(BlockingIOError, match="kept: another campaign is running there; --folder names another"):
        Campaign(toy, tmp_path / "kept")
    first.close()
    Campaign(toy, tmp_path / "kept").close()


def test_annotations_words_and_how_a_function_is_compiled_are_left_alone():
    text = '''
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    N = 1
Size = int | None
PART = 1 << 20


@functools.cache
def f(x: "a < 3" = 7) -> 4:
    """1 + 1."""
    y: Literal[2] = 8
    if x == 5000:
        raise ValueError(f"{x + 1}, expected {9 if x else 2}")
    warnings.warn(f"{x - 1}", stacklevel=2)
    return x
'''
    found = {(mutant.kind, mutant.line) for mutant in python.mutants("m.py", text)}
    lines = {line for _, line in found}
    assert lines == {"PART = 1 << 20", 'def f(x: "a < 3" = 7) -> 4:', "y: Literal[2] = 8", "if x == 5000:"}
    assert {kind for kind, line in found if "5000" in line} == {"AddNot", "ReplaceComparisonOperator_Eq_NotEq"}
    assert sum("NumberReplacer" in mutant.kind for mutant in python.mutants("m.py", text)) == 2 * 4


def test_a_mutant_changes_the_line_that_it_names_and_no_signature():
    """In a text with assertions, which are not planted in, and with stars."""
    text = """
def f(a, /, b=-1, *more, c, **named):
    assert a > b
    while a:
        a -= 1
    assert c
    return g(*more) if b else 0


def g(*, d=2 * 3):
    if d:
        assert d > 1
    return 1 if not d else d
"""
    for mutant in python.mutants("toy/toy.py", text):
        pairs = zip(text.splitlines(), mutant.plant(text).splitlines(), strict=True)
        changed = [before.strip() for before, after in pairs if before != after]
        assert changed == [mutant.line] and "assert" not in mutant.line, mutant.name
        if mutant.line.startswith("def"):
            assert mutant.kind.startswith(("NumberReplacer", "ReplaceUnaryOperator")) or "2 * 3" in mutant.line, (
                mutant.name
            )


def test_a_name_outlives_lines_put_before_it():
    before = {mutant.name: mutant.plant(TOY) for mutant in python.mutants("toy/scale.py", TOY)}
    moved = "import math\n\n\n" + TOY
    after = {mutant.name: mutant.plant(moved) for mutant in python.mutants("toy/scale.py", moved)}
    assert after == {name: "import math\n\n\n" + text for name, text in before.items()}


def test_tokens_of_kernels():
    text = """// 1 < 2
#define TILE (4 * 2)
template <int N> __global__ void __launch_bounds__(256) add(float *y, const float *x)
{
    if (x[0] < 1.5f && N > 2000) __syncthreads();  // 7
    asm("mov 3 + 4;");
}
"""
    found = {mutant.kind: mutant for mutant in cuda.mutants("gpu/m.cu", text)}
    assert found.keys() == {
        *("0 to 1", "0 to -1", "< to <=", "1.5f to 2.5", "1.5f to 0.5", "&& to ||", "> to >=", "barrier dropped")
    }
    assert {mutant.where for mutant in found.values()} == {"add"}
    assert found["barrier dropped"].plant(text) == text.replace("__syncthreads();", ";")
    assert found["1.5f to 0.5"].plant(text) == text.replace("1.5f", "0.5f")
    assert found["0 to -1"].plant(text) == text.replace("x[0]", "x[(-1)]")


def test_a_larger_draw_begins_with_the_smaller_one():
    every = python.mutants("toy/scale.py", TOY)
    assert len(drawn(every, 100, 1)) == len({mutant.site for mutant in every})
    assert set(drawn(every, 3, 1)) < set(drawn(every, 4, 1))
    assert drawn(every, 4, 1) != drawn(every, 4, 2)


def test_a_mutant_of_cpu_finds_only_kernels_that_do_not_depend_on_it(tmp_path):
    root = tmp_path / "sources"
    (root / "cpu").mkdir(parents=True)
    shutil.copy(ROOT / "cpu/cache.py", root / "cpu")
    texts = {
        "__init__": "from cpu import cache",
        "a": "A = 1",
        "b": "from cpu.a import A",
        "c": "from cpu import b",
        "d": "",
    }
    for name, text in texts.items():
        (root / f"cpu/{name}.py").write_text(text)
    assert unaffected("cpu/b.py", root) == {"a", "d", "cache"}
    assert unaffected("cpu/cache.py", root) == set()

    tree = Tree(root, tmp_path / "kept")
    pristine = tree.kernels / tree._digest("cpu/b.py") / "cpu_0"
    pristine.mkdir(parents=True)
    for name in texts:
        (pristine / f"{name}.kernel-1.nbi").touch()
    with tree.planted("cpu/b.py", "A = 2") as environ:
        [folder] = Path(environ["NUMBA_CACHE_DIR"]).iterdir()
        assert folder.name != pristine.parent.name, "Numba looks where the sources say"
        assert {file.name.partition(".")[0] for file in folder.glob("cpu_0/*")} == {"a", "d"}
    assert not folder.exists(), "nothing of it is left"
    assert tree.unchanged()["NUMBA_CACHE_DIR"] == str(tree.kernels)


def test_tests_of_a_header_are_those_of_the_kernels_that_include_it():
    selection = Selection(ROOT)
    assert "tests/gpu/test_rows.py" in selection.own("gpu/scatter.cuh")
    assert "tests/gpu/test_tree_ordered.py" in selection.own("gpu/tree_crowd.cuh"), "a file that names it"
    assert {"tests/gpu/test_units.py", "tests/gpu/test_unit_rates.py"} <= set(selection.own("gpu/units.cu"))
    assert selection.own("cpu/tile.py") == ["tests/cpu/test_small_gemm.py"]
    assert selection.others("cpu/heap.py")[0].startswith("tests/cpu/")
    assert "tests/hybrid/readout/test_kinds.py" in selection.others("hybrid/readout/tree.py"), "imported by its name"
    assert selection.others("gpu/pvm.py")[0].startswith("tests/gpu/test_pvm_")


def test_every_equivalent_mutant_is_there_and_has_a_reason():
    known = equivalent()
    paths = {name.partition(" | ")[0] for name in known}
    languages = {".py": python, ".cu": cuda, ".cuh": cuda}
    there = {
        mutant.name
        for path in paths
        for mutant in languages[Path(path).suffix].mutants(path, (ROOT / path).read_text())
    }
    assert known.keys() <= there, "lines that have changed: look at them anew"
    assert all(len(reason) > 10 for reason in known.values())

"""The GPU's tests are run, counted and recorded; what fails is shown, what is missing is named; kernels are compiled before."""

from pathlib import Path

from bench import gpu_suite
from tests.bench.test_gpu import KEYS

ROOT = Path(__file__).parents[2]


def suite(tmp_path, monkeypatch, body, **more):
    monkeypatch.setattr(gpu_suite, "WORKERS", 1)
    (tmp_path / "test_it.py").write_text(body)
    return gpu_suite.run_tests("Chip", [str(tmp_path)], **more)


def test_a_suite_that_passes(tmp_path, monkeypatch):
    found, text = suite(tmp_path, monkeypatch, "def test_a(): pass\n\ndef test_b(): pass\n")
    assert found["checked"] and found["value"] == 2 and found["failure"] is None
    assert found.keys() >= KEYS
    assert text.startswith("2 passed, 0 failed, 0 skipped in ")


def test_what_tests_were_skipped_for_want_of_is_named(tmp_path, monkeypatch):
    body = "import pytest\n\ndef test_a(): pass\n\ndef test_b(): pytest.importorskip('no_such_package')\n"
    found, text = suite(tmp_path, monkeypatch, body)
    assert found["checked"] and text.endswith("; skipped for want of no_such_package")


def test_a_warning_of_another_version_fails_no_test(tmp_path, monkeypatch):
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    found, _ = suite(tmp_path, monkeypatch, "import warnings\n\ndef test_a(): warnings.warn('old')\n")
    assert found["checked"]


def test_tests_that_are_the_same_on_any_machine_are_left_out(tmp_path, monkeypatch):
    (tmp_path / "test_slow.py").write_text("def test_a(): assert False\n")
    assert all(Path(ROOT, file).exists() for file in gpu_suite.ANYWHERE)
    monkeypatch.setattr(gpu_suite, "ANYWHERE", [str(tmp_path / "test_slow.py")])
    assert suite(tmp_path, monkeypatch, "def test_b(): pass\n")[0]["counts"]["tests"] == 1


def test_all_kernels_are_compiled_for_the_device(monkeypatch):
    compiled = []
    monkeypatch.setattr(gpu_suite.kernels, "target", "sm_{0[0]}{0[1]}".format)
    monkeypatch.setattr(gpu_suite.kernels, "cubin", lambda source, target: compiled.append((source.name, target)))
    said = gpu_suite.compile_kernels((9, 0))
    assert ("units.cu", "sm_90") in compiled and ("pvm.cu", "sm_90") in compiled
    assert said.startswith(f"{len(compiled)} files for sm_90 in ")


def test_a_quick_look_imports_all_tests_and_runs_some(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_suite, "QUICK", "test_it.py")
    (tmp_path / "test_other.py").write_text("def test_a(): assert False\n")
    found, _ = suite(tmp_path, monkeypatch, "def test_b(): pass\n", quick=True)
    assert found["checked"] and found["value"] == 1
    (tmp_path / "test_other.py").write_text("import no_such_package\n")
    _, text = suite(tmp_path, monkeypatch, "def test_b(): pass\n", quick=True)
    assert "no_such_package" in text and "1 failed" in text.splitlines()[-1]


def test_a_suite_that_fails_is_shown(tmp_path, monkeypatch):
    found, text = suite(tmp_path, monkeypatch, "def test_a(): pass\n\ndef test_b(): assert 'this' == 'that'\n")
    assert not found["checked"] and found["counts"] == {"tests": 2, "failures": 1, "errors": 0, "skipped": 0}
    assert "'this' == 'that'" in text and "1 passed, 1 failed" in text.splitlines()[-1]


def test_a_suite_that_takes_too_long_is_stopped(tmp_path, monkeypatch):
    found, text = suite(tmp_path, monkeypatch, "import time\n\ndef test_a(): time.sleep(60)\n", limit=2.0)
    assert not found["checked"] and "stopped after 2 s" in text.splitlines()[-1]


def test_a_suite_without_tests_has_not_passed(tmp_path, monkeypatch):
    assert not suite(tmp_path, monkeypatch, "")[0]["checked"]


def test_what_the_tests_need_and_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(gpu_suite, "NEEDS", ("pytest", "no_such_package"))
    found, text = gpu_suite.run_tests("Chip")
    assert not found["checked"] and text == "the tests were not run: no_such_package missing"

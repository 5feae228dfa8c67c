"""The page of a device: figures beside targets, others and the CPU; failures by name; files that were cut off."""

import json

import pytest

from bench.__main__ import main

ENV = {"gpu_driver": "580.1", "numpy": "2.5", "torch": "2.11", "cuda": "13.0", "compiler": "nvcc 13.0"}
ENV |= {"cpu": "Xeon", "cores": 16}
COPY = {"of": "bandwidth_share", "least": 0.88, "rival": "", "found": 0.64, "met": False}
RATIO = {"of": "ratio", "least": 8, "rival": " bmm + SGD", "found": 9.0, "met": True}
UNKNOWN = {"of": "ratio", "least": 1.3, "rival": "", "found": None, "met": None}
LOG = """
== facts (545 s left)
Timestamp                                 : Thu Nov  6 13:03:58 2026

== smoke (540 s left)
error tree.batch: LogicError: illegal address

== pvm (500 s left)
torch 2.11.0 bmm by hand is left out: AssertionError: not equal

  FAILED pvm: zip() argument 2 is longer

== rows (300 s left)
"""
SUMMARY = """facts        1 s, exit code 0
smoke        3 s, exit code 1
pvm         39 s, exit code 124 (stopped at its cap)
rows         9 s, exit code 0
overlap    skipped, 12 s left
"""


def figure(who="ours", value=3.4e11, device="H200", **more):
    params = {"units": 14_161, "batch": 1, "ring": False}
    settings = {"bench": "units", "work": "units.step", "who": who, "value": value, "device": device, "params": params}
    settings |= {"unit": "parameters/s", "spread": 0.01, "threads": 1, "commit": "abc+", "env": ENV}
    return settings | more


def smoke(name, state="ok", **more):
    record = {"bench": "gpu_smoke", "name": name, "state": state, "message": None, "device": "H200", "commit": "abc+"}
    return record | more


@pytest.fixture
def page(tmp_path, capsys):
    """Prints the page of some records, whose last line may be cut off, and returns its lines."""

    def show(*records, rest="", **files):
        (tmp_path / "results.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records) + rest)
        for name, text in files.items():
            (tmp_path / f"{name}.{'xml' if name == 'tests' else 'txt'}").write_text(text)
        assert main(["gpu", "--tell", str(tmp_path)]) == 0
        return capsys.readouterr().out.splitlines()

    return show


def test_each_figure_beside_its_target_others_and_the_cpu(page):
    ring = {"units": 14_161, "batch": 1, "ring": True}
    lines = page(
        figure(bars=[COPY, RATIO, UNKNOWN], bandwidth_share=0.637, clocks={"sm": [1260, 1980, 1980]}),
        figure("ours, a queue.run a step", 1e9),
        figure("torch 2.11.0 bmm + SGD", 3.4e10),
        figure("ours", 1.7e9, "cpu", threads=16),
        figure(bars=[], params=ring, value=12_345.0, spread=0.4),
        log=LOG,
    )
    assert lines[0] == "# H200, driver 580.1, 2026-11-06"
    assert lines[2].startswith("Commit `abc+`, NumPy 2.5, PyTorch 2.11, CUDA 13.0")
    assert "SM clock 1,260 to 1,980 MHz" in lines[2]
    rows = [line for line in lines if line.startswith("| units.step")]
    assert rows == [
        "| units.step units 14,161, batch 1 | 340 G parameters/s | 64% | 88% of copy: missed; 8 x bmm + SGD: met "
        "| 10 x torch bmm + SGD | 200 x 16 threads |",
        "| units.step units 14,161, batch 1, ring | 12.3 k parameters/s (±20%) |  |  |  |  |",
    ]


def test_what_agrees_with_numpy_and_each_that_does_not(page):
    off = smoke("units.ring", "off", error=0.01, allowed=1e-4, message="weights")
    lines = page(smoke("rows.gather"), off, smoke("tree.batch", "error", message="LogicError: illegal address"))
    assert "1 of 3 kernel checks agree with NumPy in float64." in lines
    assert "* `units.ring`: off by 0.01, allowed 0.0001: weights" in lines
    assert "* `tree.batch`: LogicError: illegal address" in lines


def test_what_failed_and_where_to_look(page):
    lines = page(smoke("rows.gather"), log=LOG, summary=SUMMARY)
    begin = lines.index("## Failures")
    assert lines[begin + 2 : -4] == [
        "* `smoke`: 3 s, exit code 1, log.txt:5",
        "* `pvm`: 39 s, exit code 124 (stopped at its cap), log.txt:8; torch 2.11.0 bmm by hand is left out: AssertionError: "
        "not equal (log.txt:9); FAILED pvm: zip() argument 2 is longer (log.txt:11)",
        "* `overlap`: skipped, 12 s left",
    ]
    assert lines[-1] == "facts 1 s, smoke 3 s, pvm 39 s, rows 9 s."


def test_the_tests_of_the_kernels(page):
    cases = '<testcase classname="a" name="one"/><testcase classname="a" name="two"><skipped/></testcase>'
    bad = '<testcase classname="a" name="bad"><failure message="1 != 2&#10;more">x</failure></testcase>'
    for end in ("</testsuite></testsuites>", "<testca"):
        lines = page(summary=SUMMARY, tests=f"<testsuites><testsuite>{cases}{bad}{end}")
        assert "The kernels' tests: 1 passed, 1 failed, 1 skipped." in lines
        assert "* `a::bad`: 1 != 2 more" in lines


def test_a_line_that_was_cut_off_does_not_matter(page):
    whole, cut = json.dumps(smoke("tree.batch")), json.dumps(figure(bars=[]))
    lines = page(smoke("rows.gather"), rest=f"{whole}\n{cut[: len(cut) // 2]}", summary=SUMMARY[:25])
    assert "2 of 2 kernel checks agree with NumPy in float64." in lines and "No benchmark left a record." in lines

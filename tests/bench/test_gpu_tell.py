"""The page of a device: figures beside targets, others and the CPU."""

import json

from bench.__main__ import main

ENV = {"gpu_driver": "580.1", "numpy": "2.5", "torch": "2.11", "cuda": "13.0", "compiler": "nvcc 13.0"}
ENV |= {"cpu": "Xeon", "cores": 16}
COPY = {"of": "bandwidth_share", "least": 0.88, "rival": "", "found": 0.64, "met": False}
RATIO = {"of": "ratio", "least": 8, "rival": " bmm + SGD", "found": 9.0, "met": True}
UNKNOWN = {"of": "ratio", "least": 1.3, "rival": "", "found": None, "met": None}
LOG = """
== facts (545 s left)
Timestamp                                 : Thu Nov  6 13:03:58 2026
"""


def figure(who="ours", value=3.4e11, device="H200", **more):
    params = {"units": 14_161, "batch": 1, "ring": False}
    settings = {"bench": "units", "work": "units.step", "who": who, "value": value, "device": device, "params": params}
    settings |= {"unit": "parameters/s", "spread": 0.01, "threads": 1, "commit": "abc+", "env": ENV}
    return settings | more


def test_each_figure_beside_its_target_others_and_the_cpu(tmp_path, capsys):
    ring = {"units": 14_161, "batch": 1, "ring": True}
    records = [
        figure(bars=[COPY, RATIO, UNKNOWN], bandwidth_share=0.637, clocks={"sm": [1260, 1980, 1980]}),
        figure("torch 2.11.0 bmm + SGD", 3.4e10),
        figure("ours", 1.7e9, "cpu", threads=16),
        figure(bars=[], params=ring, value=12_345.0, spread=0.4),
    ]
    text = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "results.jsonl").write_text(text + text[: len(text) // 9])  # the last line is cut off
    (tmp_path / "log.txt").write_text(LOG)
    assert main(["gpu", "--tell", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "# H200, driver 580.1, 2026-11-06"
    assert lines[2].startswith("Commit `abc+`, NumPy 2.5, PyTorch 2.11, CUDA 13.0")
    assert "SM clock 1,260 to 1,980 MHz" in lines[2]
    rows = [line for line in lines if line.startswith("| units.step")]
    assert rows == [
        "| units.step units 14,161, batch 1 | 340 G parameters/s | 64% | 88% of copy: missed; 8 x bmm + SGD: met "
        "| 10 x torch bmm + SGD | 200 x 16 threads |",
        "| units.step units 14,161, batch 1, ring | 12.3 k parameters/s (±20%) |  |  |  |  |",
    ]

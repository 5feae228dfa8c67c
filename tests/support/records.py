"""Records as benchmarks write them, a few of every section that the report has."""

import json
from pathlib import Path
from typing import Any

ENV = {"cpu": "Chip", "cores": 2, "os": "Linux", "python": "3.11"}
MADE = {"threads": 2, "device": "cpu", "commit": "abc", "env": ENV}
Record = dict[str, Any]


def timed(work: str, who: str, params: Record, samples: list[float], **more: Any) -> Record:
    """One figure: the value is the middle sample."""
    value = sorted(samples)[len(samples) // 2]
    found = {"bench": work.split(".")[0], "work": work, "who": who, "params": params, "unit": "mini-batches/s"}
    found |= {"value": value, "seconds": 1 / value, "samples": samples, "interval": [min(samples), max(samples)]}
    return found | {"spread": (max(samples) - min(samples)) / value, "checked": True, "load": None} | MADE | more


def table7() -> list[Record]:
    """The published FCN-S at 1 and 2 threads, ours and PyTorch's."""
    params = {"net": "FCN-S", "batch": 64, "parameters": 117_997_696}
    return [
        timed("table7.step", who, params, [pace, 1.1 * pace, 1.2 * pace], threads=threads)
        for who, pace in (("ours", 2.0), ("torch 2", 1.0))
        for threads in (1, 2)
    ]


def overlap() -> list[Record]:
    """Two ways, with a tick of two queues."""
    timeline = [
        {"queue": queue, "stage": stage, "micro": 0, "start": start, "end": start + 0.001}
        for queue, stage, start in (("compute", "forward", 0.0), ("host", "readout", 0.001))
    ]
    sizes = {"classes": 1000, "batch": 256, "micro_batches": 2, "hidden": 20}
    spent = {"overlap": 0.5, "efficiency": 0.9, "timeline": timeline}
    return [
        timed("overlap.tick", who, sizes, [pace, 1.05 * pace], **spent)
        for who, pace in (("serial-one-core", 1000.0), ("overlapped", 1600.0))
    ]


def ranks() -> list[Record]:
    """A tick on one rank and on two."""
    paces = {("tick", 1): 60.0, ("tick", 2): 100.0, ("compute", 2): 110.0}
    return [
        timed(f"ranks.{part}", "ours", {"ranks": count, "model": "mesh1m"}, [pace, pace])
        for (part, count), pace in paces.items()
    ]


def busy() -> list[Record]:
    """A tree on a quiet machine, and beside one process."""
    return [
        timed("busy.tree", "ours", {"load": load}, [pace, pace], p99_seconds=2 / pace)
        for load, pace in enumerate((100.0, 40.0))
    ]


def quality() -> list[Record]:
    """Two readouts of a language model after each of two lengths of training."""
    base = {"bench": "quality", "work": "language.seconds", "params": {}, "data": "a text", "judged": "perplexity"}
    return [
        base
        | {"lowest": True, "who": who, "run": {"seconds": seconds, "seed": 0}, "seconds": float(seconds), "test": {}}
        | {"valid": {"perplexity": figure / seconds}}
        | MADE
        for who, figure in (("tree huffman", 24_000.0), ("full softmax", 12_000.0))
        for seconds in (60, 120)
    ]


def large() -> list[Record]:
    """Two readouts of many classes, looked at twice."""
    base = {"bench": "large", "work": "large.pairs", "params": {"classes": 250_000}, "data": "pairs"} | MADE
    return [
        base | {"who": who, "quality": {"after 60 s": [figure], "after 120 s": [figure / 2]}}
        for who, figure in (("tree", 4000.0), ("head", 6000.0))
    ]


def step(name: str = "table7", command: str = "python -m bench table7", state: str = "done", **more: Any) -> Record:
    """What became of a step."""
    found = {"bench": "all", "work": "all.step", "who": "ours", "params": {"step": name, "command": command}}
    found |= {"section": "table7", "state": state, "reason": "", "seconds": 61.0, "quick": False}
    return found | {"ended": "2026-11-23T12:00:00+00:00"} | MADE | more


def every_section() -> list[Record]:
    """Some of each, and a step that was skipped."""
    skipped = step("ranks", "python -m bench ranks", "skipped", section="ranks", reason="mpi4py is not installed")
    return [*table7(), *overlap(), *ranks(), *busy(), *quality(), *large(), step(), skipped]


def write(path: Path, records: list[Record]) -> Path:
    """One line a record."""
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path

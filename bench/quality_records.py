"""The records of `python -m bench quality`: one a training, kept as they come; what a file holds already is not done again."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.contender import Figures, Run
from bench.measure import append, commit, environment
from hybrid.train.job import Watched

Record = dict[str, Any]
SAME = ("work", "who", "params", "run", "data", "threads")  # of the same training


class Book:
    """The records of a file of JSON lines, which grows; without a file they are kept in memory."""

    def __init__(self, path: str | None, threads: int):
        self.path, self.threads = path, threads
        self.made_by = {"device": "cpu", "commit": commit(), "env": environment()}
        lines = Path(path).read_text().splitlines() if path and Path(path).exists() else []
        self.records: list[Record] = [one for one in map(json.loads, lines) if one.get("bench") == "quality"]

    def of(self, work: str, who: str, data: str) -> list[Record]:
        """Those of a contender."""
        wanted = {"work": work, "who": who, "data": data, "threads": self.threads}
        return [one for one in self.records if one.items() >= wanted.items()]

    def trained(self, who: str, data: str, params: Mapping[str, Any]) -> list[Record]:
        """Those of a contender with certain settings, however long."""
        wanted = {"who": who, "data": data, "threads": self.threads, "params": dict(params)}
        return [one for one in self.records if one.items() >= wanted.items()]

    def once(
        self,
        work: str,
        who: str,
        data: str,
        params: Mapping[str, Any],
        run: Mapping[str, Any],
        train: Callable[[], Run],
        *,
        judged: Watched,
        test: bool,
    ) -> Record:
        """The record of a training, which is done now unless it is there.

        params  its settings
        run     seed and length: what else makes it this training
        judged  the figure of validation data that decides
        test    whether it is measured on test data too
        """
        record: Record = {"bench": "quality", "work": work, "who": who, "params": dict(params), "run": dict(run)}
        record |= {"data": data, "threads": self.threads, "judged": judged.name, "lowest": judged.lowest}
        found = next((one for one in self.records if _same(one, record)), None)
        if found is None:
            found = record | _measured(train(), test) | self.made_by
            self.records.append(found)
            append(self.path, [found])
            if test:  # a search says itself what it finds
                print(_line(found), flush=True)
        return found


def _same(one: Record, other: Record) -> bool:
    """Whether two are the same training; numbers as JSON writes them."""
    return all(json.dumps(one[name], sort_keys=True) == json.dumps(other[name], sort_keys=True) for name in SAME)


def _measured(run: Run, test: bool) -> Record:
    valid = run.valid()
    tested: Figures = run.test() if test else {}
    return {
        "valid": valid,
        "test": tested,
        "diverged": not valid,
        "epochs": run.epochs,
        "seconds": run.seconds,
        "examples": run.examples,
        "parameters": run.parameters,
        "memory": run.memory,
    }


def _line(record: Record) -> str:
    figures = ", ".join(
        f"{part} {name} {value:.4g}" for part in ("valid", "test") for name, value in record[part].items()
    )
    length = f"{record['epochs']:.3g} epochs, {record['seconds']:.1f} s"
    return f"{record['work']}, {record['who']}, {record['run']}: {length}: {figures or 'diverged'}"

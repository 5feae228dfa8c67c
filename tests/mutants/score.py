"""What came of a campaign, in words: a score for each area, and each survivor with the change that nobody saw."""

import difflib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.mutants.campaign import Result
from tests.mutants.mutant import Mutant

EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def equivalent(path: Path = EQUIVALENT) -> dict[str, str]:
    """The mutants, by name, that change nothing that a test could or should see, and why."""
    told: dict[str, str] = {}
    name = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("    "):
            if not name:
                raise ValueError(f"{path}:{number}: expected the name of a mutant before its reason")
            told[name] = line.strip()
            name = ""
        elif line and not line.startswith("#"):
            if name:
                raise ValueError(f"{path}:{number}: expected a reason, indented by four, for {name}")
            name = line
    return told


def table(results: Iterable[tuple[Mutant, Result | None]], known: dict[str, str]) -> str:
    """A line for each area: mutants drawn, killed (hung of them), survived, equivalent, not yet run, and the share killed."""
    counts: dict[str, Counter[str]] = {}
    for mutant, result in results:
        count = counts.setdefault(mutant.area, Counter())
        count["drawn"] += 1
        count["equivalent" if mutant.name in known else result.outcome if result else "not run"] += 1
        if result and mutant.name not in known:
            count[result.how] += 1
    lines = [
        "| area | drawn | killed | of these by time | survived | equivalent | not run | score |",
        "|---|" + "---:|" * 7,
    ]
    for area, count in sorted(counts.items()):
        met = count["killed"] + count["survived"]
        score = f"{count['killed'] / met:.1%}" if met else "-"
        numbers = (count[what] for what in ("drawn", "killed", "hung", "survived", "equivalent", "not run"))
        lines.append(f"| {area} | " + " | ".join(map(str, numbers)) + f" | {score} |")
    return "\n".join(lines)


def survivor(mutant: Mutant, text: str) -> str:
    """The change, and the command that repeats it."""
    lines = difflib.unified_diff(
        text.splitlines(), mutant.plant(text).splitlines(), mutant.path, mutant.path, n=1, lineterm=""
    )
    command = f"python -m tests.mutants --paths {mutant.path} --only {mutant.key}"
    return "\n".join([mutant.name, *list(lines)[2:], command, ""])

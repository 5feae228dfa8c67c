"""python -m tests.mutants --paths hybrid cpu gpu --number 500: the mutation score, by area, and what survived."""

import argparse
import sys
from pathlib import Path

from tests.mutants.campaign import MORE, RECORD, Campaign
from tests.mutants.mutant import drawn
from tests.mutants.score import equivalent, survivor, table
from tests.support.imports import ROOT


def main() -> int:
    """Run what has not been run, then tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "--paths", nargs="+", default=["hybrid", "cpu", "gpu"], help="files and folders to plant faults in"
    )
    parser.add_argument("--number", type=int, default=500, help="mutants of each area: hybrid, cpu, gpu, gpu .cu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--more", type=float, default=MORE, help="seconds of processor time for tests that are not the file's own"
    )
    parser.add_argument("--only", metavar="KEY", nargs="+", help="run these mutants, whatever is known of them")
    parser.add_argument("--tell", action="store_true", help="run nothing: what is known so far")
    parser.add_argument("--record", action="store_true", help=f"write what is known to {RECORD}")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "mutants", help="of the copy and of the results"
    )
    asked = parser.parse_args()
    campaign = Campaign(ROOT, asked.folder, asked.more)
    every, known = campaign.mutants(asked.paths), equivalent()
    chosen = [one for one in every if one.key in asked.only] if asked.only else drawn(every, asked.number, asked.seed)
    for key in set(asked.only or ()) - {one.key for one in chosen}:
        parser.error(f"no mutant {key} in {asked.paths}: its line has changed")
    for mutant in chosen if not asked.tell else ():
        if mutant.name in known and not asked.only:
            continue
        if asked.only or not campaign.held(mutant):
            result = campaign.run(mutant)
            print(
                f"{result.outcome} {result.seconds:6.1f} s  {mutant.key}  {mutant.name}  {result.by or ''}", flush=True
            )
    told = [(mutant, campaign.held(mutant)) for mutant in chosen]
    for mutant, outcome in told:
        if outcome and outcome.outcome == "survived" and mutant.name not in known:
            print(survivor(mutant, (campaign.tree.root / mutant.path).read_text()))
    print(table(told, known))
    if asked.record:
        campaign.record()
    campaign.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""python -m tests.crash --kills N --faults N ...: interrupt tiny runs in every way, go on with them, compare the bytes.

A finding is a run that cannot go on, has lost more than it may, or ends with other bytes than one that nothing interrupted.
Each is printed with the command that repeats it: of faults exactly, of kills at about the same time.
"""

import argparse
import contextlib
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import tqdm

from tests.support.small_runs import write_data

from .faults import Faults
from .kills import Kills
from .plants import PLANTS
from .ranks import Ranks
from .runs import Broken


class Campaign:
    """Turns of every kind, one after another.

    found  how many of them found something
    """

    def __init__(self, folder: Path, given: argparse.Namespace):
        self.folder, self.given, self.found = folder, given, 0
        (folder / "data").mkdir()
        data = write_data(folder / "data")
        self.faults = Faults(folder, data, given.plant)
        self.kills = Kills(folder, data, tuple(given.device or ["cpu"]), given.plant)
        self.ranks = Ranks(folder, data)

    def run(self) -> None:
        """All that was asked for, the kinds in turn; Ctrl-C ends it early."""
        wanted = {name: getattr(self.given, name) for name in ("faults", "kills", "ranks")}
        with contextlib.suppress(KeyboardInterrupt), tqdm.tqdm(total=sum(wanted.values())) as bar:
            number = self.given.first
            while wanted := {name: most for name, most in wanted.items() if getattr(self, name).count < most}:
                for name in wanted:
                    self._turn(name, number)
                bar.update(self.faults.count + self.kills.count + self.ranks.count - bar.n)
                number += 1

    def _turn(self, name: str, number: int) -> None:
        """One turn of a kind."""
        try:
            getattr(self, name).turn(number, self.given.seed)
        except Broken as broken:
            self.found += 1
            device = "".join(f" --device {device}" for device in self.given.device or ())
            print(
                f"python -m tests.crash --{name} 1 --first {number} --seed {self.given.seed}{device}\n    {broken}",
                flush=True,
            )
            kept = Path(self.given.keep) / f"{name}-{self.given.seed}-{number}"
            shutil.rmtree(kept, ignore_errors=True)
            if (self.folder / "turn").exists():
                shutil.copytree(self.folder / "turn", kept)


def main() -> int:
    """The exit code: 1 where something was found."""
    parser = argparse.ArgumentParser(
        "python -m tests.crash", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--faults", type=int, default=0, metavar="N", help="calls that fail or kill, and power cuts")
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="processes killed at any time")
    parser.add_argument("--ranks", type=int, default=0, metavar="N", help="ranks, or launchers of two, that are killed")
    parser.add_argument(
        "--device", action="append", help="of runs that are killed: cpu (default), cuda:0; may be repeated"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first turn")
    parser.add_argument("--plant", choices=PLANTS, help="a mistake to plant, which has to be found")
    parser.add_argument(
        "--keep", default="build/crash", help="where folders of findings are kept (default: build/crash)"
    )
    given, begun = parser.parse_args(), time.monotonic()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job of a script ignores
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder).resolve(), given)
        campaign.run()
    for kind in (campaign.faults, campaign.kills, campaign.ranks):
        if kind.count:
            print(kind)
    print(f"{campaign.found} findings in {time.monotonic() - begun:.0f} s")
    return int(bool(campaign.found))


if __name__ == "__main__":
    sys.exit(main())

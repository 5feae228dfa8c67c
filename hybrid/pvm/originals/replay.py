"""Replay a recording of an original Predictive Vision Model, or of a twin, on ours, and say how far it is from it.

    python -m tests.golden FILE [--device cuda:0] [--tolerance 1e-9]

A recording is an .npz of the CUDA implementation (its frames are `t_frame_raw`) or of the classic one (`t_frame_u8`). Ours
is made from the recorded configuration alone, begins with the recorded weights and sees the recorded frames; everything
else in the file is compared, a line for each array, with the frame where it is worst. The exit code is 0 where all is
within the tolerance, 1 where something is not, 2 where the file is no recording.

A CPU computes in the recorded dtype, a GPU in float32.
"""

import argparse
import sys
from pathlib import Path

from .recording import Row, read
from .replay_classic import Classic
from .replay_cuda import Cuda


def replay(path: str | Path, *, device: str = "cpu", tolerance: float | None = None) -> tuple[list[Row], list[str]]:
    """Run ours on a recording: a row for each array that could be compared, and the names of those that could not."""
    recording = read(path)
    classic = "t_frame_u8" in recording
    kind, real = (Classic, "float64") if classic else (Cuda, str(recording["real"]))
    run = kind(recording, device, real)
    if tolerance is not None:
        recording.allowed = tolerance
    run.run()
    return list(recording.rows.values()), recording.missed()


def main() -> int:
    """The command `python -m tests.golden`: a row for each array; returns 0, 1 where one differs, 2 for no recording."""
    parser = argparse.ArgumentParser(prog="tests.golden", description=__doc__.splitlines()[0])
    parser.add_argument("file", help="a recording (.npz)")
    parser.add_argument("--device", default="cpu", help="cpu (the default) or cuda:0")
    parser.add_argument("--tolerance", type=float, help="allowed difference; the default depends on the dtype")
    arguments = parser.parse_args()
    try:
        rows, missed = replay(arguments.file, device=arguments.device, tolerance=arguments.tolerance)
    except (OSError, ValueError) as error:
        print(f"tests.golden: {error}", file=sys.stderr)
        return 2
    print(f"{'array':24}{'worst':>12}  {'where':10}{'allowed':>10}", *rows, sep="\n")
    if missed:
        print(f"ignored: {', '.join(missed)}")
    failed = [row.name for row in rows if row.fails]
    print(f"{len(rows) - len(failed)} of {len(rows)} arrays agree" + (f"; not {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

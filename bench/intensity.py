"""Operations a byte of every stage, counted, and how near it comes to the roof: the peak of a BLAS, or the bandwidth."""

import statistics

from bench.ceilings import bandwidth, gemm
from bench.intensity_stages import QUICK, Sizes, Stage, stages
from bench.measure import Work, append, measure

BLOCK = 256  # examples of the products that the peak is measured by


def run(arguments) -> None:
    """Each stage takes turns with both ceilings."""
    import numba

    numba.set_num_threads(arguments.threads)
    sizes = QUICK if arguments.quick else Sizes()
    passing, peak = bandwidth(64 if arguments.quick else 512, arguments.threads), gemm(BLOCK, arguments.threads)
    print("stage               operations a byte    GFLOP/s   of the roof")
    for stage in stages(sizes, arguments.threads):
        work = _work(stage, arguments.threads)
        passing.samples, peak.samples = [], []
        *_, found = measure([passing, peak, work], arguments.repeat)
        reached, most = (one.amount / statistics.median(one.samples) for one in (passing, peak))
        intensity = stage.operations / stage.moved
        roof = min(most, intensity * reached)
        found |= {"operations": stage.operations, "moved": stage.moved, "intensity": intensity}
        found |= {"bandwidth": reached, "peak": most, "roof": roof, "roof_share": found["value"] / roof}
        by, share = "memory" if roof < most else "arithmetic", found["roof_share"]
        print(
            f"{stage.name:<20} {intensity:>16.3g} {found['value'] / 1e9:>10.3g} {share:>13.0%} ({by})   {stage.sizes}",
            flush=True,
        )
        append(arguments.json, [found])


def _work(stage: Stage, threads: int) -> Work:
    params = {"stage": stage.name, "sizes": stage.sizes}
    what = ("intensity.stage", "ours", params, stage.operations, "FLOP/s", stage.run, stage.check)
    return Work(*what, moved=stage.moved, threads=threads)

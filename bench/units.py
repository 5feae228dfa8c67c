"""The fused online step of 14,161 small MLPs, 211 M parameters, beside PyTorch (bmm, manual backward) and torch.compile."""

import statistics

from bench.ceilings import bandwidth, gemm
from bench.measure import append, measure, show
from bench.peers import peer
from bench.units_problem import Problem, ours
from bench.units_torch import rival


def run(arguments) -> None:
    """B = 1 without and with momentum, then B = 8, 16 and 32."""
    import numba

    numba.set_num_threads(arguments.threads)
    units = 12 * 12 if arguments.quick else 119 * 119
    for batch, momentum in ((1, 0.0), (1, 0.9), (8, 0.0), (16, 0.0), (32, 0.0)):
        problem = Problem(units, batch, momentum)
        kinds = ("bmm",) if arguments.quick else ("bmm", "compile")
        rivals = [rival(problem, arguments.threads, kind) for kind in kinds] if peer("torch") else []
        works = [ours(problem, arguments.threads), *rivals]
        machine = bandwidth(64 if arguments.quick else 1024, arguments.threads)
        blas = gemm(batch, arguments.threads)
        _, small, *records = measure([machine, blas, *works], arguments.repeat)
        for work, record in zip(works, records, strict=True):
            turns = zip(work.samples, machine.samples, strict=True)
            record["bandwidth_share"] = statistics.median(
                problem.moved / seconds / (machine.amount / streamed) for seconds, streamed in turns
            )
            record["gemm_share"] = problem.operations / record["seconds"] / small["value"]
        reached = machine.amount / statistics.median(machine.samples)
        show(records)
        print(_bound(problem, records[0], reached, small["value"]), flush=True)
        append(arguments.json, records)


def _bound(problem: Problem, ours: dict, bandwidth: float, peak: float) -> str:
    """One line: what the figure of ours is held against."""
    rate = problem.operations / ours["seconds"] / 1e9
    counted = 16 if problem.momentum else 8
    bound = "memory" if ours["bandwidth_share"] > 0.6 else "arithmetic"
    return (
        f"  {ours['value'] / 1e9:.2f} G parameters/s at {counted} bytes each = {ours['bandwidth_share']:.0%} of the "
        f"{bandwidth / 1e9:.1f} GB/s that read-modify-write reaches; {rate:.0f} GFLOP/s = {ours['gemm_share']:.0%} of the "
        f"{peak / 1e9:.0f} that a BLAS reaches on small matrices: bound by {bound}"
    )

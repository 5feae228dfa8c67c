"""How far models would scale over ranks, predicted to 1,024: by a simulation of what is measured here on 1, 2 and 4.

Measured: messages, compute of shares, ticks. The model's error on those ticks is printed, with a bar. All that is said of more
ranks is predicted, for links as they are measured here, within one host's memory, and for two networks that are assumed.
"""

import functools
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import scale_figures
from bench.measure import append, commit, environment
from bench.ranks_cut import Graph, cut, graph
from bench.ranks_pvm import configuration
from bench.scale_model import Prediction, link, predict
from bench.scale_picture import draw
from bench.scale_programs import language, pvm, seconds
from bench.scale_simulation import Link, Program, simulate
from hybrid.processors import available

RANKS = tuple(2**power for power in range(3, 11))
MODELS, QUICK = ("small", "flat210m", "mesh100m"), ("mesh1m",)
LARGER = {"mesh100m": "mesh1g"}  # predicted with the compute of the smaller one, whose units are the same
CLASSES, BATCH = 100_000, 1024
ASSUMED = {
    "25 Gb/s Ethernet (assumed: 20 us, 3.1 GB/s)": (20e-6, 3.1e9),
    "200 Gb/s InfiniBand (assumed: 2 us, 25 GB/s)": (2e-6, 25e9),
}
HERE = "links as measured here, within one host"
BAR = 0.1  # of what is measured
PICTURE = "scale.png"
PUBLISHED = """Published figures, measured by their authors: Deep Image, a convolutional net on 32 GPUs, 24.7 x one (77 %);
a Predictive Vision Model over several GPUs, "relatively straightforward" (Piekniewski), without a figure."""


def run(arguments: Any) -> None:
    """Measure, compare, predict, draw."""
    quick, repeat = arguments.quick, arguments.repeat
    models = QUICK if quick else MODELS
    found: dict[str, Any] = {"halos": scale_figures.of_messages(quick, repeat)}
    found["overhead"] = scale_figures.of_overhead(repeat)
    found["pvm"] = [scale_figures.of_pvm(model, repeat) for model in models]
    found["language"] = scale_figures.of_language(1_000 if quick else CLASSES, 64 if quick else BATCH, repeat)
    append(arguments.json, [_kept("scale.measured", {}, found)])
    links = {int(ranks): link(halos) for ranks, halos in found["halos"].items()}
    print(link_table(links), end="\n\n")
    checked = errors(found, links, available())
    print(error_table(checked), end="\n\n", flush=True)
    append(
        arguments.json,
        [
            _kept("scale.checked", {"model": name, "ranks": ranks}, {"measured": one, "simulated": other})
            for name, ranks, one, other in checked
        ],
    )
    predicted = predictions(found, links[2], RANKS[:2] if quick else RANKS)
    append(
        arguments.json,
        [_predicted(name, where, one) for (name, where), rows in predicted.items() for one in rows],
    )
    for where in dict.fromkeys(where for _, where in predicted):
        print(predicted_table(where, {name: rows for (name, at), rows in predicted.items() if at == where}), end="\n\n")
    print(PUBLISHED)
    if arguments.out:
        draw(Path(arguments.out) / PICTURE, predicted)


def _predicted(name: str, where: str, one: Prediction) -> dict[str, Any]:
    params = {"model": name, "links": where, "ranks": one.ranks}
    return _kept("scale.predicted", params, {"predicted": True} | one._asdict())


def _kept(work: str, params: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """A record without a figure of speed: what is predicted must not stand in a table of what is measured."""
    record = {"bench": "scale", "work": work, "who": "ours", "params": params, "threads": 1, "device": "cpu"}
    return record | found | {"commit": commit(), "env": environment()}


def errors(found: dict[str, Any], links: dict[int, Link], cores: int) -> list[tuple[str, int, float, float]]:
    """Model, ranks, seconds of a tick as measured and as predicted, for all that was measured."""
    rows = []
    for one in found["pvm"]:
        units = graph(configuration(one["model"]))
        for ranks, samples in one["ticks"].items():
            programs = pvm_programs(units, one, found["overhead"], int(ranks), crowd(int(ranks), cores))
            rows.append((one["model"], int(ranks), statistics.median(samples), simulated(programs, links, int(ranks))))
    of = found["language"]
    for ranks, samples in sorted(of["ticks"].items()):
        model = scale_figures.language_model(of, min(int(ranks), 2))
        programs = language(model, int(ranks), of["batch"], crowd(int(ranks), cores))
        rows.append(("language model", int(ranks), statistics.median(samples), simulated(programs, links, int(ranks))))
    return rows


def simulated(programs: list[Program], links: dict[int, Link], ranks: int) -> float:
    """Seconds of a tick."""
    return simulate(programs, links.get(ranks, Link())).seconds


def crowd(ranks: int, cores: int) -> float:
    """Ranks that share a core, each of which computes while the others do not."""
    return max(1.0, ranks / cores)


def pvm_programs(
    units: Graph, found: dict[str, Any], overhead: dict[str, Any], ranks: int, crowd: float = 1.0
) -> list[Program]:
    """A tick of a PVM on so many ranks, with the compute and the overhead of two, where there are several.

    The compute is calibrated: units take longer within a tick than alone, by as much as measured on two ranks, or on one.
    """
    at_once = min(ranks, 2)
    compute, frame = scale_figures.pvm_curve(found, at_once)
    measured = graph(configuration(found["model"]))
    alone = max(seconds(program, "shared", "interior") for program in pvm(cut(measured, at_once), compute, 0.0))
    compute = compute.times(found["units"][str(at_once)][0] / alone)
    return pvm(cut(units, ranks), compute, frame + statistics.median(overhead[str(at_once)]), crowd)


def predictions(found: dict[str, Any], here: Link, ranks: Sequence[int]) -> dict[tuple[str, str], list[Prediction]]:
    """By model and links: a rank a core, two of them a host's memory. A model is on no more ranks than it has units."""
    wires = {HERE: here} | {
        name: here._replace(latency=latency, a_byte=1 / speed) for name, (latency, speed) in ASSUMED.items()
    }
    predicted = {}
    for where, wire in wires.items():
        for one in found["pvm"]:
            name = LARGER.get(one["model"], one["model"])
            units = graph(configuration(name))
            made = functools.partial(pvm_programs, units, one, found["overhead"])
            predicted[name, where] = predict(made, wire, [count for count in ranks if count <= units.units])
        for name, weak in (("language model", False), ("language model, batch x ranks", True)):
            step = functools.partial(language_programs, found["language"], weak)
            evenly = functools.partial(language_programs, found["language"], weak, repeated=False)
            predicted[name, where] = predict(step, wire, ranks, evenly, weak)
    return predicted


def language_programs(found: dict[str, Any], weak: bool, ranks: int, repeated: bool = True) -> list[Program]:
    """A step on so many ranks; repeated False: as if they could share all of it."""
    model, batch = scale_figures.language_model(found, min(ranks, 2)), found["batch"] * (ranks if weak else 1)
    return language(model, ranks, batch, repeated=repeated)


def link_table(links: dict[int, Link]) -> str:
    """As Markdown."""
    lines = [
        "Measured, by halos of ranks on this machine:",
        "",
        "| ranks | overhead of a message, us | latency, us | GB/s | moves beside compute |",
    ]
    lines.append("|" + "---|" * 5)
    for ranks, one in links.items():
        speed = f"{1e-9 / one.a_byte:.1f}" if one.a_byte else "-"
        alone = "all" if one.alone > 1 << 40 else f"up to {one.alone:,} bytes"
        lines.append(f"| {ranks} | {1e6 * one.overhead:.2f} | {1e6 * one.latency:.1f} | {speed} | {alone} |")
    return "\n".join(lines)


def error_table(rows: list[tuple[str, int, float, float]]) -> str:
    """As Markdown, and whether the bar is met."""
    lines = ["| model | ranks | measured, ms | predicted, ms | error |", "|" + "---|" * 5]
    worst = 0.0
    for model, ranks, measured, predicted in rows:
        error = predicted / measured - 1
        worst = max(worst, abs(error))
        lines.append(f"| {model} | {ranks} | {1e3 * measured:.3f} | {1e3 * predicted:.3f} | {error:+.1%} |")
    lines += ["", f"The largest error is {worst:.1%}; bar {BAR:.0%}: {'met' if worst < BAR else 'missed'}."]
    return "\n".join(lines)


def predicted_table(where: str, models: dict[str, list[Prediction]]) -> str:
    """As Markdown: each model's predicted tick, speedup, efficiency, and what bounds it."""
    lines = [
        f"Predicted, not measured; {where}:",
        "",
        "| model | ranks | predicted tick, ms | predicted speedup | predicted efficiency | bounded by (predicted) |",
    ]
    lines.append("|" + "---|" * 6)
    for model, rows in models.items():
        for one in rows:
            figures = f"{1e3 * one.seconds:.3f} | {one.speedup:.1f} x | {one.efficiency:.0%}"
            lines.append(f"| {model} | {one.ranks:,} | {figures} | {one.bound} |")
    return "\n".join(lines)

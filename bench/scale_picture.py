"""The picture of predicted efficiency over ranks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.scale_model import Prediction

DEEP_IMAGE = 32, 24.7  # GPUs, and over one of them


def draw(file: Path, predicted: Mapping[tuple[str, str], Sequence[Prediction]]) -> None:
    """Write it: a side for each kind of links, a line for each model, and the one published point.

    predicted  by model and links
    """
    from matplotlib.figure import Figure

    places = list(dict.fromkeys(where for _, where in predicted))
    figure = Figure((4.2 * len(places), 3.8), layout="constrained")
    sides = figure.subplots(1, len(places), squeeze=False)[0]
    for side, where in zip(sides, places, strict=True):
        for (name, at), rows in predicted.items():
            if at == where:
                side.plot(
                    [one.ranks for one in rows],
                    [one.efficiency for one in rows],
                    "o-",
                    markersize=3,
                    linewidth=1,
                    label=name,
                )
        gpus, times = DEEP_IMAGE
        side.plot([gpus], [times / gpus], "k*", label="Deep Image, 32 GPUs (measured by its authors)")
        side.set_xscale("log", base=2)
        side.set_xlabel("ranks")
        side.set_ylabel("predicted efficiency")
        side.set_ylim(0, 1.3)
        side.set_title(where.replace(" (", "\n("), fontsize="small")
        side.spines[["top", "right"]].set_visible(False)
    figure.suptitle("Predicted by a simulation, not measured")
    sides[0].legend(frameon=False, fontsize="x-small")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)

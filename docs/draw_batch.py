"""Draws docs/images/batch.svg, the way of a batch: python docs/draw_batch.py

Two micro-batches go through three lanes, so that dense and sparse stages run at the same time. The picture has a ground of its
own, and so it reads on white and on dark pages.
"""

from pathlib import Path

FILE = Path(__file__).parent / "images" / "batch.svg"
WIDTH, UNIT, LEFT, TOP, LANE = 960, 62, 180, 60, 76  # in pixels; UNIT is one unit of time
LANES = ["feed", "sparse: CPU threads", "dense: GPU or CPU"]
COLOURS = ["#9ec5f4", "#f6c68b"]  # of the two micro-batches
STAGES = [  # micro-batch, lane, begin, end, what it does
    (0, 0, 0, 1, "fill"),
    (1, 0, 1, 2, "fill"),
    (0, 1, 1, 2, "gather"),
    (1, 1, 2, 3, "gather"),
    (0, 2, 2, 4, "MLP forward"),
    (1, 2, 4, 6, "MLP forward"),
    (0, 1, 4, 6.4, "readout learns"),
    (1, 1, 6.4, 8.8, "readout learns"),
    (0, 2, 6.4, 8.6, "MLP backward"),
    (1, 2, 8.8, 11, "MLP backward"),
    (0, 1, 8.8, 9.8, "scatter"),
    (1, 1, 11, 12, "scatter"),
    (1, 2, 11, 12, "update"),
]
ARROWS = [(4, 2, 1, "hidden vectors, B x D"), (6.4, 1, 2, "gradients, B x D")]  # time, from, to


def main() -> None:
    """Write the picture."""
    height = TOP + LANE * len(LANES) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        "<title>The way of a batch in two micro-batches</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fbfbfd" stroke="#c9cdd6"/>',
        _text(20, 30, "A batch is cut into micro-batches; stages of different ones run at the same time", 15),
    ]
    parts += [_text(20, TOP + LANE * lane + 26, name) for lane, name in enumerate(LANES)]
    parts += [_stage(*stage) for stage in STAGES]
    parts += [_arrow(*arrow) for arrow in ARROWS]
    legend = TOP + LANE * len(LANES) + 8
    for micro, colour in enumerate(COLOURS):
        x = LEFT + 170 * micro
        parts += [f'<rect x="{x}" y="{legend - 13}" width="18" height="16" rx="3" fill="{colour}"/>']
        parts += [_text(x + 26, legend, f"micro-batch {micro + 1}")]
    parts += [_text(WIDTH - 320, legend, "time →"), "</svg>"]
    FILE.write_text("\n".join(parts) + "\n")


def _stage(micro: int, lane: int, begin: float, end: float, name: str) -> str:
    x, y = LEFT + UNIT * begin, TOP + LANE * lane
    box = (
        f'<rect x="{x:.0f}" y="{y}" width="{UNIT * (end - begin) - 3:.0f}" height="42" rx="4" fill="{COLOURS[micro]}"/>'
    )
    size = 13 if end - begin > 1.5 else 12
    label = f'<text x="{x + UNIT * (end - begin) / 2:.0f}" y="{y + 26}" font-size="{size}" fill="#1b1f27"'
    return f'{box}\n{label} text-anchor="middle">{name}</text>'


def _arrow(time: float, start: int, end: int, name: str) -> str:
    """An arrow between two lanes, from the end of a stage to the beginning of the next, and what it carries."""
    x, down = LEFT + UNIT * time - 2, end > start
    y1, y2 = (TOP + LANE * start + 42, TOP + LANE * end - 2) if down else (TOP + LANE * start, TOP + LANE * end + 44)
    tip = y2 - 7 if down else y2 + 7
    line = (
        f'<path d="M{x:.0f} {y1}V{y2}M{x - 4:.0f} {tip}L{x:.0f} {y2}L{x + 4:.0f} {tip}" fill="none" stroke="#3c4454"/>'
    )
    return f"{line}\n{_text(x + 8, (y1 + y2) / 2 + 4, name, 11)}"


def _text(x: float, y: float, text: str, size: int = 13) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="#1b1f27">{text}</text>'


if __name__ == "__main__":
    main()

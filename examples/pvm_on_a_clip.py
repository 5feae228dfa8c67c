"""Let a Predictive Vision Model watch a clip, and see what it expects next.

The clip is a synthetic scene by default: a yellow disc, the target, and two other bodies over a moving background. The model
learns from every frame and never stops. You see its mean absolute error of the next frame fall, beside that of repeating the
last one; the picture that is written holds the last three frames, above what was predicted for each, and their difference.
After 3,000 frames it predicts a blur of what it sees; `hybrid train pvm` goes on until it beats repeating.

    python examples/pvm_on_a_clip.py --video bikes.mp4 --steps 5000
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from hybrid import PVM, Frames, open_clips

SHOWN, ZOOM, ROWS = 3, 4, 5  # frames of the picture, its enlargement, rows of the table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--video", default="synthetic", help="a video file or a directory of images")
    parser.add_argument("--config", default="quick", help="a configuration, as `hybrid pvm configs` lists them")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--out", default="examples/out", help="the folder of pvm.png")
    arguments = parser.parse_args()

    pvm = PVM.from_config(arguments.config, seed=0)
    feed = Frames(open_clips(arguments.video, pvm.config.frame), arguments.steps)
    print(f"{pvm.config.name}: {pvm.size[0]:,} weights, frames of {' x '.join(map(str, pvm.config.frame))}\n")

    print("mean |error| of the next frame, pixels in 0..1\n   frames  predicted  repeating the last")
    last = expected = None
    errors, panels = [], []
    every = max(arguments.steps // ROWS, 1)
    for number, out in enumerate(pvm.run(feed), 1):
        frame = feed[number - 1].image[0] / np.float32(255)
        if expected is not None:
            errors.append((np.abs(expected - frame).mean(), np.abs(last - frame).mean()))
            panels.append(np.concatenate([frame, expected, np.abs(expected - frame)]))
        last, expected = frame, out.prediction
        if number % every == 0:
            predicted, repeated = np.mean(errors, axis=0)
            print(f"{number:>9,}  {predicted:9.4f}  {repeated:9.4f}")
            errors = []

    picture = np.clip(np.concatenate(panels[-SHOWN:], axis=1), 0, 1).repeat(ZOOM, axis=0).repeat(ZOOM, axis=1)
    path = Path(arguments.out) / "pvm.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((255 * picture).astype(np.uint8).squeeze()).save(path)
    print(f"\n{path}: the last {SHOWN} frames, the predictions of them, |difference|")


if __name__ == "__main__":
    main()

"""Train thousands of small MLPs online, each with its own weights, in one call a step.

Every unit listens to a signal of its own, two sines of frequencies that nobody told it, and learns after every step to
predict the next value from the last eight. Units of the hidden widths 2, 4, 8 and 16 learn side by side. You see the mean
absolute error fall, by size of the units, beside that of repeating the last value; then how many weights moved a second.

    python examples/units_online.py --units 8000 --device cuda:0
"""

import argparse
import time

import numpy as np

from hybrid import Units

SEEN, SIZES = 8, (2, 4, 8, 16)  # values that a unit sees; hidden widths
ROWS = 5  # of the table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--device", default="auto", help='"cpu", "cuda:0" or "auto": a GPU where one can be used')
    arguments = parser.parse_args()

    count = arguments.units
    hidden = np.resize(SIZES, count)  # sizes may differ from unit to unit
    units = Units(count, SEEN, hidden, 1, device=arguments.device)
    weights = units.weights.size
    rng = np.random.default_rng(0)
    period, phase = rng.uniform(5, 50, (2, count)), rng.uniform(0, 1, (2, count))

    def signal(step: int) -> np.ndarray:
        """The value of every unit's signal at a step, (count,), between 0.1 and 0.9."""
        return (0.5 + 0.2 * np.sin(2 * np.pi * (step / period + phase)).sum(axis=0)).astype(np.float32)

    window = np.stack([signal(step) for step in range(SEEN)], axis=1)  # (count, SEEN)
    error, repeating, spent = np.zeros(count), 0.0, 0.0
    print(
        f"{count:,} units, {weights:,} weights, on {units.backend.name}\n\nmean |error| of the next value, by hidden width"
    )
    print("    steps  " + "".join(f"{size:>8}" for size in SIZES) + "  repeating the last value")
    every = max(arguments.steps // ROWS, 1)
    for step in range(1, arguments.steps + 1):
        following = signal(SEEN + step - 1)
        began = time.perf_counter()
        loss = units.step(window, following[:, None], rate=1.0)
        spent += time.perf_counter() - began if step > 1 else 0  # the first step compiles
        error += np.sqrt(2 * loss)  # a loss is half the squared error
        repeating += float(np.abs(window[:, -1] - following).mean())
        window = np.concatenate([window[:, 1:], following[:, None]], axis=1)
        if step % every == 0:
            means = "".join(f"{error[hidden == size].mean() / every:8.4f}" for size in SIZES)
            print(f"{step:>9,}  {means}  {repeating / every:8.4f}")
            error[:], repeating = 0, 0.0
    print(
        f"\n{weights * (arguments.steps - 1) / max(spent, 1e-9) / 1e6:,.0f} million weights a second, each used and moved once"
    )


if __name__ == "__main__":
    main()

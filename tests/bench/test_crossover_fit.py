"""Records become points: seconds of a batch, by setting; planted constants come out of them."""

import pytest

from bench.crossover_costs import Size, amounts
from bench.crossover_fit import Measured, Setting, measured, models

PLANTED = {"operations": 1e-11, "logits": 1e-9, "weights": 2e-10, "batches": 1e-4}


def record(contender, size, seconds, work="output", **more):
    value = size.batch / seconds
    facts = {"work": f"crossover.{work}", "contender": contender, "device": "cpu", "threads": 2}
    return facts | {"params": size._asdict(), "value": value, "interval": [value / 2, value * 2]} | more


def test_a_record_is_a_point_with_the_ends_of_its_interval_turned():
    size = Size(1_000, 128, 64)
    found = measured([record("full", size, 0.5), {"work": "softmax.step"}])
    assert found == {Setting("output", "cpu", 2): [Measured("full", size, 0.5, 0.25, 1.0)]}
    (alone,) = measured([record("full", size, 0.5, interval=None)]).values()
    assert alone == [Measured("full", size, 0.5, None, None)]


def test_settings_with_most_threads_of_the_cpu_come_first():
    size = Size(1_000, 128, 64)
    given = [record("full", size, 0.5, threads=1), record("full", size, 0.5, device="GPU"), record("full", size, 0.5)]
    assert list(measured(given)) == [
        Setting("output", "cpu", 2),
        Setting("output", "cpu", 1),
        Setting("output", "GPU", 2),
    ]


def test_models_have_the_constants_that_were_planted():
    sizes = [Size(10**power, width, batch) for power in (3, 4, 5) for width in (64, 512) for batch in (64, 1024)]
    records = []
    for size in sizes:
        seconds = sum(PLANTED[name] * amount for name, amount in amounts("full", "output", size).items())
        records.append(record("full", size, seconds))
    ((setting, points),) = measured(records).items()
    found = models(setting.work, points)
    assert found["full"].constants == pytest.approx(PLANTED, rel=1e-6) and len(found["full"].errors) == len(sizes)

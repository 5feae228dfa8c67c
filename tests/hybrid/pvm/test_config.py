"""Configurations, and what they may not be (hybrid/pvm/config.py)."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from hybrid.pvm.config import Config, Readout

PAGE = Path(__file__).parents[3] / "docs" / "pvm.md"


def test_the_fields_are_on_their_page_with_their_defaults():
    cells = re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", PAGE.read_text(), re.MULTILINE)
    shown = {name: value for names, value in cells for name in re.findall(r"`(\w+)`", names)}
    for field in dataclasses.fields(Config):
        if not isinstance(field.default, tuple) and field.default is not dataclasses.MISSING:
            assert shown[field.name].strip("`") == json.dumps(field.default)
    assert {field.name for field in (*dataclasses.fields(Config), *dataclasses.fields(Readout))} <= shown.keys()


def test_numbers_stand_for_squares_and_for_all_layers():
    config = Config(grids=[4, [3, 2]], block=5, hidden=7)
    assert (config.grids, config.block, config.hidden) == (((4, 4), (3, 2)), (5, 5), (7, 7))
    assert config.frame == (20, 20, 3)
    assert config == Config(grids=((4, 4), (3, 2)), block=(5, 5), hidden=(7, 7))
    assert hash(config) == hash(dataclasses.replace(config))


def test_json_goes_round_where_nothing_is_as_by_default():
    config = Config(
        name="other",
        grids=(np.int64(3), 2),
        block=(2, 3),
        channels=4,
        hidden=(np.int32(4), 5),
        wiring="classic",
        unit="complex",
        features=("signal", "error"),
        predict_steps=1,
        lateral_radius=np.float64(1.5),
        lateral_at=None,
        feedback_at=3,
        schedule=((0, 1, 0.1), (3, "all", 0.2, 0.5)),
        readout=Readout(kind="unit", block=(1, (2, 3)), enabled=(True, False)),
    )
    again = Config.from_fields(json.loads(config.to_json()))
    assert again == config
    assert again.schedule == ((0, 1, 0.1, None), (3, None, 0.2, 0.5))
    assert again.readout.block == ((1, 1), (2, 3))
    without = dataclasses.replace(config, readout=None)
    assert Config.from_fields(json.loads(without.to_json())) == without


def test_rates_go_on_from_those_before_and_of_one_step_the_later_entry_wins():
    config = Config(grids=(1,), schedule=((7, None, 0.5), (3, None, 0.1), (3, None, 0.2)))
    assert config.rates(3)[0] == [0.2]
    assert config.rates(7)[0] == [0.5]
    assert Config(grids=(1,), schedule=()).rates(9)[0] == [0]
    config = Config(grids=(2, 1), schedule=((0, None, 0.2, 0.3), (6, 1, 0.1)))
    rate, momentum = config.rates(0)
    changed = np.array([0.7, 0.8]), momentum
    assert config.rates_after(changed, 5)[0].tolist() == [0.7, 0.8]
    assert config.rates_after(changed, 6)[0].tolist() == [0.7, 0.1]
    assert changed[0].tolist() == [0.7, 0.8]  # new arrays
    for step in range(1, 9):
        rate, momentum = config.rates_after((rate, momentum), step)
        assert [rate.tolist(), momentum.tolist()] == [one.tolist() for one in config.rates(step)]


def test_context_is_silent_before_its_step():
    config = Config(lateral_at=3, feedback_at=None)
    assert [config.factors(step) for step in (0, 2, 3, 9)] == [(0, 0), (0, 0), (1, 0), (1, 0)]
    assert Config().factors(0) == (1, 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "name: found ''"),
        ({"name": "a\nb"}, r"name: found 'a\\nb', expected a name of at most 200 printable characters"),
        ({"grids": ()}, "grids: found none"),
        ({"grids": (3, (1, 2, 3))}, r"grids\[1\]: found \(1, 2, 3\), expected a number or"),
        ({"hidden": (1, 2)}, "hidden: found 2 sizes, expected 6"),
        ({"unit": "odd"}, "unit: found 'odd', expected one of simple"),
        ({"streams": 17}, "streams: found 17, expected a whole number from 1 to 16"),
        ({"grids": (1,) * 1001}, "grids: found 1,001 layers, expected at most 1,000"),
        ({"fan_in_radius": 0.5}, "fan_in_radius: found 0.5, which leaves no unit"),
        ({"tau": 1.5}, "tau: found 1.5, expected from 0 to 1"),
        ({"predict_steps": 1}, "features: found .* with wiring 'cuda'"),
        ({"wiring": "classic", "features": ()}, r"features: found \(\), expected \('signal',\)"),
        ({"wiring": "classic", "features": ("past", "signal")}, "each once, in this order"),
        ({"wiring": "classic", "unit": "residual", "predict_steps": 1}, "unit: found 'residual' with features"),
        ({"unit": "residual", "context_to_output": True}, "context_to_output: found True with unit 'residual'"),
        ({"unit": "change"}, "unit: found 'change' with features .* expected wiring 'classic', predict_steps 1"),
        ({"compat": "cuda2023"}, "compat: found an unknown name"),
        ({"schedule": (1, 2)}, r"schedule\[0\]: found 1, expected \(step"),
        ({"schedule": ((0, 6, 0.1, 0.1),)}, r"schedule\[0\] layer: found 6, expected a whole number from 0 to 5"),
        ({"readout": "tile"}, "readout: found 'tile', expected a Readout"),
        ({"readout": {"hiden": 3}}, "readout.hiden: found an unknown name, .* did you mean readout.hidden"),
        ({"readout": {"hidden": (1, 2, 3)}}, "readout.hidden: found 3 sizes, expected one"),
        ({"readout": {"block": (1, 2)}}, "readout.block: found 2, expected 1, of all tiles"),
        ({"readout": {"kind": "unit", "block": (1,)}}, "readout.block: found 1, expected 6, one per layer"),
        ({"readout": {"enabled": (True,) * 6}}, "readout.enabled: found 6 with kind 'tile'"),
        ({"readout": {"schedule": (1,)}}, r"readout.schedule\[0\]: found 1, expected \(step, rate\)"),
        ({"rate": 0.1}, r"rate: .*; rates are in the schedule: schedule=\[\[0,null,0.01,0.1\]\]"),
        ({"grid": 1}, "grid: found an unknown name, .* did you mean grids"),
        ([1], r"configuration: found \[1\], expected names"),
    ],
)
def test_what_does_not_fit_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Config.from_fields(fields)


def test_what_just_fits_is_taken():
    Config(streams=16, readout=Readout(kind="unit", block=(1,) * 6, enabled=(True,) * 6))
    Config(name="ä 模" + "b" * 197)
    Config(grids=(1,) * 1000, hidden=1)
    Config(lateral_at=0, feedback_at=0, schedule=((0, 0, 0.0, 0.0),), tau=0)
    Config(tau=1, fan_in=1, fan_in_radius=0, lateral_radius=0, channels=1, predict_steps=2)
    Config(fan_in_radius=0.5**0.5, readout=Readout(hidden=(1,), start=0, momentum=0, schedule=((0, 0),)))


def test_a_schedule_is_stretched_to_other_steps_where_it_says_how_many_it_is_for():
    schedule = ((0, None, 0.2, 0.0), (20, 0, 0.1, None), (25, None, 0.05, 0.5))
    found = Config(steps=30, schedule=schedule).stretched(7)
    assert found.steps == 7 and [event[0] for event in found.schedule] == [0, 5, 6]
    assert [event[1:] for event in found.schedule] == [event[1:] for event in schedule]
    assert found.stretched(30).schedule == ((0, None, 0.2, 0.0), (21, 0, 0.1, None), (26, None, 0.05, 0.5))
    assert Config(schedule=schedule).stretched(7).schedule == schedule

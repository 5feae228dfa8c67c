import pytest

from hybrid.pvm import originals as original
from hybrid.pvm.config import Config, Readout


def fields(text):
    """What files of both originals say; numbers are written as words there."""
    return dict(field.split("=") for field in text.split())


SHARED = {"layer_shapes": ["4", "2", "1"]} | fields(
    "input_block_size=5 hidden_block_size=7 lateral_radius=1.5 context_exclude_self=0 fan_in_square_size=2 "
    "fan_in_radius=2 send_context_two_layers_back=1 last_layer_context_to_all=0 feed_context_in_complex_layer=0 "
    "polynomial=1 momentum=0.1 initial_learning_rate=0.002 delay_each_layer_learning=1000 "
    "final_learning_rate=0.00005 delay_final_learning_rate=1000000"
)
CUDA = {**SHARED, "delay_intermediate_learning_rate": "1000000", "intermediate_learning_rate": 0.001}
CLASSIC = SHARED | {"readout_block_size": ["1", "2", "4"], "enable_readout": ["1", "0", "1"]}
CLASSIC |= fields(
    "enable_lateral_at=00700 enable_feedback_at=900 disable_lateral=0 disable_feedback=0 use_derivative=1 "
    "use_integral=0 use_error=1 use_t_minus_2_block=0 predict_two_steps=0 normalize_output=1 tau=0.9 "
    "unit_type=simple ex_module=PVM_models.PVM_unit_v1 readout_depth=1 supervised=0 supervised_rate=0.00001"
)
TWO_FRAMES = {"use_derivative": "0", "use_error": "0", "use_t_minus_2_block": "1", "predict_two_steps": "1"}


def without(fields, *names):
    return {name: value for name, value in fields.items() if name not in names}


def test_rates_for_the_same_step():
    (config, notes), rate = original.read(CUDA), 0.00005
    assert config.rates(999_999)[0].tolist() == [0.002] * 3
    assert config.rates(1_000_000)[0].tolist() == [rate] * 3
    assert config.readout.rate(999_999) == 0.01
    assert config.readout.rate(1_000_000) == pytest.approx(10 * rate)
    assert "both due at step 1000000" in notes[0]
    assert "in the original" in notes[0]


def test_options_of_the_cuda_implementation_only():
    more = fields("input_channels=4 ignore_depth=1 opt_abs_diff=1 readout_multiplier=5")
    config, notes = original.read({**CUDA, **more, "feed_context_in_complex_layer": "1", "polynomial": "0"})
    assert (config.channels, config.sign_of_error) == (4, True)
    assert "ignore_depth: ignored, though on: not available here" in notes
    assert (config.context_to_output, config.activation) == (True, "logistic")
    assert config.readout.hidden == (100,)
    assert config.readout.rate(1_000_000) == pytest.approx(0.00025)


@pytest.mark.parametrize(("file", "name", "value"), [(CUDA, "4_layer_readout", "1"), (CLASSIC, "readout_depth", "3")])
def test_readouts_that_are_not_built_are_left_out(file, name, value):
    config, notes = original.read({**file, name: value})
    assert config.readout is None and f"{name}: found {value}, not available here: no readout taken" in notes


def test_a_file_of_the_classic_implementation():
    config, notes = original.read(CLASSIC)
    assert (config.wiring, config.unit) == ("classic", "simple")
    assert (config.activation, config.publish) == ("rational", "minmax")
    assert (config.features, config.predict_steps, config.tau) == (("signal", "derivative", "error"), 1, 0.9)
    assert (config.squeeze, config.init, config.lateral_at, config.feedback_at) == (False, "classic", 700, 900)
    assert config.rates(1_000_500)[0].tolist() == [0.00005, 0.002, 0.002]
    assert config.rates(1_002_000)[0].tolist() == [0.00005] * 3
    readout = config.readout
    assert (readout.kind, readout.block, readout.enabled) == ("unit", ((1, 1), (2, 2), (4, 4)), (True, False, True))
    assert (readout.momentum, readout.rate(5)) == (0.1, 0)
    assert notes == ["supervised: 0, so the readouts do not learn"]


def test_supervised_trains_the_readouts_only():
    config, notes = original.read({**CLASSIC, "supervised": "1", "disable_lateral": "1", "disable_feedback": "1"})
    assert config.rates(10**7)[0].tolist() == [0] * 3
    assert config.readout.rate(0) == 0.00001
    assert config.factors(10**7) == (0, 0)
    assert any(note.startswith("supervised: 1") for note in notes)


@pytest.mark.parametrize(
    ("fields", "unit", "late"),
    [
        ({"unit_type": "complex"}, "complex", False),
        ({"unit_type": "complex", "feed_context_in_complex_layer": "1"}, "complex", True),
        ({"feed_context_in_complex_layer": "1"}, "simple", False),
        ({"ex_module": "PVM_models.PVM_unit_2step_residual_v1"}, "residual", False),
        ({"ex_module": "PVM_unit_2step_residual", "unit_type": "complex"}, "complex_residual", False),
    ],
)
def test_kinds_of_units(fields, unit, late):
    config, notes = original.read({**CLASSIC, **fields})
    assert (config.unit, config.context_to_output) == (unit, late)
    if "residual" in unit:
        assert (config.features, config.predict_steps, config.publish) == (("signal", "past"), 2, "minmax")
    ignored = "feed_context_in_complex_layer" in fields and not late
    assert any(note.startswith("feed_context_in_complex_layer: ignored") for note in notes) == ignored


def test_the_rule_is_that_of_what_the_file_asks_for():
    def rule(**arguments):
        return original.read({**CLASSIC, **TWO_FRAMES, **arguments})[0].wiring

    assert rule() == "cuda"
    assert rule(use_error="1") == "classic"
    assert rule(predict_two_steps="0") == "classic"
    assert rule(unit_type="complex") == "classic"
    assert rule(unit_type="complex", input_channels="3") == "cuda"
    assert original.read(CLASSIC, wiring="cuda")[0].wiring == "cuda"
    assert original.read(CUDA, wiring="classic")[0].wiring == "classic"


def test_every_name_is_taken_or_noted():
    extra = {"dataset": "x", "bias_free": "1", "autoencoder": "0", "colour": "red"}
    _, notes = original.read({**CLASSIC, **extra, "readout_multiplier": 3}, wiring="classic")
    assert notes[1:] == [
        "dataset: ignored",
        "bias_free: ignored, though on: not available here",
        "autoencoder: ignored",
        "colour: ignored",
        "readout_multiplier: ignored",
    ]
    _, notes = original.read(CLASSIC, wiring="cuda")
    noted = {note.split(":")[0] for note in notes}
    assert set(CLASSIC) - set(SHARED) <= noted


@pytest.mark.parametrize("rule", ["cuda", "classic"])
def test_a_file_of_nothing_but_layers_is_a_model_of_the_originals_defaults(rule):
    common = {"grids": (2, 1), "block": 5, "hidden": 25, "fan_in": 2, "fan_in_radius": 2, "lateral_radius": 1.5}
    common |= {"name": "original", "wiring": rule, "self_context": True, "two_layers_back": False, "top_to_all": True}
    begun = (0, 0, 0.0003, 0.5), (100_000, 1, 0.0003, 0.5)
    if rule == "cuda":
        readout = Readout(schedule=((0, 0.01), *(2 * [(100_000, 0.001)])), start=100_001, momentum=0.5, hidden=(100,))
        own = {"schedule": (*begun, *(2 * [(100_000, None, 0.0001, None)])), "readout": readout}
    else:
        own = {"features": ("signal", "derivative", "integral", "error"), "predict_steps": 1, "tau": 0.98}
        own |= {"lateral_at": 900_000, "feedback_at": 900_000, "squeeze": False, "init": "classic"}
        own["schedule"] = (*begun, (100_000, 0, 0.0001, None), (200_000, 1, 0.0001, None))
        own["readout"] = Readout(kind="unit", schedule=((0, 0.0),), momentum=0.5)
    config, notes = original.read({"layer_shapes": ["2", "1"]}, wiring=rule)
    assert config == Config(**common, **own, activation="logistic")
    assert "send_context_two_layers_back: missing, 0 taken" in notes
    supervised = original.read({"layer_shapes": ["2", "1"], "supervised": "1"}, wiring="classic")[0]
    assert supervised.readout.schedule == ((0, 0.0002),)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layer_shapes": "4"}, "layer_shapes: found '4', expected a list"),
        ({"layer_shapes": ["4", "x"]}, r"layer_shapes\[1\]: found 'x', expected a number"),
        ({"momentum": "nan"}, "momentum: found 'nan'"),
        ({"readout_block_size": ["1"]}, "readout.block: found 1, expected 3"),
    ],
)
def test_what_cannot_be_read_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        original.read({**CLASSIC, **fields}, wiring="classic")
    with pytest.raises(ValueError, match="layer_shapes: found None"):
        original.read(without(CLASSIC, "layer_shapes"))

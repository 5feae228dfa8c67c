"""The options of a run: defaults of model and parts, what is needed, what contradicts."""

import pytest

from hybrid.train.options import Parts, choose, free, kept


def test_defaults_are_those_of_run_model_readout_and_trunk_and_of_a_model_under_a_readout():
    chosen = choose("language", text="x", readout="tree")
    expected = {"kind": "language", "text": "x", "seed": 0, "save_every": 60, "patience": 0, "readout": "tree"}
    expected |= {"context": 4, "trunk_rate": 0.2, "hidden": 256, "tree": "huffman", "rows_device": "cpu"}
    expected |= {"epochs": 4, "rate": 0.02, "rows_rate": 0.2}  # as in the published table, docs/results/measurements.md
    assert {name: chosen[name] for name in expected} == expected
    assert "negatives" not in chosen and "negatives" in choose("language", text="x", readout="sampled")
    assert choose("factors", ratings="x")["readout"] == choose("language", text="x")["readout"] == "sampled"
    assert choose("factors", ratings="x", trunk="mlp", readout="tree")["rows_rate"] == 0.34
    assert choose("factors", ratings="x", trunk="mlp", rows_rate=0.7, readout="full")["rows_rate"] == 0.7


@pytest.mark.parametrize(
    ("kind", "said", "message"),
    [
        ("language", {}, "--text: needed by `train language`, found none"),
        ("language", {"text": "x", "readout": "tree", "negatives": 5}, "tree` but by --readout neighbours and --re"),
        ("language", {"text": "x", "readout": "nosuch"}, "readout: found 'nosuch', expected one of"),
    ],
)
def test_what_contradicts_is_missing_or_not_used_is_refused_by_name(kind, said, message):
    with pytest.raises(ValueError) as raised:
        choose(kind, **said)
    assert message in str(raised.value)


def test_what_changes_no_number_may_change_and_what_belongs_to_a_command_is_not_kept():
    assert {"device", "threads", "save_every", "patience", "tensorboard", "rows_device"} <= free("language")
    assert "seed" not in free("language") and {"live"} <= free("pvm")
    chosen = choose("pvm", live=8642, out="x", overwrite=True)
    assert chosen["live"] == 8642 and not {"live", "out", "overwrite"} & set(kept(chosen))


@pytest.mark.parametrize(("readout", "rate"), [("tree", 0.2), ("full", 0.05), ("sampled", 0.05)])
def test_the_trunk_has_the_rate_of_its_readout_and_adam_its_own(readout, rate):
    def trunk(optimiser):
        chosen = choose("language", text="x", readout=readout, trunk_optimiser=optimiser)
        assert (chosen["rate"], chosen["rows_rate"]) == (0.02, 0.2)
        return chosen["trunk_rate"], chosen["momentum"]

    assert trunk("sgd") == (rate, 0.9)
    assert trunk("adam") == (0.001, None)


def test_options_that_no_command_gives_are_refused():
    parts = Parts("language")
    parts.validate({"readout": "tree", "mode": "batch", "seed": 3})
    with pytest.raises(ValueError, match="seed: found -1, which --seed cannot be; the file was altered"):
        parts.validate({"seed": -1})

"""What ranks do in a tick, by hand: shares of compute, bytes of exchanges."""

import numpy as np
import pytest

from bench.ranks_cut import NUMBER, Cut
from bench.scale_programs import MICRO_BATCHES, Curve, Language, language, pvm, seconds
from bench.scale_simulation import Compute, Link, Meet, Start, Wait, simulate

LINE = Curve((1.0, 10.0, 100.0), (1.0, 10.0, 100.0))  # a second for each


MODEL = Language(
    dict.fromkeys(("gather", "forward", "readout", "backward", "scatter", "update", "rest"), LINE),
    width=3,
    inputs=5,
    trunk=8,
)


def computed(program):
    return sum(step.seconds for step in program if isinstance(step, Compute))


def test_a_curve_goes_through_its_points_and_on_in_proportion():
    found = Curve((1.0, 100.0), (2.0, 8.0))
    assert [found.at(amount) for amount in (0, 0.5, 1, 100, 300)] == pytest.approx([0, 2, 2, 8, 24])
    assert found.at(10) == pytest.approx(4), "half the way in logarithms"


def test_a_part_has_calls_of_its_own_and_the_whole_s_caches():
    found = Curve((1.0, 10.0, 100.0), (5.0, 6.0, 600.0))
    assert found.part(10, 100) == 60, "a tenth of the whole, which the cache does not hold"
    assert found.part(1, 10) == pytest.approx(5), "what a call takes"
    assert found.part(0, 10) == 0


def test_work_that_takes_longer():
    found = LINE.times(3)
    assert found.amounts == LINE.amounts and found.seconds == (3, 30, 300)


def test_a_tick_of_a_pvm():
    """Ten weights that the other rank reads, 90 beside their way there; then half of 16 bytes of errors, each way."""
    cut = Cut(np.array([10.0, 0.0]), np.array([90.0, 100.0]), [{1: 7}, {}], errors=16)
    first, second = pvm(cut, LINE, beside=3.0, crowd=2.0)
    assert [step.name for step in first] == ["beside", "shared", "halo", "interior", "halo", "errors 0", "errors 0"]
    assert first[2] == Start("halo", {1: 7}) and first[5:] == [Start("errors 0", {1: 8}), Wait("errors 0")]
    took = [[step.seconds for step in program if isinstance(step, Compute)] for program in (first, second)]
    assert seconds(first, "shared", "interior") == pytest.approx(200)
    assert took[0] == pytest.approx([6, 20, 180]) and took[1] == pytest.approx([6, 0, 200])
    assert simulate([first, second], Link(latency=10, a_byte=1)).seconds == pytest.approx(206 + 18)


def test_one_rank_has_a_tick_to_itself():
    (program,) = pvm(Cut(np.zeros(1), np.array([100.0]), [{}], errors=16), LINE, beside=3.0)
    assert simulate([program], Link(latency=10, a_byte=1)).seconds == pytest.approx(103)


def test_one_rank_learns_alone():
    (program,) = language(MODEL, 1, 100)
    assert computed(program) == pytest.approx(7 * 100) and all(isinstance(step, Compute) for step in program)


def test_ranks_share_the_trunk_and_repeat_the_rest():
    """Two ranks, four micro-batches of 10: of each, a vector and the gradients of its rows go to the other."""
    first, second = language(MODEL, 2, 10 * MICRO_BATCHES)
    took = {step.name: step.seconds for step in first if isinstance(step, Compute)}
    assert first == second and took == pytest.approx(
        {"gather": 40, "forward": 20, "readout": 40, "backward": 20, "scatter": 40, "update": 40, "rest": 40}
    )
    assert [step for step in first if isinstance(step, Meet)] == [
        Meet("hidden", 4, 4, 4 * 10 * 3 * NUMBER),
        Meet("row gradients", 4, 4, 4 * 10 * 5 * NUMBER),
        Meet("sum", 1, 1, 8 * NUMBER / 2),
        Meet("sum to all", 1, 1, 8 * NUMBER / 2),
    ]
    assert simulate([first, second], Link()).seconds == pytest.approx(240)


def test_more_ranks_have_a_micro_batch_each_that_goes_to_all_in_rounds():
    program = language(MODEL, 8, 80)[7]
    assert next(step for step in program if step.name == "forward") == Compute("forward", pytest.approx(10))
    assert Meet("hidden", 8 * 3, 8 * 3, 8 * 3 * 10 * 3 * NUMBER) in program
    assert Meet("sum", 7, 1, 7 / 8 * 8 * NUMBER) in program


def test_what_all_ranks_repeat_could_be_shared():
    assert simulate(language(MODEL, 2, 40, repeated=False), Link()).seconds == pytest.approx(20 * 5 + 80)


def test_ranks_that_share_a_core_take_longer():
    assert simulate(language(MODEL, 2, 40, crowd=2), Link()).seconds == pytest.approx(480)


def test_three_ranks_are_refused():
    with pytest.raises(ValueError, match="found 3, expected a power of two"):
        language(MODEL, 3, 40)
    with pytest.raises(ValueError, match="found 3, expected a power of two"):
        pvm(Cut(np.zeros(3), np.ones(3), [{}, {}, {}], errors=12), LINE, beside=0)

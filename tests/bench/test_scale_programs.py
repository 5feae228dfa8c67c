"""What ranks do in a tick, by hand: shares of compute, bytes of exchanges."""

import numpy as np
import pytest

from bench.ranks_cut import NUMBER, Cut
from bench.scale_programs import Curve, Language, language, pvm
from bench.scale_simulation import Compute, Link, Start, Wait, simulate

LINE = Curve((1.0, 10.0, 100.0), (1.0, 10.0, 100.0))  # a second for each


def model(ranks, top, tree=LINE):
    dense = dict.fromkeys(("gather", "forward", "backward", "update", "scatter", "rest"), LINE)
    return Language(dense, tree, {1: 1.0, ranks: top}, width=3, inputs=5, trunk=8)


def sent(program):
    """Bytes by the exchange, without the number of its round."""
    found = {}
    for step in program:
        if isinstance(step, Start):
            name = step.name.rsplit(" ", 1)[0]
            found[name] = found.get(name, 0) + sum(step.sends.values())
    return found


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


def test_a_tick_of_a_pvm():
    """Ten weights that the other rank reads, 90 beside their way there; then half of 16 bytes of errors, each way."""
    cut = Cut(np.array([10.0, 0.0]), np.array([90.0, 100.0]), [{1: 7}, {}], errors=16)
    first, second = pvm(cut, LINE, beside=3.0, crowd=2.0)
    assert [step.name for step in first] == ["beside", "shared", "halo", "interior", "halo", "errors 0", "errors 0"]
    assert first[2] == Start("halo", {1: 7}) and first[5:] == [Start("errors 0", {1: 8}), Wait("errors 0")]
    took = [[step.seconds for step in program if isinstance(step, Compute)] for program in (first, second)]
    assert took[0] == pytest.approx([6, 20, 180]) and took[1] == pytest.approx([6, 0, 200])
    assert simulate([first, second], Link(latency=10, a_byte=1)).seconds == pytest.approx(206 + 18)


def test_one_rank_has_a_tick_to_itself():
    (program,) = pvm(Cut(np.zeros(1), np.array([100.0]), [{}], errors=16), LINE, beside=3.0)
    assert simulate([program], Link(latency=10, a_byte=1)).seconds == pytest.approx(103)


def test_one_rank_learns_alone():
    (program,) = language(model(1, 1.0), 1, 100)
    assert computed(program) == 7 * 100 and sent(program) == {}


def test_replicas_tell_each_other_vectors_and_gradients():
    """Four ranks, 10 of 40 examples each: in two rounds all vectors, in four the sum of the trunk's gradient."""
    programs = language(model(4, 0.25), 4, 40)
    for program in programs:
        assert computed(program) == pytest.approx(6 * 10 + 40 / 4)
        rows, vectors = 10 * 5 * NUMBER, 10 * 3 * NUMBER
        assert sent(program) == {
            "rows": rows,
            "hidden": 3 * vectors,
            "gradients": 3 * vectors,
            "sum": 2 * 8 * NUMBER * (1 / 2 + 1 / 4),
            "row gradients": rows,
        }
    for rank, program in enumerate(programs):  # whoever sends gets something from the same one
        for at, step in enumerate(program):
            if isinstance(step, Start):
                (to,) = step.sends
                assert programs[to][at].sends == {rank: step.sends[to]}
    assert simulate(programs, Link()).seconds == pytest.approx(70)


def test_the_root_s_owner_bounds_the_step():
    """Half of the tree's 40 seconds are the root's; others share the rest."""
    programs = language(model(4, 0.5), 4, 40)
    trees = [step.seconds for step in programs[0] + programs[1] if step[0] == "tree"]
    assert trees == pytest.approx([20, 20 / 3])
    assert simulate(programs, Link()).seconds == pytest.approx(60 + 20)
    assert simulate(language(model(4, 0.5), 4, 40, chain=False), Link()).seconds == pytest.approx(60 + 10)


def test_ranks_that_share_a_core_take_longer():
    assert simulate(language(model(4, 0.25), 4, 40, crowd=2), Link()).seconds == pytest.approx(140)


def test_three_ranks_are_refused():
    with pytest.raises(ValueError, match="found 3, expected a power of two"):
        language(model(3, 0.5), 3, 40)
    with pytest.raises(ValueError, match="found 3, expected a power of two"):
        pvm(Cut(np.zeros(3), np.ones(3), [{}, {}, {}], errors=12), LINE, beside=0)

"""The simulation of ranks, by hand: one, nothing to tell, latency, lines, overlap, imbalance."""

import pytest

from bench.scale_simulation import Compute, Interval, Link, Meet, Start, Wait, simulate


def tick(shared, interior, sends):
    """As a tick of a PVM is: what others see, then the rest beside the exchange."""
    return [Compute("shared", shared), Start("halo", sends), Compute("interior", interior), Wait("halo")]


def test_one_rank_computes():
    run = simulate([tick(2, 3, {})], Link(1, 1, 1))
    assert run.ends == [5, 10, 15] and run.seconds == 5
    assert run.intervals[:2] == [Interval(0, "shared", 0, 2), Interval(0, "interior", 2, 5)]


def test_ranks_that_tell_each_other_nothing_do_not_wait():
    assert simulate([tick(1, 1, {}), tick(1, 4, {})], Link(1, 1, 1)).ends == [5, 10, 15]


def test_what_is_sent_in_time_costs_nothing():
    """2 + 3 seconds on the way, beside 5 of interior units."""
    run = simulate([tick(1, 5, {1: 10}), tick(1, 5, {0: 10})], Link(latency=2, a_byte=0.3))
    assert run.seconds == 6 and not any(one.name == "wait halo" for one in run.intervals)


def test_latency_bounds_those_with_little_to_compute():
    """Each tick: 1 for what others see, 7 on the way."""
    run = simulate([tick(1, 2, {1: 1}), tick(1, 2, {0: 1})], Link(latency=7))
    assert run.seconds == 8
    assert Interval(0, "wait halo", 3, 8) in run.intervals


def test_messages_of_a_rank_take_its_line_in_turn():
    """Three of 4 seconds each out of rank 0: the last one is there after 12 + 1."""
    programs = [tick(0, 0, {1: 4, 2: 4, 3: 4}), *(tick(0, 0, {}) for _ in range(3))]
    assert simulate(programs, Link(latency=1, a_byte=1), ticks=1).ends == [13]


def test_messages_to_a_rank_take_its_line_in_turn():
    programs = [tick(0, 0, {}), *(tick(0, 0, {0: 4}) for _ in range(3))]
    assert simulate(programs, Link(latency=1, a_byte=1), ticks=1).ends == [13]


def test_each_message_takes_time_of_both_of_its_ranks():
    """Rank 0: two messages out and one that comes, 3 seconds; rank 1: one and one; rank 2: one that comes."""
    run = simulate([tick(0, 0, {1: 1, 2: 1}), tick(0, 0, {0: 1}), tick(0, 0, {})], Link(overhead=1), ticks=1)
    assert [(one.rank, one.end) for one in run.intervals if one.name == "start halo"] == [(0, 3), (1, 2), (2, 1)]


def test_the_slowest_rank_bounds_its_neighbours_and_they_theirs():
    programs = [tick(1, 1, {1: 1}), tick(1, 9, {0: 1, 2: 1}), tick(1, 1, {1: 1})]
    assert simulate(programs, Link()).seconds == 10


def test_a_chain_of_neighbours_lets_ranks_be_a_tick_apart():
    """Rank 2 has all that it needs of rank 1, and is done, while rank 0 still computes."""
    programs = [tick(0, 9, {1: 1}), tick(0, 1, {0: 1, 2: 1}), tick(0, 1, {1: 1})]
    run = simulate(programs, Link(), ticks=2)
    second = min(one.start for one in run.intervals if one.rank == 2 and one.name == "interior" and one.start > 0)
    assert second == 1 and run.ends == [9, 18]


def test_large_messages_begin_when_both_ranks_wait():
    """Interior units end at 3 and 6; then both messages are 4 seconds on their lines."""
    programs = [tick(1, 2, {1: 4}), tick(1, 5, {0: 4})]
    assert simulate(programs, Link(a_byte=1, alone=3)).seconds == 10
    assert simulate(programs, Link(a_byte=1, alone=4)).seconds == 6


def test_large_and_small_messages_of_one_exchange_both_come():
    """The small one of rank 0 is there at 3; the large one of rank 1 leaves at 6, when both wait, and is there at 10."""
    programs = [tick(1, 2, {1: 2}), tick(1, 5, {0: 4})]
    run = simulate(programs, Link(a_byte=1, alone=3), ticks=1)
    assert run.ends == [10] and Interval(0, "wait halo", 3, 10) in run.intervals


def test_who_waits_for_ever_is_named():
    """Rank 0 does not start what rank 1 sends to it, a large message."""
    with pytest.raises(ValueError, match=r"ranks \[1\] wait for ever"):
        simulate([[Wait("halo")], tick(1, 1, {0: 100})], Link(alone=1))


def test_ranks_that_meet_go_on_together():
    """The last one comes at 5; then 2 x 2 messages of 1 second, 3 latencies of 10, and 8 bytes of half a second."""
    programs = [[Compute("own", own), Meet("all", messages=2, rounds=3, size=8)] for own in (1, 5)]
    run = simulate(programs, Link(overhead=1, latency=10, a_byte=0.5), ticks=2)
    assert run.ends == [43, 86] and Interval(0, "wait all", 1, 43) in run.intervals

"""Bars of what the GPU kernels do, exact on any machine: bytes against what a step cannot avoid, how full sectors are."""

import pytest

from tests.cudasim.counted import BATCH, BEST, CLASSES, EXAMPLES, TOGETHER, TREE, UNITS, WIDTH
from tests.support.bench_command import measured

pytestmark = pytest.mark.slow  # kernels are counted with every access watched
ROW = 4 * WIDTH  # bytes

# Bytes a parameter, and which part of the sectors that are read and written is asked for, at most and at least: 8.3 bytes, 16.4
# with momentum; of a unit that shared memory holds in part, what it does not hold is read twice. Signals are written
# four or eight rows at a time, wherever a unit begins.
STEPS = {
    "units.step 150-49-150": (8.3, 0.99, 0.96),
    "units.step ragged": (8.3, 0.99, 0.95),
    "units.step too large to hold": (9.4, 0.97, 0.99),
    "units.step too large, rows of whole sectors": (9.4, 0.99, 0.99),
    "units.step 150-49-150, momentum": (16.4, 0.98, 0.97),
}
# Which part of the passes over shared memory is due to bank conflicts, at most; of kernels that are not named, nothing.
# `choose` sorts keys of 8 bytes, which it compares with those 1, 2, 4, ... places away.
CONFLICTS = {"step_whole_momentum": 0.19, "step_part": 0.017, "pass": 0.044, "learn_4": 0.014, "meet": 0.013}
CONFLICTS["choose"] = 0.434


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """What the command counts, by step and kernel."""
    said, records = measured("gpu_counts", tmp_path_factory.mktemp("counts"))
    assert "| rows.gather | gather | row |" in said
    return {(record.case, record.kernel): record for record in records}


@pytest.fixture(scope="module")
def step(counts):
    """What a step with one kernel moves."""
    return lambda case: next(record for (name, _), record in counts.items() if name == case)


@pytest.mark.parametrize(("case", "bars"), STEPS.items())
def test_a_step_of_units_moves_each_weight_once_in_and_once_out(step, case, bars):
    found, (most, read_full, written_full) = step(case), bars
    assert found.least <= found.read + found.written <= most
    assert found.read_full >= read_full and found.written_full >= written_full


def test_units_that_are_held_on_chip_are_one_launch_for_each_size_of_their_blocks_and_meet_as_often_as_they_need(step):
    """They meet where inputs are there, hidden signals, errors, sums of these, hidden errors, and all weights."""
    for name, launches in (("150-49-150", 1), ("ragged", len(UNITS["ragged"][0]))):
        found = step(f"units.step {name}")
        assert found.launches == launches
        assert found.barriers == 6 * len(UNITS[name][0]) and found.warp_barriers == 0


@pytest.mark.parametrize(
    ("case", "kernel", "most"),
    [("pvm.tick small", "tick_one", 8.3), ("pvm.tick small, momentum", "tick_one_momentum", 16.4)],
)
def test_a_tick_of_a_pvm_moves_each_weight_once_in_and_once_out(counts, case, kernel, most):
    """Beside them, from the caches: second matrices, for the errors that they pull back, and inputs for each four rows."""
    found = counts[case, kernel]
    assert found.launches == 1
    assert found.read - found.again + found.written <= most
    assert found.again <= 3.9
    assert found.read_full >= 0.66 and found.written_full >= 0.72


def test_a_tick_of_several_streams_moves_each_weight_once_in_and_once_out(counts):
    """Beside them each stream's signals, a quarter of a byte a parameter; from the caches inputs for each two rows."""
    found = counts["pvm.tick small, momentum, 4 streams", "tick_many_momentum"]
    assert found.launches == 1
    assert found.read - found.again + found.written <= found.least <= 17.3
    assert found.again <= 19.4


def test_a_gather_reads_and_writes_nothing_but_full_sectors(step):
    found = step("rows.gather")
    assert found.read == ROW + 4 and found.written == ROW
    assert found.read_full == found.written_full == 1
    assert found.sectors == 2 * ROW + 4


def test_a_scatter_is_two_launches_which_read_each_gradient_once_and_each_row_that_is_met(counts):
    rank, scatter = (counts["rows.scatter", kernel] for kernel in ("rank", "scatter"))
    assert rank.launches == scatter.launches == 1
    assert rank.written == 8 and rank.read - rank.again == 4
    assert scatter.written < ROW and scatter.written_full == 1
    assert scatter.read - scatter.again == scatter.least - scatter.written + 4  # ids are sorted: each with its place
    # Warps look around among the ids, whose sectors overlap.
    assert scatter.read <= 1268 and scatter.read_full >= 0.9


def test_a_scatter_by_rows_with_squares_reads_each_gradient_twice(counts):
    measure, steps = (counts["rows.scatter, a square a row", kernel] for kernel in ("measure", "steps"))
    assert measure.read == ROW and measure.written == 8  # the gradient's norm and the factor
    assert steps.read <= 266 and steps.written < 8


def test_the_best_classes_are_chosen_in_one_pass_over_the_logits(counts):
    choose = counts[f"softmax.best, {BEST} classes", "choose"]
    assert choose.launches == 1
    assert choose.read <= 4.1 and choose.written <= 0.1
    assert choose.atomics <= CLASSES * EXAMPLES  # where all beat the worst so far


def test_a_long_scatter_sorts_its_ids_digit_by_digit(counts):
    count, one, scatter = (counts["rows.scatter, sorted by digits", kernel] for kernel in ("count", "pass", "scatter"))
    assert count.launches == one.launches == 2  # a thousand rows: two digits
    assert (count.read, one.read, one.written) == (8, 20, 16)  # the first pass knows the places; 1 KB of counts a block
    assert scatter.read == counts["rows.scatter", "scatter"].read
    assert count.atomics <= 305  # of two passes, the most equal digits of each warp's 32


def test_a_tree_step_moves_what_its_formula_says(counts):
    depth = TREE.bit_length() - 1
    climb, learn, add = (counts[f"tree step, {TREE} classes", kernel] for kernel in ("climb", "learn_4", "add"))
    assert climb.written == 4 * depth + 4 + 4 * depth  # entries and length; the reversed path is written again
    assert learn.written == depth * (ROW + 4) + (TREE - 1) * ROW / BATCH  # terms, log-odds, and each node once
    assert add.read == depth * (ROW + 4) + 4 * ROW // 128  # terms and log-odds, and the length by each warp
    assert add.written == ROW + 4
    assert learn.read <= 9400 and learn.read_full >= 0.91


def test_the_root_of_a_tree_moves_after_each_example_or_after_those_that_learn_together(counts):
    """These are the visits that wait for one another, and bound a step."""
    chains = {case: found.chain for (case, _), found in counts.items() if found.chain}
    name = f"tree step, {TREE} classes"
    assert chains == {name: BATCH, f"{name}, {TOGETHER} together": BATCH // TOGETHER}


def test_a_tree_step_of_a_batch_reads_a_path_once(counts):
    """A warp that holds some rows of the path in registers reads the hidden vector for them, from the L1 cache."""
    depth, warps = TREE.bit_length() - 1, 4
    kernels, case = ("line_up", "meet", "judge", "move", "finish"), f"tree step, {TREE} classes, {TOGETHER} together"
    line_up, meet, judge, move, finish = (counts[case, name] for name in kernels)
    assert judge.read == (depth + warps) * ROW + 4 * (2 * depth + warps)  # entries and slots; order by each warp
    assert judge.written == ROW + 4 + 4 * depth
    assert line_up.read <= 1068 and line_up.written == 4 * (2 * depth + 2)  # ranks of all by a block of 8; paths, slots
    assert meet.read <= 2464 and meet.written <= 71
    # Vectors at nodes without a crowd are 1,837 bytes of these, rows 70. The rest are entries, slots, misses and order, which
    # each of 8 warps takes from the L1 cache rather than wait for another. Where a node's examples stand in several spans,
    # their sums are written, 100 bytes, and `finish` reads them and moves it: so no span waits for another.
    assert move.read <= 2664 and move.written <= 171
    assert finish.read <= 185 and finish.written <= 48


def test_a_full_softmax_passes_over_its_logits_seven_times_at_most(counts):
    measure, miss = (counts["softmax step, kernels", kernel] for kernel in ("measure", "miss"))
    assert 4 <= measure.read < 4.05 and measure.written < 0.05
    assert 4 <= miss.read < 4.15 and miss.written == 4
    assert measure.read_full > 0.97 and miss.written_full == 1
    products = 4  # written twice, where they are not kept, and read by two products
    assert (measure.read + miss.read + miss.written) / 4 + products < 8


def test_shared_memory_is_passed_over_with_few_conflicts_of_banks(counts):
    found = {}
    for (_, kernel), record in counts.items():
        found[kernel] = max(record.conflicts, found.get(kernel, 0))
    assert {kernel for kernel, part in found.items() if part > 0} == CONFLICTS.keys()
    assert all(found[kernel] <= most for kernel, most in CONFLICTS.items()), found


@pytest.mark.parametrize(
    ("case", "kernel", "most"),
    [
        ("units.step 150-49-150", "step_whole", 3000),
        ("units.step 150-49-150, momentum", "step_whole_momentum", 4900),
        ("pvm.tick flat210m", "tick_one", 4000),
        ("pvm.tick flat210m, momentum", "tick_one_momentum", 5200),
    ],
)
def test_a_unit_issues_no_longer_than_its_copy_takes(counts, case, kernel, most):
    """On an H200 the copy of such a unit takes 7,440 cycles, twice as many with momentum."""
    found = counts[case, kernel].issue
    if not found:
        pytest.skip("the real nvcc or nvdisasm is missing: pip install -e '.[test]' brings them")
    assert most / 2 < found <= most

"""Bars of what the GPU kernels move, exact on any machine: bytes against what a step cannot avoid, how full sectors are."""

import pytest

from bench.gpu_counts import BATCH, CLASSES, EXAMPLES, TREE, UNITS, WIDTH, Count, table
from tests.support.bench_command import measured

ROW = 4 * WIDTH  # bytes

# Bytes a parameter, and which part of the sectors that are read and written is asked for, at most and at least: 8.3 bytes, 16.4
# with momentum, and 0.98. Of rows that warps keep in registers and that begin within a sector the counter finds fewer: it puts
# lanes that skip the beginning of a row together with others a request later.
STEPS = {
    "units.step 150-49-150": (8.3, 0.99, 0.99),
    "units.step ragged": (8.3, 0.99, 0.99),
    "units.step too large to hold": (8.3, 0.94, 0.94),
    "units.step too large, rows of whole sectors": (8.3, 0.99, 0.99),
    "units.step 150-49-150, in a ring": (8.3, 0.98, 0.98),
    "units.step 150-49-150, momentum": (16.4, 0.99, 0.99),
}

FUSED = ("measure_3xtf32_128", "combine", "learn_3xtf32_128")


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


def test_units_that_are_held_on_chip_are_one_launch_for_each_size_of_their_blocks(step):
    assert step("units.step 150-49-150").launches == 1
    assert step("units.step ragged").launches == len(UNITS["ragged"][0])


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


@pytest.mark.parametrize(
    ("case", "kernel", "most"),
    [
        ("pvm.tick small, in a ring", "tick_ring", 8.3),
        ("pvm.tick small, momentum, in a ring", "tick_ring_momentum", 16.4),
    ],
)
def test_a_tick_of_a_pvm_in_a_ring_moves_each_weight_once_in_and_once_out_by_whole_sectors(counts, case, kernel, most):
    """Beside them, from the caches, inputs for each two rows; second matrices come once."""
    found = counts[case, kernel]
    assert found.launches == 1
    assert found.read - found.again + found.written <= most
    assert found.again <= 4.3
    assert found.read_full >= 0.77 and found.written_full >= 0.93


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
    assert (
        scatter.read <= 1268 and scatter.read_full >= 0.9
    )  # warps look around among the ids; sectors of these overlap


def test_a_long_scatter_sorts_its_ids_digit_by_digit(counts):
    count, one, scatter = (counts["rows.scatter, sorted by digits", kernel] for kernel in ("count", "pass", "scatter"))
    assert count.launches == one.launches == 2  # a thousand rows: two digits
    assert (count.read, one.read, one.written) == (8, 20, 16)  # the first pass knows the places; 1 KB of counts a block
    assert scatter.read == counts["rows.scatter", "scatter"].read


def test_a_tree_step_moves_what_its_formula_says(counts):
    depth = TREE.bit_length() - 1
    climb, learn, add = (counts[f"tree step, {TREE} classes", kernel] for kernel in ("climb", "learn_4", "add"))
    assert climb.written == 4 * depth + 8 + 4 * depth  # entries, length and start; the reversed path is written again
    assert learn.written == depth * (ROW + 4) + (TREE - 1) * ROW / BATCH  # terms, log-odds, and each node once
    assert add.read == depth * (ROW + 4) + 4 * ROW // 128  # terms and log-odds, and the length by each warp
    assert add.written == ROW + 4
    assert learn.read <= 9400 and learn.read_full >= 0.91


def test_a_full_softmax_passes_over_its_logits_seven_times_at_most(counts):
    measure, miss = (counts["softmax step, kernels", kernel] for kernel in ("measure", "miss"))
    assert 4 <= measure.read < 4.05 and measure.written < 0.05
    assert 4 <= miss.read < 4.15 and miss.written == 4
    assert measure.read_full > 0.97 and miss.written_full == 1
    products = 4  # written twice, where they are not kept, and read by two products
    assert (measure.read + miss.read + miss.written) / 4 + products < 8


def test_a_fused_full_softmax_moves_rows_and_hidden_vectors_and_no_logit(counts):
    shares = -(-CLASSES // 32)  # fewer than there are multiprocessors
    logits, vectors, sums = CLASSES * EXAMPLES, ROW * EXAMPLES, 8 * EXAMPLES
    measure, combine, learn = (counts["softmax step, fused", kernel] for kernel in FUSED)
    streamed = ROW * CLASSES + shares * vectors  # all rows, and by each share of them the tile of examples that stays
    assert streamed <= measure.read * logits <= 1.02 * streamed and measure.read_full > 0.99
    assert measure.written * logits == shares * (vectors + sums) + 4 * EXAMPLES  # parts, and the target's logits
    assert shares * vectors <= combine.read * logits <= 1.2 * shares * vectors
    assert combine.written * logits == vectors + 20 * EXAMPLES  # the gradient; the loss, and what `learn` knows
    streamed = ROW * CLASSES + -(-CLASSES // 128) * vectors
    assert streamed <= learn.read * logits <= 1.03 * streamed  # beside them what is known of each example
    assert learn.written * logits == ROW * CLASSES and learn.written_full == 1


def test_a_fused_full_softmax_visits_squares_where_it_visits_rows(counts):
    logits, plain, ruled = (
        CLASSES * EXAMPLES,
        counts["softmax step, fused", FUSED[2]],
        counts["softmax step, fused, every rule", FUSED[2]],
    )
    assert ruled.written * logits == 2 * ROW * CLASSES + 8 * CLASSES
    assert ROW * CLASSES <= (ruled.read - plain.read) * logits <= 1.05 * ROW * CLASSES


def test_a_table_has_a_line_a_kernel():
    lines = table([Count("a step", "kernel", "row", 1, 672, 516, 356, 1512, 2056, 0.949, 1)]).splitlines()
    assert lines[2] == "| a step | kernel | row | 672.00 | 516.00 | 356.00 | 1,512.00 | 2,056.00 | 94.9 % | 100.0 % |"

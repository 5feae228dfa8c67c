"""Bars of what the GPU kernels do, exact on any machine: bytes against what a step cannot avoid, how full sectors are."""

import pytest

from tests.cudasim.counted import BATCH, BEST, CLASSES, EXAMPLES, TOGETHER, TREE, UNITS, WIDTH
from tests.support.bench_command import measured

pytestmark = pytest.mark.slow  # kernels are counted with every access watched
ROW = 4 * WIDTH  # bytes
DEPTH, WARPS = TREE.bit_length() - 1, 4
DIGITS, ONE_BY_ONE = "rows.scatter, sorted by digits", f"tree step, {TREE} classes"
TOGETHERS = f"{ONE_BY_ONE}, {TOGETHER} together"


def most(bound):
    return float("-inf"), bound


def least(bound):
    return bound, float("inf")


def of_units(moved, read_full, written_full, **more):
    """A step that moves each weight once in and once out."""
    sectors = {"read_full": least(read_full), "written_full": least(written_full)}
    return {"moved": most(moved), "spare": least(0)} | sectors | more


def held(shape, **launches):
    """Units on chip meet where inputs are there, hidden signals, errors, sums of these, hidden errors, and all weights."""
    return launches | {"barriers": 6 * len(UNITS[shape][0]), "warp_barriers": 0}


# By step and kernel: a number, or the least and the most. Bytes are those a parameter, row, example or logit; `again` those
# that caches serve, `once` all others, `over` those beyond what a step cannot avoid, and `spare` with `again`.
BOUNDS = {
    # 8.3 bytes, 16.4 with momentum; of a unit that shared memory holds in part, what it does not hold is read twice.
    # Signals are written four or eight rows at a time, wherever a unit begins.
    ("units.step 150-49-150", "step_whole"): of_units(8.3, 0.99, 0.96, **held("150-49-150", launches=1)),
    ("units.step ragged", "step_whole"): of_units(8.3, 0.99, 0.95, **held("ragged", launches=len(UNITS["ragged"][0]))),
    ("units.step too large to hold", "step_part"): of_units(9.4, 0.97, 0.99),
    ("units.step too large, rows of whole sectors", "step_part"): of_units(9.4, 0.99, 0.99),
    ("units.step 150-49-150, momentum", "step_whole_momentum"): of_units(16.4, 0.98, 0.97),
    # From the caches: second matrices, for the errors that they pull back, and inputs for each four rows.
    **{
        (f"pvm.tick small{name}", f"tick_one{kernel}"): {"launches": 1, "once": most(bytes), "again": most(3.9)}
        | {"read_full": least(0.66), "written_full": least(0.72)}
        for name, kernel, bytes in (("", "", 8.3), (", momentum", "_momentum", 16.4))
    },
    # Beside weights each stream's signals, a quarter of a byte a parameter; from the caches inputs for each two rows.
    ("pvm.tick small, momentum, 4 streams", "tick_many_momentum"): {"launches": 1, "again": most(19.4)}
    | {"over": most(0), "least": most(17.3)},
    ("rows.gather", "gather"): {"read": ROW + 4, "written": ROW, "sectors": 2 * ROW + 4}
    | {"read_full": 1, "written_full": 1},
    ("rows.scatter", "rank"): {"launches": 1, "written": 8, "first": 4},
    # Each gradient once and each row that is met; ids are sorted, each with its place. Warps look around among them, whose
    # sectors overlap.
    ("rows.scatter", "scatter"): {"launches": 1, "written": most(ROW - 2), "written_full": 1, "over": 4}
    | {"read": most(1268), "read_full": least(0.9)},
    # Each gradient twice: its norm and the factor
    ("rows.scatter, a square a row", "measure"): {"read": ROW, "written": 8},
    ("rows.scatter, a square a row", "steps"): {"read": most(266), "written": most(7.97)},
    # A thousand rows: two digits. The first pass knows the places; 1 KB of counts a block. Atomics are, of two passes, the
    # most equal digits of each warp's 32.
    (DIGITS, "count"): {"launches": 2, "read": 8, "atomics": most(305)},
    (DIGITS, "pass"): {"launches": 2, "read": 20, "written": 16},
    # One pass over the logits, and a turn where all beat the worst so far
    (f"softmax.best, {BEST} classes", "choose"): {"launches": 1, "read": most(4.1), "written": most(0.1)}
    | {"atomics": most(CLASSES * EXAMPLES)},
    # Seven passes over the logits at most, with those of the products: written twice, where they are not kept, read by two
    ("softmax step, kernels", "measure"): {"read": (4, 4.05), "written": most(0.05), "read_full": least(0.97)},
    ("softmax step, kernels", "miss"): {"read": (4, 4.15), "written": 4, "written_full": 1},
    # Entries and length; the reversed path is written again
    (ONE_BY_ONE, "climb"): {"written": 4 * DEPTH + 4 + 4 * DEPTH},
    # Terms, log-odds, and each node once
    (ONE_BY_ONE, "learn_4"): {"written": DEPTH * (ROW + 4) + (TREE - 1) * ROW / BATCH}
    | {"read": most(9400), "read_full": least(0.91)},
    # Terms and log-odds, and the length by each warp
    (ONE_BY_ONE, "add"): {"read": DEPTH * (ROW + 4) + 4 * ROW // 128, "written": ROW + 4},
    # Ranks of all by a block of 8; paths, slots
    (TOGETHERS, "line_up"): {"read": most(1068), "written": 4 * (2 * DEPTH + 2)},
    (TOGETHERS, "meet"): {"read": most(2464), "written": most(71)},
    # A warp that holds some rows of the path in registers reads the hidden vector for them, from the L1 cache. Beside them
    # entries and slots, and order by each warp.
    (TOGETHERS, "judge"): {"read": (DEPTH + WARPS) * ROW + 4 * (2 * DEPTH + WARPS), "written": ROW + 4 + 4 * DEPTH},
    # Vectors at nodes without a crowd are 1,837 bytes of these, rows 70. The rest are entries, slots, misses and order, which
    # each of 8 warps takes from the L1 cache rather than wait for another. Where a node's examples stand in several spans,
    # their sums are written, 100 bytes, and `finish` reads them and moves it: so no span waits for another.
    (TOGETHERS, "move"): {"read": most(2664), "written": most(171)},
    (TOGETHERS, "finish"): {"read": most(185), "written": most(48)},
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


@pytest.mark.parametrize(("case", "kernel"), BOUNDS)
def test_a_kernel_moves_what_it_must_and_little_more(counts, case, kernel):
    one = counts[case, kernel]
    once, moved = one.read - one.again + one.written, one.read + one.written
    facts = vars(one) | {"first": one.read - one.again, "once": once, "over": once - one.least}
    facts |= {"moved": moved, "spare": moved - one.least}
    bounds = {
        name: bound if isinstance(bound, tuple) else (bound, bound) for name, bound in BOUNDS[case, kernel].items()
    }
    assert {name: facts[name] for name, (low, high) in bounds.items() if not low <= facts[name] <= high} == {}


def test_a_long_scatter_reads_what_a_short_one_does(counts):
    assert counts[DIGITS, "scatter"].read == counts["rows.scatter", "scatter"].read


def test_the_root_of_a_tree_moves_after_each_example_or_after_those_that_learn_together(counts):
    """These are the visits that wait for one another, and bound a step."""
    chains = {case: found.chain for (case, _), found in counts.items() if found.chain}
    assert chains == {ONE_BY_ONE: BATCH, TOGETHERS: BATCH // TOGETHER}


def test_shared_memory_is_passed_over_with_few_conflicts_of_banks(counts):
    found = {}
    for (_, kernel), record in counts.items():
        found[kernel] = max(record.conflicts, found.get(kernel, 0))
    assert {kernel for kernel, part in found.items() if part > 0} == CONFLICTS.keys()
    assert all(found[kernel] <= most for kernel, most in CONFLICTS.items()), found

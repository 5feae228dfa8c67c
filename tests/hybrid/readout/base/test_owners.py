"""Owners of the rows of a readout: they change no row, only last bits of gradients; a checkpoint goes on with as many."""

import numpy as np
import pytest

from hybrid.readout import HeadReadout, LabelTreeReadout, SampledReadout, TreeReadout, rebuild

CLASSES, WIDTH, BATCH = 300, 8, 32
COUNTS = 1000 // np.arange(1, CLASSES + 1)
MAKE = {
    "tree": lambda **more: TreeReadout(COUNTS, WIDTH, batch=BATCH, **more),
    "head": lambda **more: HeadReadout(COUNTS, WIDTH, head=10, clusters=4, batch=BATCH, **more),
    "label_tree": lambda **more: LabelTreeReadout(COUNTS, WIDTH, batch=BATCH, **more),
    "sampled": lambda **more: SampledReadout(COUNTS, WIDTH, loss="logistic", negatives=20, batch=BATCH, **more),
}
REFUSED = [
    (lambda: LabelTreeReadout(9, 4, owners=5), "owners: found 5, expected an even number from 2 to 64"),
    (
        lambda: SampledReadout(9, 4, loss="logistic", owners=66),
        "owners: found 66, expected a whole number from 2 to 64",
    ),
    (lambda: SampledReadout(9, 4, owners=8), 'owners: found 8 with the loss "softmax"'),
    (lambda: HeadReadout(9, 4, head=4, clusters=2, tails="softmax", owners=8), 'owners: found 8 with tails "softmax"'),
]


def stepped(readout, ticks=3):
    """Gradients of some steps, the last losses, and the rows after them."""
    grads, loss = [], []
    for tick in range(ticks):
        rng = np.random.default_rng(tick)
        hidden, target = rng.normal(size=(BATCH, WIDTH)).astype(np.float32), rng.integers(0, CLASSES, BATCH)
        grads.append(np.empty_like(hidden))
        loss.append(readout.step(grads[-1], hidden, target.astype(np.int32)))
    return np.array(grads), loss, [array.tobytes() for array in readout.parameters().values()]


@pytest.mark.parametrize("kind", MAKE)
def test_more_owners_move_all_rows_alike_and_are_kept(kind, threads):
    few, many = MAKE[kind](), MAKE[kind](owners=16)
    assert "owners" not in few.describe()
    again = rebuild(many.describe())
    for name, array in many.parameters().items():
        np.copyto(again.parameters()[name], array)
    again.restore(many.state())
    (grads, losses, rows), (expected, expected_losses, expected_rows) = stepped(many), stepped(few)
    assert rows == expected_rows
    np.testing.assert_allclose(grads, expected, atol=1e-6)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-6)
    assert again.owners == 16
    np.testing.assert_array_equal(stepped(again)[0], grads)


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("owners", [4, 64])
def test_any_number_of_threads_gives_the_same_bytes(kind, owners):
    import numba

    found = set()
    for threads in (1, 2, 4):
        numba.set_num_threads(threads)
        grads, losses, rows = stepped(MAKE[kind](owners=owners))
        found.add((grads.tobytes(), *losses, *rows))
    assert len(found) == 1


@pytest.mark.parametrize("loss", ["softmax", "gbce"])
def test_a_sampled_readout_of_more_parts_has_smaller_blocks_and_learns_alike(loss, threads):
    given = {"loss": loss, "negatives": 200, "batch": BATCH}
    made = {parts: SampledReadout(COUNTS, WIDTH, parts=parts, **given) for parts in (16, 64)}
    assert [(one._scratch.rows, one._scratch.block) for one in made.values()] == [(64, 128), (1, 4)]
    assert "parts" not in made[16].describe() and rebuild(made[64].describe()).parts == 64
    grads, losses, _ = stepped(made[64])
    expected, expected_losses, _ = stepped(made[16])
    np.testing.assert_allclose(grads, expected, atol=1e-5)  # sums of 200 products
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    np.testing.assert_allclose(made[64].weights, made[16].weights, atol=1e-5)


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_owners_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()

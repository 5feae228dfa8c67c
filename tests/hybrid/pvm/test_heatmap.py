import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.pvm import heatmap


def test_flat_heatmaps_of_any_size_give_their_mean():
    maps = [np.full(size, level) for size, level in [((1, 1), 0.1), ((3, 5), 0.3), ((120, 90), 0.8)]]
    combined = heatmap.combine(maps, (50, 41, 3))
    assert combined.shape == (50, 41) and combined.dtype == np.float32
    np.testing.assert_allclose(combined, 0.4, atol=1e-6)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 100), st.integers(1, 100), st.integers(0, 9))
def test_combined_heatmaps_have_the_size_of_the_image_and_stay_in_range(rows, columns, height, width, seed):
    source = np.random.default_rng(seed).integers(0, 2, (rows, columns)).astype(np.float32)
    before = source.copy()
    combined = heatmap.combine([source], (height, width))
    assert combined.shape == (height, width)
    assert combined.min() >= 0 and combined.max() <= 1
    np.testing.assert_array_equal(source, before)


def test_a_heatmap_of_the_image_s_size_is_kept():
    source = np.random.default_rng(0).random((6, 9))
    np.testing.assert_allclose(heatmap.combine([source], (6, 9)), source, atol=1e-6)


def test_a_heatmap_is_resized_about_its_middle():
    source = np.zeros((3, 3))
    source[1, 1] = 1
    combined = heatmap.combine([source], (30, 60))
    np.testing.assert_allclose(combined, combined[::-1], atol=1e-6)
    np.testing.assert_allclose(combined, combined[:, ::-1], atol=1e-6)
    assert combined.argmax() in [row * 60 + column for row in (14, 15) for column in (29, 30)]


def test_box_by_hand():
    heat = np.full((40, 50), 0.25)
    heat[10:20, 5:25] = 0.75  # half-way is 0.5
    box = heatmap.box_of(heat)
    assert box.dtype == np.float32
    np.testing.assert_allclose(box, [5 - 1, 10 - 0.5, 22, 11], rtol=1e-6)
    np.testing.assert_array_equal(heatmap.box_of(heat, grow=1), [5, 10, 20, 10])


def test_the_box_is_that_of_the_region_with_the_maximum():
    heat = np.zeros((40, 50))
    heat[2:10, 2:10] = 0.9
    heat[20:30, 20:30] = 0.9
    heat[30:36, 30:40] = 0.8  # touches with a corner
    heat[36:39, 40:45] = 0.4  # below half-way
    heat[25, 25] = 1
    np.testing.assert_array_equal(heatmap.box_of(heat, grow=1), [20, 20, 20, 16])


@pytest.mark.parametrize(
    ("height", "width", "level", "present"),
    [
        (5, 5, 0.9, False),  # 25 of 96 x 96 is not more than that
        (2, 13, 0.9, True),
        (8, 8, 0.49, False),  # more likely not there
        (8, 8, 0.5, True),
    ],
)
def test_what_is_small_or_unlikely_is_absent(height, width, level, present):
    heat = np.zeros((96, 96))
    heat[3 : 3 + height, 4 : 4 + width] = level
    expected = [4, 3, width, height] if present else [0, 0, 0, 0]
    np.testing.assert_array_equal(heatmap.box_of(heat, grow=1), expected)


def test_limits_are_arguments():
    heat = np.zeros((40, 50))
    heat[3:5, 4:6] = 0.1
    box = heatmap.box_of(heat, likely=0.1, threshold=0.05, least_share=3 / heat.size, grow=2)
    np.testing.assert_array_equal(box, [3, 2, 4, 4])
    assert not heatmap.box_of(heat, likely=0.1, threshold=0.1, least_share=0).any()  # not more than it


def test_the_smallest_box_is_a_share_of_the_image():
    """A frame of 60 pixels and the same at 96 have a target or have none alike."""
    for side, present in ((5, False), (6, True)):
        for size in (60, 96):
            heat = np.zeros((size, size))
            heat[: round(side * size / 96), : round(side * size / 96)] = 1
            assert heatmap.box_of(heat).any() == present


def test_a_readout_that_has_learned_only_where_the_target_mostly_is_finds_none():
    """It used to be found in every frame, so absence was never seen."""
    rows, columns = np.mgrid[-1:1:60j, -1:1:60j]
    heat = 0.04 + 0.2 * np.exp(-4 * (rows**2 + columns**2))
    np.testing.assert_array_equal(heatmap.box_of(heat), np.zeros(4))


@pytest.mark.parametrize("level", [0, 0.5, 1])
def test_a_flat_heatmap_is_absent(level):
    np.testing.assert_array_equal(heatmap.box_of(np.full((20, 20), level)), np.zeros(4))


def test_heat_target_by_hand():
    # 8 rows x 12 columns of pixels on 2 x 3 cells of 4 x 4: the box spans half of row 0, and columns 1 and half of 2
    found = heatmap.heat_target(np.array([4, 2, 6, 2]), 2, 3, (8, 12, 3))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[0, 0.5, 0.25], [0, 0, 0]])


def test_a_target_finer_than_the_image():
    found = heatmap.heat_target(np.array([1, 0, 1, 1]), 2, 4, (1, 2))
    np.testing.assert_array_equal(found, [[0, 0, 1, 1], [0, 0, 1, 1]])


def test_an_absent_box_is_an_empty_target():
    assert not heatmap.heat_target(np.array([3, 4, 0, 5]), 4, 4, (8, 8)).any()


side = st.tuples(st.integers(0, 19), st.integers(1, 20)).filter(lambda one: sum(one) <= 20)


@given(side, side, st.integers(1, 30), st.integers(1, 30))
def test_a_target_has_the_area_of_its_box(across, down, rows, columns):
    box = np.array([across[0], down[0], across[1], down[1]], np.float32)
    found = heatmap.heat_target(box, rows, columns, (20, 20))
    assert found.shape == (rows, columns) and found.min() >= 0 and found.max() <= 1
    np.testing.assert_allclose(found.mean(), across[1] * down[1] / 400, rtol=1e-5)


@given(side, side)
def test_the_area_outside_the_image_is_cut_off(across, down):
    box = np.array([across[0] - 10, down[0] - 10, across[1], down[1]], np.float32)
    whole = np.zeros((40, 40))
    whole[down[0] : sum(down), across[0] : sum(across)] = 1
    np.testing.assert_array_equal(heatmap.heat_target(box, 20, 20, (20, 20)), whole[10:30, 10:30])


@given(side, side)
def test_a_target_leads_back_to_its_box(across, down):
    box = np.array([across[0], down[0], across[1], down[1]], np.float32)
    if across[1] * down[1] > 2 and across[1] * down[1] < 200:  # the median must be that of the ground
        heat = heatmap.heat_target(box, 20, 20, (20, 20))
        np.testing.assert_array_equal(heatmap.box_of(heat, grow=1), box)


def test_targets_of_the_originals():
    mask = np.array([0, 0.5, 1], np.float32)
    np.testing.assert_allclose(heatmap.squeezed(mask), [0.1, 0.5, 0.9], rtol=1e-6)
    np.testing.assert_allclose(heatmap.raised(mask), [0.4, 0.7, 1], rtol=1e-6)
    assert heatmap.squeezed(mask).dtype == heatmap.raised(mask).dtype == np.float32

"""Without ranks nobody is watched; tests/hybrid/ranks/test_launch.py lets one not come."""

from hybrid.ranks import watch


def test_a_meeting_of_one_process_is_no_wait():
    with watch.meeting() as entered:
        assert entered is None
    watch.end()

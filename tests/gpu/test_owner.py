import threading

import pytest

from gpu.runtime.owner import Owner


@pytest.fixture
def owner():
    made = Owner("test")
    yield made
    made.close()


def test_work_is_done_in_order_in_one_thread(owner):
    seen = []
    futures = [owner.submit(lambda n=n: seen.append((n, threading.current_thread().name))) for n in range(20)]
    for future in futures:
        future.result()
    assert seen == [(n, "test") for n in range(20)]


def test_a_call_from_the_owner_itself_does_not_wait_for_itself(owner):
    assert owner.call(lambda: owner.call(lambda: threading.current_thread().name)) == "test"


def test_what_the_work_raises_reaches_the_asker_and_the_owner_goes_on(owner):
    with pytest.raises(ZeroDivisionError):
        owner.call(lambda: 1 / 0)
    assert owner.call(lambda: 3) == 3


def test_what_is_posted_is_done_in_the_owners_thread(owner):
    freed = []

    class Thing:
        def __del__(self):
            freed.append(threading.current_thread().name)

    things = [Thing()]
    owner.post(things.clear)
    owner.post(lambda: 1 / 0)  # nobody hears of it
    owner.call(lambda: None)
    assert freed == ["test"]


def test_nothing_that_was_done_is_kept_alive(owner):
    freed = []

    class Thing:
        def __del__(self):
            freed.append(True)

    owner.submit(lambda thing: None, Thing())
    owner.call(lambda: None)
    assert freed == [True]


def test_close_finishes_what_was_given_and_may_be_repeated():
    owner, seen = Owner("test"), []
    for n in range(5):
        owner.submit(seen.append, n)
    owner.close()
    owner.close()
    assert seen == [0, 1, 2, 3, 4]

"""What the analytic model of a network says of messages."""

import pytest

from bench.step.hosts import Link, _link


@pytest.mark.parametrize(
    ("kind", "hosts", "steps"), [("exchange", 8, 1), ("most", 2, 1), ("share", 8, 3), ("share", 5, 3), ("join", 4, 3)]
)
def test_a_message_takes_its_steps_each_of_a_latency_and_its_bytes(kind, hosts, steps):
    assert Link(1.0, 10.0).seconds([(kind, 20), (kind, 0)], hosts) == pytest.approx(steps * (1 + 2 + 1))


def test_a_network_is_known_by_two_messages_and_a_maximum():
    found = [("message", 8, [0.2, 0.1, 0.3]), ("message", 1008, [1.2]), ("allreduce", 4, [9.0]), ("most", 8, [0.5])]
    assert _link(found) == (0.5, pytest.approx(1000.0))

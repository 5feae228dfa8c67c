"""Machines of hypothesis that have to find a fault that a test has planted."""

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

SHORT = settings(
    max_examples=60,
    stateful_step_count=15,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


def finds(machine: type[RuleBasedStateMachine], *failures: type[BaseException]) -> None:
    """Fail unless the machine fails, by an assertion or one of these failures."""
    with pytest.raises((AssertionError, *failures)):
        run_state_machine_as_test(machine, settings=SHORT)

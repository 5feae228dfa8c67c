"""Which commands run on several ranks."""

import argparse


def check(given: argparse.Namespace, ranks: int) -> None:
    """ValueError where a command is to run on more ranks than it can."""
    if ranks > 1:
        kind = getattr(given, "kind", None)
        what = f"the model {kind}" if kind else f"`hybrid {given.command}`"
        raise ValueError(
            f"-n: found {ranks} ranks, but {what} runs on one rank; take -n 1, or leave out `launch -n {ranks}`"
        )

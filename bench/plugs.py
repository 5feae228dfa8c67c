"""What users plug in: losses and trunks of PyTorch, optimisers of rows and of the trunk, each beside what they replace."""

import importlib

PARTS = ("plugs_losses", "plugs_torch_trunk", "plugs_trunk", "plugs_rows")  # one file a bar or two


def run(arguments) -> None:
    """Every part, one after another; each can be run alone by its own name."""
    for name in PARTS:
        importlib.import_module(f"bench.{name}").run(arguments)

"""The command `hybrid`: what a user types, and where errors meet him."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command line; see `command_line.main`."""
    from .command_line import main

    return main(arguments)

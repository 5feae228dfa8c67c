"""The command `hybrid`: command line and error reporting."""


def main(arguments: list[str] | None = None) -> int:
    """Runs one command line; see `command_line.main`."""
    from .command_line import main

    return main(arguments)

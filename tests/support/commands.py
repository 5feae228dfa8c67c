"""Commands that run in this process: what they report, and what they say where they are refused."""

import json

from hybrid.cli import main


def run_json(capsys, *arguments: str) -> dict:
    """The report of a command that ends well."""
    assert main([*arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments: str) -> str:
    """What a command that is refused says."""
    assert main([*arguments]) == 2
    return capsys.readouterr().err

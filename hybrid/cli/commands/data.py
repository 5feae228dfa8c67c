"""The command `hybrid data`: lists and downloads public data sets."""

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

from ... import console
from ... import data as getting
from ...data import DATASETS, data_folder
from ..arguments import Parser


def add(data: Parser) -> None:
    """Adds the subcommands to the command's parser."""
    actions: Any = data.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list data sets with their size, place and content")
    get = actions.add_parser("get", help="download a data set and verify it")
    get.add_argument("name", metavar="NAME", help=", ".join(DATASETS))
    get.add_argument("--out", metavar="DIR", help="folder of the data (default: HYBRID_DATA, else in the user's cache)")
    for action in (listing, get):
        action.add_argument("--json", action="store_true", help="print JSON")
        action.add_quiet()


def run(given: argparse.Namespace) -> int:
    """Lists the data sets or downloads one."""
    folder = data_folder(given.out if given.action == "get" else None)
    return _list(folder, given.json) if given.action == "list" else _get(given.name, folder, given.json)


def _list(folder: Path, as_json: bool) -> int:
    missing = {name: getting.missing(name, folder) for name in DATASETS}
    if as_json:
        facts = {
            name: {"here": not missing[name], "bytes": found.size, "about": found.about, "licence": found.licence}
            for name, found in DATASETS.items()
        }
        print(json.dumps({"folder": str(folder), "data": facts}, indent=1))
        return 0
    for name, found in DATASETS.items():
        print(f"{name:11} {found.size / 1e6:5.1f} MB  {'    ' if missing[name] else 'here'}  {found.about}")
    print(f"in {folder}; hybrid data get NAME brings one")
    return 0


def _get(name: str, folder: Path, as_json: bool) -> int:
    wanted = getting.dataset(name)
    if getting.missing(name, folder):
        console.note(f"{name}: {wanted.size / 1e6:.1f} MB, to {folder}")
    paths = [str(path) for path in getting.get(name, folder)]
    then = wanted.next.format(shlex.quote(str(folder)))
    if as_json:
        print(json.dumps({"name": name, "files": paths, "licence": wanted.licence, "next": then}, indent=1))
        return 0
    print("\n".join([*paths, f"licence: {wanted.licence}", f"next: {then}"]))
    return 0

"""The sections of the report of `python -m bench all`, a file each, with a function `section(records) -> Section`."""

"""The sections of the report of `python -m bench all`, one per file, with a function `section(records) -> Section`."""

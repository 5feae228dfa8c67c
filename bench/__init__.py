"""Comparative benchmarks: `python -m bench NAME [--json FILE]`; one file per benchmark, rivals interleaved in one run."""

"""Comparative benchmarks: `python -m bench NAME [--json FILE]`; one file a benchmark, rivals interleaved in one run."""

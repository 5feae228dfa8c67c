"""Runs whose process is killed, whose disk fails or whose machine loses its power, and that go on: see __main__.py."""

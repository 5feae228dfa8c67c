"""Runs whose process is killed, or whose disk fails, and that go on: see campaign.py."""

"""The command `hybrid`: what a user types, and where errors meet him."""

from .main import main

__all__ = ["main"]

"""Arithmetic with Numba, and all that branches. Arrays come in, never objects of `hybrid`."""

"""Nearest neighbours: exact, by trees, by a graph."""

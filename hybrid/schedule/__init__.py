"""Scheduling of stages, the layer below engine, readouts and PVM; independent of models, readouts and ranks."""

"""Computation on several ranks, which MPI starts and connects. No other package imports mpi4py."""

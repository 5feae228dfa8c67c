"""Several processes that compute one thing: ranks, which MPI starts and connects. Nothing else imports mpi4py."""

"""The simulated driver in place of a device."""


def simulate(**settings: int) -> None:
    """Let the simulated driver and the simulated cuBLAS stand in, before PyCUDA is imported; settings: of cudasim.start."""
    from tests import cudasim
    from tests.cudasim import cublas

    cudasim.start(**settings)
    cublas.use()

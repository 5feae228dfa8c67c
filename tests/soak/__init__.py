"""Random engines, left, saved, resumed, copied, interrupted and broken in many orders, end as the serial run: see __main__.py.

queues      queues of the CPU whose work is done in an order drawn from a seed, in one thread
interrupts  Ctrl-C at the n-th line of the package, in all that a caller does
"""

"""Whether rows and readout should be on the CPU or beside the trunk on its GPU, by a short measurement on the user's sizes.

On the CPU a step takes all threads, and vectors and gradients are copied. On the trunk's GPU a step takes time of the device,
and ids, targets and losses are copied. What else runs at the same time is not measured. So this finds large differences, as
between a tree on the CPU and on the GPU, but not which of two equals wins in a whole tick.
"""

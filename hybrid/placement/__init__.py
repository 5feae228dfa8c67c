"""Where rows and readout should be, by a short measurement on the user's sizes: on the CPU, or beside the trunk on its GPU.

On the CPU a step takes all threads, and vectors and gradients cross; on the trunk's GPU ids, targets and losses cross, and
the step takes the device's time. What else runs at the same time is left out, so this finds large differences, as between
a tree on the CPU and on the GPU, and not which of two equals wins in a whole tick.
"""

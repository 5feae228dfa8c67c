"""When work happens: queues, slots, stages, the runner, traces. Knows no model, no readout, no MPI."""

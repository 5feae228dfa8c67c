// Stands in for gpu/cluster.cuh, which is PTX on a device.
#pragma once

inline void meet_cluster(CUDASIM_SITE) { cudasim_calls->cluster_barrier(file, line); }

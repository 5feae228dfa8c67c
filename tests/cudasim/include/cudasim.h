// CUDA's built-ins for one thread of a simulated device; included before every kernel file.
// __global__, __shared__ and __launch_bounds__ are left to the nvcc stand-in, which rewrites them.
#pragma once
#include "cudasim_abi.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <utility>

#define __CUDASIM__ 1
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

extern "C" CudasimState cudasim_state;
extern "C" const CudasimCalls* cudasim_calls;
extern "C" unsigned char cudasim_dynamic_shared[CUDASIM_DYNAMIC_BYTES];

#define threadIdx (cudasim_state.thread)
#define blockIdx (cudasim_state.block)
#define blockDim (cudasim_state.block_size)
#define gridDim (cudasim_state.grid_size)

#define CUDASIM_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

#include "cudasim_vectors.h"
#include "cudasim_warp.h"
#include "cudasim_memory.h"
#include "cudasim_math.h"
#include "cudasim_registry.h"
#include "cudasim_checks.h"

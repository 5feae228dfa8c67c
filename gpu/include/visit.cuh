// How a row moves in one visit: the rule that the scatters of rows, the nodes of a tree and whole batches share.
//
//   g        the gradient of the row in this visit, its bias's at the end where it has one
//   squares  none: step = rate. One a row: squares += mean(g^2), step = rate / (sqrt(squares) + 1e-10). One a number: the
//            same for each number
//   w        <- w - step g
//
// All threads of a row compute its step from the square of the gradient's norm: nobody waits for another.
#pragma once

// rate / (sqrt(square) + 1e-10)
__device__ __forceinline__ float step_of(float rate, float square) { return __fdividef(rate, sqrtf(square) + 1e-10f); }

// The step of a row with one square for all of its numbers, which takes in a gradient of the mean square `mean`.
__device__ __forceinline__ float step_of_row(float &square, float mean, float rate)
{
    square += mean;
    return step_of(rate, square);
}

// One number with a square of its own.
__device__ __forceinline__ float moved(float w, float &square, float g, float rate)
{
    square = fmaf(g, g, square);
    return fmaf(-step_of(rate, square), g, w);
}

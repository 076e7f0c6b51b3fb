// Elements by axes: an index into a shape becomes a place in each operand.
#ifndef FHELIUM_STRIDED_CUH
#define FHELIUM_STRIDED_CUH

#include "launch.cuh"

// The axes that one launch walks; src/kernels/strided.rs has the same number.
constexpr u32 AXES = 10;

// `count` indices of a shape whose axis 0 is the innermost, and each operand's strides in elements.
template <int OPERANDS>
struct Strided {
    u32 count;
    u32 rank;
    u32 extents[AXES];
    i64 strides[OPERANDS][AXES];
};

// The places, in elements from each operand's first, of an index below `count`.
template <int OPERANDS>
__device__ __forceinline__ void places_of(const Strided<OPERANDS>& shape, u32 index,
                                          i64 (&places)[OPERANDS]) {
#pragma unroll
    for (int operand = 0; operand < OPERANDS; ++operand) places[operand] = 0;
#pragma unroll 1
    for (u32 axis = 0; axis < shape.rank; ++axis) {
        u32 at = index;
        if (axis + 1 < shape.rank) {
            index = at / shape.extents[axis];
            at -= index * shape.extents[axis];
        }
#pragma unroll
        for (int operand = 0; operand < OPERANDS; ++operand)
            places[operand] += (i64)at * shape.strides[operand][axis];
    }
}

// The index of this thread of a one-dimensional grid.
template <int THREADS>
__device__ __forceinline__ u32 thread_index() {
    return blockIdx.x * THREADS + threadIdx.x;
}

#endif

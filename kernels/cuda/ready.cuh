// How blocks of a launch begin on what blocks of the launch before have finished, while others of those still
// run: a count of the blocks that have, for each part that is waited for by itself.
//
// The counts are zeroed by a launch before both. The one that counts awaits it, and only then lets the next
// start: so who waits finds no older counts, and no block that it waits for is still to be placed. Where
// launches do not overlap, all counts are full.
#ifndef FHELIUM_READY_CUH
#define FHELIUM_READY_CUH

#include "core.cuh"

#ifdef __CUDACC__

// By all threads of a block: what they have written is there for whoever sees the count.
__device__ __forceinline__ void announce(u32* count) {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence();
    atomicAdd(count, 1);
}
// By all threads of a block.
__device__ __forceinline__ void await_count(const u32* count, u32 full) {
    if (threadIdx.x == 0) {
        u32 seen;
        while (true) {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
            if (seen >= full) break;
            __nanosleep(50);
        }
    }
    __syncthreads();
}

#else

inline void announce(u32* count) {
    __syncthreads();
    if (threadIdx.x == 0) ++*count;
}
// The tests' emulator runs one launch after the other.
void await_count(const u32* count, u32 full);

#endif

#endif

// How kernels are declared.
//
// Every kernel takes one structure by value, which src/kernels/ mirrors; none has a static shared
// array. Names end in the mode, and before it in the layers of the pass where there is one.
#ifndef FHELIUM_LAUNCH_CUH
#define FHELIUM_LAUNCH_CUH

#include "core.cuh"

#ifdef __CUDACC__
#define FH_SHARED(name) extern __shared__ __align__(16) u64 name[]
#else
#define FH_SHARED(name) u64* name = fh_shared_memory()
#endif

// Lets the next launch start while this one runs, once all of this one's blocks have said so.
__device__ __forceinline__ void let_next_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
// Waits for the launch before. Every kernel does so, so that a launch also follows all earlier ones.
__device__ __forceinline__ void await_previous_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// What most kernels start with: everything that they read may be the launch's before.
__device__ __forceinline__ void follow_previous_launch() {
    let_next_launch();
    await_previous_launch();
}

// Blocks on a multiprocessor, by mode: integers take more registers. The figures are sm_90's; machine
// code for others needs a few registers more, and there one block, or thread, less is asked for.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
constexpr int FEWER = 1;
#else
constexpr int FEWER = 0;
#endif
template <Mode MODE, int OF_FAST, int OF_WIDE>
constexpr int RESIDENT = (MODE == FAST ? OF_FAST : OF_WIDE) - FEWER;

// Defines `extern "C" NAME(args)` that runs BODY<...>(args) in blocks of THREADS threads, of which
// at least BLOCKS fit a multiprocessor's registers. The body of an EARLY kernel awaits the previous launch
// itself, before it writes, and before it reads what that may write: it is free to read tables.
#define FH_EARLY_KERNEL(NAME, THREADS, BLOCKS, ARGS, BODY)        \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) \
        NAME(const __grid_constant__ ARGS args) {                 \
        BODY(args);                                               \
    }
#define FH_KERNEL(NAME, THREADS, BLOCKS, ARGS, BODY) \
    FH_EARLY_KERNEL(NAME, THREADS, BLOCKS, ARGS, follow_previous_launch(); BODY)

#endif

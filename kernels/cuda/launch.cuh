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

#define FH_KERNEL(NAME, THREADS, ARGS, BODY)              \
    extern "C" __global__ void __launch_bounds__(THREADS) \
        NAME(const __grid_constant__ ARGS args) {         \
        BODY(args);                                       \
    }

#endif

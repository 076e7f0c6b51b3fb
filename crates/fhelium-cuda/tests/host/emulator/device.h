// CUDA C++ as the host compiler understands it, for kernels that are run by blocks.cpp.
//
// Threads of a block are fibers that run in turn, from one barrier to the next, so that a kernel's
// indexing, barriers and arithmetic are those of the device; its timing and races are not.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n)

struct Index {
    unsigned x, y, z;
};
extern Index threadIdx, blockIdx, gridDim;

struct ulonglong2 {
    uint64_t x, y;
};
inline ulonglong2 make_ulonglong2(uint64_t x, uint64_t y) { return ulonglong2{x, y}; }

template <class T>
inline T __ldg(const T* p) {
    return *p;
}
inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1) << (31 - bit);
    return reversed;
}
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }

inline long long __double2ll_rn(double x) { return llrint(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }

// Fibers take turns only at barriers.
inline unsigned long long atomicCAS(unsigned long long* place, unsigned long long expected,
                                    unsigned long long desired) {
    const unsigned long long found = *place;
    if (found == expected) *place = desired;
    return found;
}

// Waits until so many threads have come to a barrier: 0 is the block's, then those of groups, from
// FIRST_WARP on the warps'.
void fh_barrier(unsigned barrier, unsigned threads);
extern unsigned fh_threads;  // of a block
constexpr unsigned FIRST_WARP = 16;
inline void __syncthreads() { fh_barrier(0, fh_threads); }
inline void sync_group(unsigned group, unsigned threads) { fh_barrier(group, threads); }
inline void __syncwarp() {
    const unsigned warp = threadIdx.x / 32;
    fh_barrier(FIRST_WARP + warp, min(32, fh_threads - warp * 32));
}
extern uint64_t fh_lanes[1024];
// What thread `from` gives; all threads of the warp take part.
template <class T>
inline T fh_shuffle(T value, unsigned from) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    memcpy(&fh_lanes[threadIdx.x], &value, sizeof(T));
    __syncwarp();
    memcpy(&value, &fh_lanes[from], sizeof(T));
    __syncwarp();
    return value;
}
template <class T>
inline T __shfl_up_sync(unsigned, T value, unsigned delta) {
    return fh_shuffle(value, threadIdx.x % 32 >= delta ? threadIdx.x - delta : threadIdx.x);
}
template <class T>
inline T __shfl_xor_sync(unsigned, T value, int lanes) {
    return fh_shuffle(value, threadIdx.x ^ lanes);
}
uint64_t* fh_shared_memory();
// Before a block begins.
void fh_forget_copies();

// A kernel by name, for cuModuleGetFunction.
struct Kernel {
    const char* name;
    size_t argument_bytes;
    void (*run)(const void* arguments);
};
void fh_register(const Kernel& kernel);
const Kernel* fh_find(const char* name);

// Runs all blocks of a launch; one launch at a time.
void fh_run_grid(const Kernel& kernel, Index grid, unsigned threads, size_t shared,
                 const void* arguments);

// What memory holds that nobody wrote.
constexpr uint64_t FH_PATTERN = 0xA5A5A5A5A5A5A5A5ull;

template <class Arguments, void (*KERNEL)(Arguments)>
void fh_run(const void* arguments) {
    KERNEL(*static_cast<const Arguments*>(arguments));
}
template <class T>
struct ArgumentOf;
template <class A>
struct ArgumentOf<void (*)(A)> {
    typedef typename std::remove_const<A>::type type;
};

#define FH_REGISTER(NAME)                                                       \
    static const bool registered_##NAME = [] {                                  \
        typedef ArgumentOf<decltype(&NAME)>::type Arguments;                    \
        fh_register(Kernel{#NAME, sizeof(Arguments), fh_run<Arguments, NAME>}); \
        return true;                                                            \
    }();

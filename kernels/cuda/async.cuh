// Copies from memory to shared memory that run while the thread goes on (sm_80 and later). A
// thread waits for its own copies only: what it copied for others needs a barrier as well.
#ifndef FHELIUM_ASYNC_CUH
#define FHELIUM_ASYNC_CUH

#include "core.cuh"

// Words of a line of the L2 cache.
constexpr u32 LINE_WORDS = 16;

#ifdef __CUDACC__

__device__ __forceinline__ void copy_async_8(u64* shared, const u64* source) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(
                     (u32)__cvta_generic_to_shared(shared)),
                 "l"(source)
                 : "memory");
}
__device__ __forceinline__ void copy_async_16(u64* shared, const u64* source) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     (u32)__cvta_generic_to_shared(shared)),
                 "l"(source)
                 : "memory");
}
// The same of words that are read once in a launch: the L2 cache drops them first.
__device__ __forceinline__ void copy_async_16_once(u64* shared, const u64* source) {
    asm volatile(
        "{\n .reg .b64 policy;\n"
        " createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        " cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, policy;\n}" ::"r"(
            (u32)__cvta_generic_to_shared(shared)),
        "l"(source)
        : "memory");
}
// Asks for the line of memory that holds a word: it will be wanted.
__device__ __forceinline__ void prefetch_line(const u64* word) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(word));
}
// Gives up what a line holds: it need not be written back to memory.
__device__ __forceinline__ void discard_line(const u64* word) {
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(word) : "memory");
}
// Stores a pair that is not read soon: the L2 cache drops it first.
__device__ __forceinline__ void store_pair_once(u64* target, u64 x, u64 y) {
    __stcs(reinterpret_cast<ulonglong2*>(target), make_ulonglong2(x, y));
}
// Ends a group of copies.
__device__ __forceinline__ void copy_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits for all groups but the last LATER.
template <int LATER>
__device__ __forceinline__ void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}

#else

// The tests' emulator copies when a thread waits, and what was not committed not at all.
void copy_async(u64* shared, const u64* source, u32 words);
void copy_async_commit();
void copy_async_wait_for(u32 later);

inline void copy_async_8(u64* shared, const u64* source) { copy_async(shared, source, 1); }
inline void copy_async_16(u64* shared, const u64* source) { copy_async(shared, source, 2); }
inline void copy_async_16_once(u64* shared, const u64* source) { copy_async_16(shared, source); }
inline void prefetch_line(const u64*) {}
void discard_line(const u64* word);
inline void store_pair_once(u64* target, u64 x, u64 y) { store_pair(target, x, y); }
template <int LATER>
inline void copy_async_wait() {
    copy_async_wait_for(LATER);
}

#endif

#endif

// Elements moved between places of any strides, and repeated, by their size alone.
//
// Grid: (elements); a thread writes one.

#include "strided.cuh"

namespace {

constexpr int THREADS = 256;

struct Move {
    const void* source;
    void* target;
    Strided<2> shape;
};
static_assert(sizeof(Move) == 224, "src/kernels/strided.rs has the same layout");

template <class T>
__device__ __forceinline__ void move(const Move& args) {
    const u32 index = thread_index<THREADS>();
    if (index >= args.shape.count) return;
    i64 places[2];
    places_of(args.shape, index, places);
    static_cast<T*>(args.target)[places[1]] = static_cast<const T*>(args.source)[places[0]];
}

// The same bits in `count` elements.
struct Fill {
    u64 bits[2];
    void* target;
    u32 count;
    u32 unused;
};
static_assert(sizeof(Fill) == 32, "src/kernels/strided.rs has the same layout");

template <class T>
__device__ __forceinline__ void fill(const Fill& args) {
    const u32 index = thread_index<THREADS>();
    if (index >= args.count) return;
    static_cast<T*>(args.target)[index] = *reinterpret_cast<const T*>(args.bits);
}

}  // namespace

FH_KERNEL(move_1, THREADS, 4, Move, move<unsigned char>)
FH_KERNEL(move_4, THREADS, 4, Move, move<u32>)
FH_KERNEL(move_8, THREADS, 4, Move, move<u64>)
FH_KERNEL(move_16, THREADS, 4, Move, move<ulonglong2>)

FH_KERNEL(fill_1, THREADS, 4, Fill, fill<unsigned char>)
FH_KERNEL(fill_4, THREADS, 4, Fill, fill<u32>)
FH_KERNEL(fill_8, THREADS, 4, Fill, fill<u64>)
FH_KERNEL(fill_16, THREADS, 4, Fill, fill<ulonglong2>)

// Elements moved between places of any strides, by their size alone.
//
// Grid: (elements); a thread moves one.

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

}  // namespace

FH_KERNEL(move_1, THREADS, 4, Move, move<unsigned char>)
FH_KERNEL(move_4, THREADS, 4, Move, move<u32>)
FH_KERNEL(move_8, THREADS, 4, Move, move<u64>)
FH_KERNEL(move_16, THREADS, 4, Move, move<ulonglong2>)

// Matrix products of clear tensors.
//
// A result sums its products one after another where there are many results (tiles), and in
// THREADS interleaved parts, added in halves, where there are few (dots). Integers wrap; floats are
// within k eps sum |a||b| of the exact sum of k products.

#include "tensor.cuh"

namespace {

constexpr u32 TILE = 16;
static_assert(TILE * TILE == THREADS, "a thread for each result of a tile");

struct Matmul {
    const void* left;
    const void* right;
    void* target;  // row-major matrices
    i64 left_row;
    i64 left_column;
    i64 right_row;
    i64 right_column;
    u32 rows;
    u32 inner;
    u32 columns;
    u32 first;  // the launch's first product
    Strided<3> stack;  // places of each product's matrices
};
static_assert(sizeof(Matmul) == 360, "src/kernels/tensor.rs has the same layout");

// Truth values: whether any pair holds.
template <class T>
__device__ __forceinline__ T product_added(T sum, T a, T b) {
    return plus(sum, times(a, b));
}
__device__ __forceinline__ float product_added(float sum, float a, float b) { return fused(a, b, sum); }
__device__ __forceinline__ double product_added(double sum, double a, double b) {
    return fused(a, b, sum);
}
template <class R>
__device__ __forceinline__ Complex<R> product_added(Complex<R> sum, Complex<R> a, Complex<R> b) {
    return {fused(-a.im, b.im, fused(a.re, b.re, sum.re)), fused(a.im, b.re, fused(a.re, b.im, sum.im))};
}

// Grid: (tiles of columns, tiles of rows, products).
template <class T>
__device__ __forceinline__ void tiles(const Matmul& args) {
    FH_SHARED(memory);
    T* left_tile = reinterpret_cast<T*>(memory);
    T* right_tile = left_tile + TILE * TILE;
    i64 at[3];
    places_of(args.stack, args.first + blockIdx.z, at);
    const T* left = static_cast<const T*>(args.left) + at[0];
    const T* right = static_cast<const T*>(args.right) + at[1];
    T* target = static_cast<T*>(args.target) + at[2];
    const u32 x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    const u32 row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    T sum = {};
    for (u32 start = 0; start < args.inner; start += TILE) {
        left_tile[y * TILE + x] = row < args.rows && start + x < args.inner
                                      ? left[row * args.left_row + (start + x) * args.left_column]
                                      : T{};
        right_tile[y * TILE + x] = column < args.columns && start + y < args.inner
                                       ? right[(start + y) * args.right_row + column * args.right_column]
                                       : T{};
        __syncthreads();
        // Beyond the inner length nothing is added: zeros would make NaN of infinities.
        const u32 length = args.inner - start < TILE ? args.inner - start : TILE;
        for (u32 k = 0; k < length; ++k)
            sum = product_added(sum, left_tile[y * TILE + k], right_tile[k * TILE + x]);
        __syncthreads();
    }
    if (row < args.rows && column < args.columns) target[(u64)row * args.columns + column] = sum;
}

// Grid: (results of a product, 1, products).
template <class T>
__device__ __forceinline__ void dots(const Matmul& args) {
    FH_SHARED(memory);
    T* sums = reinterpret_cast<T*>(memory);
    i64 at[3];
    places_of(args.stack, args.first + blockIdx.z, at);
    const u32 row = blockIdx.x / args.columns, column = blockIdx.x % args.columns;
    const T* left = static_cast<const T*>(args.left) + at[0] + row * args.left_row;
    const T* right = static_cast<const T*>(args.right) + at[1] + column * args.right_column;
    T sum = {};
    for (u32 k = threadIdx.x; k < args.inner; k += THREADS)
        sum = product_added(sum, left[k * args.left_column], right[k * args.right_row]);
    sums[threadIdx.x] = sum;
    for (u32 width = THREADS / 2; width != 0; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width) sums[threadIdx.x] = plus(sums[threadIdx.x], sums[threadIdx.x + width]);
    }
    if (threadIdx.x == 0) static_cast<T*>(args.target)[at[2] + blockIdx.x] = sums[0];
}

}  // namespace

#define MATMUL(NAME, T)                                     \
    FH_KERNEL(tiles_##NAME, THREADS, 4, Matmul, tiles<T>)    \
    FH_KERNEL(dots_##NAME, THREADS, 4, Matmul, dots<T>)
MATMUL(bool, bool)
MATMUL(i32, i32)
MATMUL(i64, i64)
MATMUL(f32, float)
MATMUL(f64, double)
MATMUL(c64, c64)
MATMUL(c128, c128)

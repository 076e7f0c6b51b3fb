// What the kernels of a key switch share: what is added to its result.
#ifndef FHELIUM_SWITCH_CUH
#define FHELIUM_SWITCH_CUH

#include "core.cuh"

// Keys and results that one launch serves.
constexpr int KEYS = 16;

// What is added to a key switch's result: two parts of a ciphertext, or of the tensor product of
// two, which then is computed here rather than stored. Results never lie where this does: the loads
// need not wait for stores.
struct Added {
    Operand a;
    Operand b;
    u32 parts;   // parts of `a` to add: 0, 1 or 2
    u32 tensor;  // not 0: the product of a and b
};

template <class Core>
__device__ __forceinline__ typename Core::T added_at(const Core& core, const Added& added,
                                                     u32 batch, u32 part, u64 at) {
    const u64* a = added.a.data + batch * added.a.batch_stride + at;
    if (added.tensor == 0) return core.load(__ldg(a + part * added.a.part_stride));
    const u64* b = added.b.data + batch * added.b.batch_stride + at;
    const auto a0 = core.load(__ldg(a)), b0 = core.load(__ldg(b));
    if (part == 0) return core.product(a0, b0);
    return core.add(core.product(a0, core.load(__ldg(b + added.b.part_stride))),
                    core.product(core.load(__ldg(a + added.a.part_stride)), b0));
}

#endif

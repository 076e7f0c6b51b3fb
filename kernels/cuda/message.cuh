// Checks of messages that only the device has seen: what the host refuses at once is reported here,
// and raised where the host waits next.
#ifndef FHELIUM_MESSAGE_CUH
#define FHELIUM_MESSAGE_CUH

#include "launch.cuh"

// One offence, of the first thread that found any since the host has looked.
struct Report {
    unsigned long long claimed;
    u64 index;  // into the message, flattened
    double re, im;
    double bound;
    double log2_scale;
    u64 level;
};
static_assert(sizeof(Report) == 56, "src/reports.rs has the same layout");

struct Check {
    Report* report;  // null where the host has checked the message
    double bound;    // |values| stay below; infinite where floats do not hold it
    double log2_scale;
    u32 level;
    u32 unused;
};
static_assert(sizeof(Check) == 32, "src/kernels/embed.rs has the same layout");

// Refuses a value that is not finite, or whose magnitude the bound does not hold: but for a rounding
// of the magnitude, which the margin of the bound makes harmless.
__device__ __forceinline__ void check_value(const Check& check, u64 index, double re, double im) {
    if (check.report == nullptr || fabs(re) + fabs(im) < check.bound) return;
    // NaN and infinities are below nothing.
    const double x = re / check.bound, y = im / check.bound;
    if (FH_FMA(x, x, FH_MUL(y, y)) < 1.0 + 0x1p-40) return;
    Report* report = check.report;
    if (atomicCAS(&report->claimed, 0ull, 1ull) != 0) return;
    report->index = index;
    report->re = re;
    report->im = im;
    report->bound = check.bound;
    report->log2_scale = check.log2_scale;
    report->level = check.level;
}

#endif

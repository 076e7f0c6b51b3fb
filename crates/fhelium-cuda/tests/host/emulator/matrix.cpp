// The matrix unit: what the lanes of a warp bring, each lane's products.

#include "device.h"
#include "matrix.cuh"

namespace {

struct Warp {
    double multipliers[2][32];
    double pieces[32];
};
Warp warps[32];

}  // namespace

void multiply_step(double (&high)[2], double (&low)[2], double m1, double m0, double piece) {
    Warp& warp = warps[threadIdx.x / 32];
    const unsigned lane = threadIdx.x % 32;
    warp.multipliers[0][lane] = m1;
    warp.multipliers[1][lane] = m0;
    warp.pieces[lane] = piece;
    __syncwarp();
    for (int half = 0; half < 2; ++half)
        for (int i = 0; i < 2; ++i)
            for (unsigned k = 0; k < 4; ++k) {
                const unsigned column = 2 * (lane % 4) + i;
                double& sum = half == 0 ? high[i] : low[i];
                sum = fma(warp.multipliers[half][lane / 4 * 4 + k], warp.pieces[column * 4 + k], sum);
            }
    __syncwarp();
}

"""A product of ciphertexts, relinearized and rescaled: fhelium beside SEAL in the same run.

SEAL is reached through TenSEAL, whose vector product is SEAL's multiply, relinearize and rescale.
Ours is timed eager and compiled, on one thread; calls alternate with the peer's, so that both meet
the same machine. Install the peer in an environment that has fhelium, then run:

    python -m pip install tenseal
    python benches/peers.py [--repeats 15] [--threads 1]

Prints medians in milliseconds, the ratio, the largest error of each, and what ran.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import tenseal

import fhelium as fh

# log N, depth, bits of the scale, bits of SEAL's first and special prime.
SIZES = [(13, 3, 38, 50), (14, 7, 40, 60), (15, 15, 40, 60)]


def milliseconds(function: Callable[[], object]) -> tuple[float, object]:
    begin = time.perf_counter()
    result = function()
    return (time.perf_counter() - begin) * 1e3, result


def compare(
    log_n: int, depth: int, scale_bits: int, end_bits: int, repeats: int, threads: int
) -> None:
    values = np.random.default_rng(1).uniform(-1, 1, (2, 1 << (log_n - 1)))
    expected = values[0] * values[1]

    context = tenseal.context(
        tenseal.SCHEME_TYPE.CKKS,
        1 << log_n,
        coeff_mod_bit_sizes=[end_bits, *[scale_bits] * depth, end_bits],
    )
    context.global_scale = 2.0**scale_bits
    a, b = (tenseal.ckks_vector(context, row) for row in values)

    engine = fh.Engine(
        fh.Parameters(depth=depth, scale_bits=scale_bits, log_n=log_n), threads=threads
    )
    keys = engine.keygen()
    engine.use(keys.evaluation())
    x, y = (engine.encrypt(row, keys.public) for row in values)

    def eager() -> fh.Ciphertext:
        return (x * y).relinearize().rescale()

    @fh.jit
    def product(x: fh.Ciphertext, y: fh.Ciphertext) -> fh.Ciphertext:
        return (x * y).relinearize().rescale()

    contenders = {"SEAL": lambda: a * b, "eager": eager, "compiled": lambda: product(x, y)}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    results: dict[str, object] = {}
    for turn in range(repeats + 2):
        for name, function in contenders.items():
            elapsed, results[name] = milliseconds(function)
            if turn >= 2:
                times[name].append(elapsed)

    errors = {
        "SEAL": np.abs(np.array(results["SEAL"].decrypt()) - expected).max(),
        "eager": np.abs(engine.decrypt(results["eager"], keys.secret) - expected).max(),
        "compiled": np.abs(engine.decrypt(results["compiled"], keys.secret) - expected).max(),
    }
    peer = statistics.median(times["SEAL"])
    for name, taken in times.items():
        median = statistics.median(taken)
        print(
            f"N = 2^{log_n}, depth {depth:2}  {name:8}  {median:9.2f} ms  "
            f"{peer / median:5.1f}x  error {errors[name]:.1e}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    print(f"fhelium {fh.__version__}, {fh.build_info()}, TenSEAL {tenseal.__version__}")
    for size in SIZES:
        compare(*size, arguments.repeats, arguments.threads)


if __name__ == "__main__":
    main()

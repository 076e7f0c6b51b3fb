"""How near a specialization's predicted time comes to its measured time.

    python benches/predictions.py [--runs 15] [--threads 1]

For each function it prints the prediction, the fastest run, and their ratio: predictions are
meant to be within a factor of 2. Run it on an idle machine, with a release build.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fhelium as fh

ROOT = Path(__file__).resolve().parents[1]
FACTOR = 2.0

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + x,
    "multiply by an array": lambda x: x * WEIGHTS,
    "product": lambda x: (x * x).relinearize().rescale(),
    "a rotation": lambda x: x.rotate(1),
    "8 rotations": lambda x: [x.rotate(step) for step in range(1, 9)],
    "conjugate": lambda x: x.conjugate(),
}
WEIGHTS: Any = None


def show(name: str, variant: fh.compile.Specialization) -> float:
    predicted = 1e3 * variant.cost["predicted_seconds"]
    fastest = 1e3 * variant.cost["fastest_seconds"]
    ratio = predicted / fastest
    verdict = "" if 1 / FACTOR <= ratio <= FACTOR else f"  not within a factor of {FACTOR:g}"
    print(f"{name:42} {predicted:9.3f} ms {fastest:9.3f} ms {ratio:6.2f}{verdict}", flush=True)
    return ratio


def operations(log_n: int, depth: int, scale_bits: int, threads: int, runs: int) -> list[float]:
    global WEIGHTS
    engine = fh.Engine(
        fh.Parameters(depth=depth, scale_bits=scale_bits, log_n=log_n), threads=threads
    )
    keys = engine.keygen(rotations=range(1, 9), conjugation=True)
    engine.use(keys.evaluation())
    values = np.random.default_rng(1).uniform(-1, 1, engine.slots)
    values.setflags(write=False)
    WEIGHTS = values
    x = engine.encrypt(values, keys.public)
    ratios = []
    for name, function in FUNCTIONS.items():
        compiled = fh.jit(function)
        for _ in range(runs):
            compiled(x)
        ratios.append(show(f"N = 2^{log_n}, depth {depth:2}, {name}", compiled.specializations[0]))
    return ratios


def network(threads: int, runs: int) -> float:
    sys.path.insert(0, str(ROOT / "examples"))
    import digits

    engine = fh.Engine(
        fh.Parameters(depth=digits.DEPTH, scale_bits=digits.SCALE_BITS), threads=threads
    )
    keys = engine.keygen(rotations=digits.rotation_steps(engine.slots))
    engine.use(keys.evaluation())
    data = digits.Digits.load()
    score = digits.make_score(data, engine.slots)
    images = engine.encrypt(digits.pack_images(data.images, engine.slots), keys.public)
    for _ in range(runs):
        score(images)
    return show("digits network", score.specializations[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print(f"{'':42} {'predicted':>12} {'fastest':>12} {'ratio':>6}")
    ratios = []
    for size in ((13, 3, 38), (14, 7, 40), (15, 15, 40)):
        ratios += operations(*size, options.threads, options.runs)
    ratios.append(network(options.threads, options.runs))
    print(f"ratios from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()

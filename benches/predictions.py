"""How near a specialization's predicted time comes to its measured time.

    python benches/predictions.py [--runs 15] [--threads 1] [--device cuda]

For each function it prints the prediction, the fastest run, and their ratio: predictions are
meant to be within a factor of 2. On a GPU a run is one of several calls that are waited for
together. Run it on an idle machine, with a release build.
"""

from __future__ import annotations

import argparse
import sys
import time
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


# Calls on a GPU until it is known how they are best replayed, and calls that are timed together.
WARMING = 30
TOGETHER = 20
SIZES = {
    "cpu": ((13, 3, 38), (14, 7, 40), (15, 15, 40)),
    "cuda": ((13, 3, 38), (14, 7, 40), (15, 15, 40), (16, 25, 40)),
}


def fastest_seconds(engine: fh.Engine, compiled: Any, x: Any, runs: int) -> float:
    if engine.device == "cpu":
        for _ in range(runs):
            compiled(x)
        seconds: float = compiled.specializations[0].cost["fastest_seconds"]
        return seconds
    # A call returns as soon as its work is in the queue.
    for _ in range(WARMING):
        compiled(x)
    fastest = float("inf")
    for _ in range(runs):
        engine.synchronize()
        begin = time.perf_counter()
        for _ in range(TOGETHER):
            compiled(x)
        engine.synchronize()
        fastest = min(fastest, (time.perf_counter() - begin) / TOGETHER)
    return fastest


def show(name: str, engine: fh.Engine, compiled: Any, x: Any, runs: int) -> float:
    fastest = 1e3 * fastest_seconds(engine, compiled, x, runs)
    predicted = 1e3 * compiled.specializations[0].cost["predicted_seconds"]
    ratio = predicted / fastest
    verdict = "" if 1 / FACTOR <= ratio <= FACTOR else f"  not within a factor of {FACTOR:g}"
    print(f"{name:42} {predicted:9.3f} ms {fastest:9.3f} ms {ratio:6.2f}{verdict}", flush=True)
    return ratio


def make_engine(options: argparse.Namespace, rotations: Any, **parameters: Any) -> Any:
    """An engine with its keys in use, and its public key."""
    engine = fh.Engine(fh.Parameters(**parameters), threads=options.threads, device=options.device)
    keys = engine.keygen(rotations=rotations(engine.slots), conjugation=True)
    engine.use(keys.evaluation())
    return engine, keys.public


def operations(options: argparse.Namespace, log_n: int, depth: int, scale_bits: int) -> list[float]:
    global WEIGHTS
    engine, public = make_engine(
        options, lambda slots: range(1, 9), depth=depth, scale_bits=scale_bits, log_n=log_n
    )
    values = np.random.default_rng(1).uniform(-1, 1, engine.slots)
    values.setflags(write=False)
    WEIGHTS = values
    x = engine.encrypt(values, public)
    return [
        show(f"N = 2^{log_n}, depth {depth:2}, {name}", engine, fh.jit(function), x, options.runs)
        for name, function in FUNCTIONS.items()
    ]


def network(options: argparse.Namespace) -> float:
    sys.path.insert(0, str(ROOT / "examples"))
    import digits

    engine, public = make_engine(
        options, digits.rotation_steps, depth=digits.DEPTH, scale_bits=digits.SCALE_BITS
    )
    data = digits.Digits.load()
    score = digits.make_score(data, engine.slots)
    images = engine.encrypt(digits.pack_images(data.images, engine.slots), public)
    return show("digits network", engine, score, images, options.runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=SIZES, default="cpu")
    options = parser.parse_args()
    print(f"{'':42} {'predicted':>12} {'fastest':>12} {'ratio':>6}")
    ratios = []
    for size in SIZES[options.device]:
        ratios += operations(options, *size)
    ratios.append(network(options))
    print(f"ratios from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()

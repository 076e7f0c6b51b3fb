"""What fhelium costs beside its kernels: every overhead with its target.

    python benches/overhead.py [--rounds 9] [--wheel dist/fhelium-....whl]

Each round of a row is a new process. It prints medians; run it on an idle machine, with the
package installed from a release build. The wheel is the newest in dist/ or target/wheels/ unless
one is named; `maturin build --release` makes it.

A hit is a call with four ciphertexts of a function that returns one of them, so that no kernel
runs: binding, signature, look-up, the empty tape and the result are all that is timed. Capture,
passes and link are of the digits network (64-32-10), once with nothing in the cache directory and
once in a new process that finds the compiled Program there. Peak bytes are those of the same
network: what the manifest states before a run, beside what the engine's memory rose by.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


# --- what runs in a process of its own -------------------------------------------------------


def digits_network() -> tuple[Any, Any, Any]:
    """The engine, the compiled network and its encrypted images."""
    import fhelium as fh

    sys.path.insert(0, str(ROOT / "examples"))
    import digits

    engine = fh.Engine(fh.Parameters(depth=digits.DEPTH, scale_bits=digits.SCALE_BITS))
    keys = engine.keygen(rotations=digits.rotation_steps(engine.slots))
    engine.use(keys.evaluation())
    data = digits.Digits.load()
    score = digits.make_score(data, engine.slots)
    images = digits.pack_images(data.images, engine.slots)
    return engine, score, engine.encrypt(images, keys.public)


def import_time() -> dict[str, float]:
    """Milliseconds of `import fhelium`, numpy being there."""
    import numpy  # noqa: F401

    begin = time.perf_counter()
    import fhelium  # noqa: F401

    return {"import": 1e3 * (time.perf_counter() - begin)}


def hit() -> dict[str, float]:
    """Microseconds of a call that finds its specialization and runs no kernel."""
    import fhelium as fh

    engine = fh.Engine(
        fh.Parameters(depth=1, scale_bits=30, log_n=10, allow_insecure=True), threads=1
    )
    keys = engine.keygen()
    a, b, c, d = (engine.encrypt(0.5, keys.public) for _ in range(4))

    @fh.jit
    def first(a: Any, b: Any, c: Any, d: Any) -> Any:
        return a

    first(a, b, c, d)
    calls = 20_000
    best = float("inf")
    for _ in range(5):
        # Nothing waits here, so processor time is the time on an idle machine.
        begin = time.process_time()
        for _ in range(calls):
            first(a, b, c, d)
        best = min(best, time.process_time() - begin)
    return {"hit": 1e6 * best / calls}


def preparation() -> dict[str, float]:
    """Milliseconds of capture, passes and link, and whether the cache directory had it."""
    _, score, images = digits_network()
    variant = score.prepare(images)
    seconds = variant.cost["preparation_seconds"]
    parts = {name: 1e3 * seconds[name] for name in ("capture", "passes", "link")}
    return {"from_cache": variant.from_cache, "together": sum(parts.values()), **parts}


def peak_bytes() -> dict[str, float]:
    """Bytes of intermediate values and results: stated before the run, and measured."""
    engine, score, images = digits_network()
    stated = score.prepare(images).manifest["bytes"]["peak"]
    # What is kept between calls is made by the first.
    score(images)
    engine._reset_memory_peak()
    before = engine.memory().used
    score(images)
    return {"stated": stated, "measured": engine.memory().peak - before}


def key_bytes() -> dict[str, float]:
    """Bytes of a stored rotation key, and of its two halves."""
    import fhelium as fh

    engine = fh.Engine(fh.Parameters(depth=7, scale_bits=40, log_n=14))
    key = engine.keygen(rotations=[1]).rotations[1]
    stored = fh.dumps(key)
    length = int.from_bytes(stored[:8], "little")
    header = json.loads(stored[8 : 8 + length])
    (half,) = (
        tensor["data_offsets"][1] - tensor["data_offsets"][0]
        for name, tensor in header.items()
        if name.endswith("residues")
    )
    return {"stored": len(stored), "halves": 2 * half}


MEASUREMENTS: dict[str, Callable[[], dict[str, float]]] = {
    function.__name__: function
    for function in (import_time, hit, preparation, peak_bytes, key_bytes)
}


# --- the table -------------------------------------------------------------------------------


def run(name: str, cache: str = "") -> dict[str, float]:
    """One measurement in a process of its own; an empty `cache` is none."""
    # Modules are compiled once, as an installed package's are.
    environment = {**os.environ, "FHELIUM_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, __file__, "--measure", name]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def medians(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def newest_wheel() -> Path | None:
    places = (ROOT / "dist", ROOT / "target" / "wheels")
    wheels = [wheel for place in places for wheel in place.glob("fhelium-*.whl")]
    return max(wheels, key=lambda wheel: wheel.stat().st_mtime, default=None)


def report(work: str, figure: float, unit: str, target: float, details: str = "") -> None:
    verdict = "met" if figure <= target else "MISSED"
    print(f"{work:46} {figure:9.2f} {unit:3} (target {target:g}, {verdict})  {details}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="processes for each row")
    parser.add_argument("--wheel", type=Path, default=newest_wheel())
    parser.add_argument("--measure", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(MEASUREMENTS[options.measure]()))
        return

    def rounds(name: str, cache: str = "") -> dict[str, float]:
        return medians([run(name, cache) for _ in range(options.rounds)])

    def of(parts: dict[str, float]) -> str:
        return ", ".join(f"{name} {parts[name]:.2f}" for name in ("capture", "passes", "link"))

    report("a hit with 4 arguments, without kernels", rounds("hit")["hit"], "us", 5)
    cold = rounds("preparation")
    assert not cold["from_cache"]
    report("capture, passes and link, digits network", cold["together"], "ms", 50, of(cold))
    with tempfile.TemporaryDirectory() as cache:
        run("preparation", cache)
        warm = rounds("preparation", cache)
        assert warm["from_cache"]
    report("the same from the cache directory", warm["together"], "ms", 10, of(warm))
    report("import fhelium, without numpy", rounds("import_time")["import"], "ms", 100)
    peak = run("peak_bytes")
    difference = 100 * abs(peak["measured"] / peak["stated"] - 1)
    details = f"stated {peak['stated']:,}, measured {peak['measured']:,}"
    report("peak bytes, stated against measured", difference, "%", 5, details)
    key = run("key_bytes")
    details = f"{key['stored']:,} bytes"
    share = 100 * key["stored"] / key["halves"]
    report("a rotation key against two full halves", share, "%", 55, details)
    if options.wheel is None:
        print("the wheel: none in dist/ or target/wheels/; `maturin build --release` makes one")
    else:
        details = options.wheel.name
        report("the wheel", options.wheel.stat().st_size / 1e6, "MB", 30, details)


if __name__ == "__main__":
    main()

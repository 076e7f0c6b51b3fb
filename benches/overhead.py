"""What fhelium costs beside its kernels: every overhead with its target.

    python benches/overhead.py [--rounds 9] [--device cuda] [--wheel dist/fhelium-....whl]

Each round of a row is a new process. It prints medians; run it on an idle machine, with the
package installed from a release build. The wheel is the newest in dist/ or target/wheels/ unless
one is named; `maturin build --release` makes it.

A hit is a call with four ciphertexts of a function that returns one of them, so that no kernel
runs: binding, signature, look-up, the empty tape and the result are all that is timed. Capture,
passes and link are of the digits network (64-32-10), once with nothing in the cache directory and
once in a new process that finds the compiled Program there. Peak bytes are those of the same
network: what the manifest states before a run, beside what the engine's memory rose by.

With `--device cuda` these are of a GPU's engine, and a second table shows a compiled function
beside the eager calls that it is made of: one call that is waited for, several that are waited for
together, and what the first call takes beyond a later one.
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


def digits_network(device: str) -> tuple[Any, Any, Any]:
    """The engine, the compiled network and its encrypted images."""
    import fhelium as fh

    sys.path.insert(0, str(ROOT / "examples"))
    import digits

    parameters = fh.Parameters(depth=digits.DEPTH, scale_bits=digits.SCALE_BITS)
    engine = fh.Engine(parameters, device=device)
    keys = engine.keygen(rotations=digits.rotation_steps(engine.slots))
    engine.use(keys.evaluation())
    data = digits.Digits.load()
    score = digits.make_score(data, engine.slots)
    images = digits.pack_images(data.images, engine.slots)
    return engine, score, engine.encrypt(images, keys.public)


def import_time(_: str) -> dict[str, float]:
    """Milliseconds of `import fhelium`, numpy being there."""
    import numpy  # noqa: F401

    begin = time.perf_counter()
    import fhelium  # noqa: F401

    return {"import": 1e3 * (time.perf_counter() - begin)}


def hit(device: str) -> dict[str, float]:
    """Microseconds of a call that finds its specialization: one that runs no kernel, and one that
    adds two of its arguments."""
    import fhelium as fh

    engine = fh.Engine(
        fh.Parameters(depth=1, scale_bits=30, log_n=10, allow_insecure=True),
        threads=1,
        device=device,
    )
    keys = engine.keygen()
    arguments = [engine.encrypt(0.5, keys.public) for _ in range(4)]

    @fh.jit
    def first(a: Any, b: Any, c: Any, d: Any) -> Any:
        return a

    @fh.jit
    def add(a: Any, b: Any, c: Any, d: Any) -> Any:
        return a + b

    # Few enough that a GPU's queue never is full.
    rounds, calls = 500, 200

    def of(function: Any) -> float:
        best = float("inf")
        for _ in range(rounds):
            # Nothing waits here, so processor time is the time on an idle machine.
            begin = time.thread_time()
            for _ in range(calls):
                function(*arguments)
            best = min(best, time.thread_time() - begin)
            engine.synchronize()
        return 1e6 * best / calls

    return {"hit": of(first), "add": of(add)}


def preparation(device: str) -> dict[str, float]:
    """Milliseconds of capture, passes and link, and whether the cache directory had it."""
    _, score, images = digits_network(device)
    variant = score.prepare(images)
    seconds = variant.cost["preparation_seconds"]
    parts = {name: 1e3 * seconds[name] for name in ("capture", "passes", "link")}
    return {"from_cache": variant.from_cache, "together": sum(parts.values()), **parts}


def peak_bytes(device: str) -> dict[str, float]:
    """Bytes of intermediate values and results: stated before the run, and measured."""
    engine, score, images = digits_network(device)
    stated = score.prepare(images).manifest["bytes"]["peak"]
    # What is kept between calls is made by the first.
    score(images)
    engine._reset_memory_peak()
    before = engine.memory().used
    score(images)
    return {"stated": stated, "measured": engine.memory().peak - before}


def key_bytes(_: str) -> dict[str, float]:
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


def chain(x: Any) -> Any:
    """Products one after the other, as far as levels go."""
    for _ in range(min(5, x.level)):
        x = (x * x).relinearize().rescale()
    return x


SIZES = ((13, 3), (14, 7), (15, 15), (16, 25))
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + x,
    "product": lambda x: (x * x).relinearize().rescale(),
    "a rotation": lambda x: x.rotate(1),
    "8 rotations": lambda x: [x.rotate(step) for step in range(1, 9)],
    "5 products": chain,
}


def beside_eager(device: str) -> dict[str, float]:
    """Microseconds of calls, eager and compiled: alone, among others, and the first."""
    import fhelium as fh

    figures = {}
    for log_n, depth in SIZES:
        parameters = fh.Parameters(depth=depth, scale_bits=38 if log_n == 13 else 40, log_n=log_n)
        engine = fh.Engine(parameters, device=device)
        keys = engine.keygen(rotations=range(1, 9))
        engine.use(keys.evaluation())
        x = engine.encrypt(0.5, keys.public)

        def timed(function: Any, calls: int, x: Any = x, engine: fh.Engine = engine) -> float:
            engine.synchronize()
            begin = time.perf_counter()
            for _ in range(calls):
                function(x)
            engine.synchronize()
            return 1e6 * (time.perf_counter() - begin) / calls

        for name, function in FUNCTIONS.items():
            compiled = fh.jit(function)
            # Kernels are loaded by then.
            timed(function, 3)
            first = timed(compiled, 1)
            # Until it is known how it is best replayed.
            timed(compiled, 30)
            ways = (function, compiled)
            for kind, calls in (("alone", 1), ("among", 20)):
                # In turns, so that a change of the clock meets both.
                times = [[timed(way, calls) for way in ways] for _ in range(25)]
                for way, of_way in zip(
                    ("eager", "compiled"), zip(*times, strict=True), strict=True
                ):
                    figures[f"{log_n} {depth} {name}|{kind} {way}"] = statistics.median(of_way)
            alone = figures[f"{log_n} {depth} {name}|alone compiled"]
            figures[f"{log_n} {depth} {name}|first"] = first - alone
    return figures


MEASUREMENTS: dict[str, Callable[[str], dict[str, float]]] = {
    function.__name__: function
    for function in (import_time, hit, preparation, peak_bytes, key_bytes, beside_eager)
}


# --- the table -------------------------------------------------------------------------------


def run(name: str, device: str, cache: str = "") -> dict[str, float]:
    """One measurement in a process of its own; an empty `cache` is none."""
    # Modules are compiled once, as an installed package's are.
    environment = {**os.environ, "FHELIUM_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, __file__, "--measure", name, "--device", device]
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


def show_beside_eager(figures: dict[str, float]) -> None:
    """The table of compiled functions beside eager calls, in microseconds."""
    print(f"\n{'microseconds':28} {'alone':>9} {'eager':>9} {'ratio':>6}", end="")
    print(f" {'among 20':>9} {'eager':>9} {'ratio':>6} {'first: ms more':>15}")
    for row in dict.fromkeys(key.split("|")[0] for key in figures):
        log_n, depth, name = row.split(" ", 2)
        print(f"{f'2^{log_n}, {depth}: {name}':28}", end="")
        for kind in ("alone", "among"):
            compiled, eager = (figures[f"{row}|{kind} {way}"] for way in ("compiled", "eager"))
            print(f" {compiled:9.1f} {eager:9.1f} {compiled / eager:6.2f}", end="")
        print(f" {figures[f'{row}|first'] / 1e3:15.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="processes for each row")
    parser.add_argument("--wheel", type=Path, default=newest_wheel())
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1, ...")
    parser.add_argument("--measure", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(MEASUREMENTS[options.measure](options.device)))
        return

    def rounds(name: str, cache: str = "") -> dict[str, float]:
        return medians([run(name, options.device, cache) for _ in range(options.rounds)])

    def of(parts: dict[str, float]) -> str:
        return ", ".join(f"{name} {parts[name]:.2f}" for name in ("capture", "passes", "link"))

    on_gpu = options.device != "cpu"
    hit = rounds("hit")
    details = f"{hit['add']:.2f} us until an addition is {'queued' if on_gpu else 'done'}"
    target = 10 if on_gpu else 5
    report("a hit with 4 arguments, without kernels", hit["hit"], "us", target, details)
    cold = rounds("preparation")
    assert not cold["from_cache"]
    report("capture, passes and link, digits network", cold["together"], "ms", 50, of(cold))
    with tempfile.TemporaryDirectory() as cache:
        run("preparation", options.device, cache)
        warm = rounds("preparation", cache)
        assert warm["from_cache"]
    report("the same from the cache directory", warm["together"], "ms", 10, of(warm))
    report("import fhelium, without numpy", rounds("import_time")["import"], "ms", 100)
    peak = run("peak_bytes", options.device)
    difference = 100 * abs(peak["measured"] / peak["stated"] - 1)
    details = f"stated {peak['stated']:,}, measured {peak['measured']:,}"
    report("peak bytes, stated against measured", difference, "%", 5, details)
    key = run("key_bytes", options.device)
    details = f"{key['stored']:,} bytes"
    share = 100 * key["stored"] / key["halves"]
    report("a rotation key against two full halves", share, "%", 55, details)
    if options.wheel is None:
        print("the wheel: none in dist/ or target/wheels/; `maturin build --release` makes one")
    else:
        details = options.wheel.name
        report("the wheel", options.wheel.stat().st_size / 1e6, "MB", 30, details)
    if on_gpu:
        show_beside_eager(run("beside_eager", options.device))


if __name__ == "__main__":
    main()

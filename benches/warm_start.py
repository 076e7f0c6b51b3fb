"""What the first call of a compiled function costs, and what is left of it with a cache directory.

    python benches/warm_start.py [--rounds N]

Each round is a new process that captures the digits network (64-32-10), gets the passes' result
and links it, without running it. It prints medians of the wall times; run it on an idle machine,
with the package installed from a release build.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def measure() -> None:
    """Prepares the network once and prints the milliseconds of each part as JSON."""
    import fhelium as fh

    sys.path.insert(0, str(ROOT / "examples"))
    import digits

    engine = fh.Engine(fh.Parameters(depth=digits.DEPTH, scale_bits=digits.SCALE_BITS))
    keys = engine.keygen(rotations=digits.rotation_steps(engine.slots))
    engine.use(keys.evaluation())
    data = digits.Digits.load()
    score = digits.make_score(data, engine.slots)
    images = digits.pack_images(data.images, engine.slots)
    variant = score.prepare(engine.encrypt(images, keys.public))
    seconds = variant.cost["preparation_seconds"]
    parts = {name: 1e3 * seconds[name] for name in ("capture", "passes", "link")}
    print(json.dumps({"from_cache": variant.from_cache, **parts}))


def run(cache: str) -> dict[str, float]:
    """One round in a process of its own; an empty `cache` is none."""
    # Modules are compiled once, as an installed package's are.
    environment = {**os.environ, "FHELIUM_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, __file__, "--measure"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="processes for each row")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure()
        return
    print(f"{'milliseconds':24} {'capture':>9} {'passes':>9} {'link':>9} {'together':>9}")
    with tempfile.TemporaryDirectory() as cache:
        run(cache)
        for title, directory in (("no cache directory", ""), ("from a cache directory", cache)):
            rounds = [run(directory) for _ in range(options.rounds)]
            assert all(row["from_cache"] == bool(directory) for row in rounds)
            parts = [[row[name] for row in rounds] for name in ("capture", "passes", "link")]
            together = [sum(row) for row in zip(*parts, strict=True)]
            medians = [f"{statistics.median(column):9.2f}" for column in (*parts, together)]
            print(f"{title:24}", *medians)


if __name__ == "__main__":
    main()

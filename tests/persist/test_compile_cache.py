"""The cache directory: warm starts, edited sources, entries that are no good, many processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import PythonPass, cache_directory, default_pipeline
from fhelium.errors import CompileCacheWarning


@pytest.fixture(autouse=True)
def _directory_of_before() -> Iterator[None]:
    before = cache_directory()
    yield
    cache_directory(before or False)


def _program(bench: Any) -> Any:
    def score(x: Any) -> Any:
        y = (x * 0.5).rescale()
        return y.rotate(1) + y.rotate(2)

    return score


def test_nothing_is_kept_unless_asked(bench: Any, tmp_path: Path) -> None:
    cache_directory(False)
    assert cache_directory() is None
    _, x = bench.fresh()
    compiled = fh.jit(_program(bench))
    compiled(x)
    assert (compiled.disk_hits, compiled.disk_misses) == (0, 0)
    cache_directory(tmp_path)
    off = fh.jit(_program(bench), cache_directory=False)
    off(x)
    assert (off.disk_hits, off.disk_misses) == (0, 0)
    assert os.listdir(tmp_path) == []


def test_a_second_function_starts_warm(bench: Any, tmp_path: Path) -> None:
    message, x = bench.fresh()
    assert cache_directory(tmp_path / "cache") == tmp_path / "cache"
    first = fh.jit(_program(bench))
    expected = first(x)
    assert (first.disk_hits, first.disk_misses) == (0, 1)
    assert not first.specializations[0].from_cache
    second = fh.jit(_program(bench))
    assert np.array_equal(second(x)._residues(), expected._residues())
    assert (second.disk_hits, second.disk_misses) == (1, 0)
    variant = second.specializations[0]
    assert variant.from_cache
    assert variant.program == first.specializations[0].program
    assert "read from the compile cache" in variant.explain()
    assert [report.name for report in variant.compilation.reports] == default_pipeline().names
    rotated = np.roll(message, -1) + np.roll(message, -2)
    assert np.abs(bench.decrypt(expected) - rotated / 2).max() < 1e-6
    # Only its owner reads and writes there.
    if os.name == "posix":
        assert (tmp_path / "cache").stat().st_mode & 0o077 == 0


def test_a_directory_of_its_own(bench: Any, tmp_path: Path) -> None:
    _, x = bench.fresh()
    cache_directory(False)
    for hits in (0, 1):
        compiled = fh.jit(_program(bench), cache_directory=tmp_path)
        compiled(x)
        assert compiled.disk_hits == hits
    for wrong in (True, 3, b"bytes"):
        with pytest.raises(TypeError, match="cache_directory"):
            fh.jit(_program(bench), cache_directory=wrong)


def test_live_arrays_are_no_part_of_an_entry(bench: Any, tmp_path: Path) -> None:
    message, x = bench.fresh()
    for factor in (1.0, 2.0):
        weights = np.full(bench.slots, factor)
        compiled = fh.jit(lambda x, weights=weights: x * weights, cache_directory=tmp_path)
        captured = fh.jit(lambda x: x * weights, cache_directory=tmp_path)  # noqa: B023
        for result in (compiled(x, weights), captured(x)):
            assert np.abs(bench.decrypt(result) - factor * message).max() < 1e-6
    assert captured.disk_hits == 1


def test_a_python_pass_is_kept_only_with_a_key(bench: Any, tmp_path: Path) -> None:
    _, x = bench.fresh()
    runs = []

    def look(compilation: Any) -> None:
        runs.append(len(compilation.program))

    def counts(key: str | None) -> tuple[int, int]:
        pipeline = default_pipeline().then(PythonPass("look", look, cache_key=key))
        assert (pipeline.cache_key is None) == (key is None)
        compiled = fh.jit(_program(bench), pipeline=pipeline, cache_directory=tmp_path)
        compiled(x)
        return compiled.disk_hits, compiled.disk_misses

    assert counts(None) == (0, 0)
    assert counts(None) == (0, 0)
    assert len(runs) == 2
    assert counts("look 1") == (0, 1)
    assert counts("look 1") == (1, 0)
    assert counts("look 2") == (0, 1)
    assert len(runs) == 4
    assert os.listdir(tmp_path)


def test_bad_entries_are_warned_of_and_written_anew(bench: Any, tmp_path: Path) -> None:
    message, x = bench.fresh()
    fh.jit(_program(bench), cache_directory=tmp_path)(x)
    [entry] = tmp_path.iterdir()
    good = entry.read_bytes()
    for bad in (b"", good[:100], good[:-7], good[::-1], fh.dumps(bench.engine.parameters)):
        entry.write_bytes(bad)
        compiled = fh.jit(_program(bench), cache_directory=tmp_path)
        with pytest.warns(CompileCacheWarning, match="written anew") as caught:
            result = compiled(x)
        assert caught[0].filename == __file__
        assert entry.name in str(caught[0].message)
        assert (compiled.disk_hits, compiled.disk_misses) == (0, 1)
        rotated = np.roll(message, -1) + np.roll(message, -2)
        assert np.abs(bench.decrypt(result) - rotated / 2).max() < 1e-6
        assert entry.read_bytes() != bad
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = fh.jit(_program(bench), cache_directory=tmp_path)
            again(x)
        assert again.disk_hits == 1


def test_a_directory_that_cannot_be_used_is_a_warning(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    _, x = bench.fresh()
    compiled = fh.jit(_program(bench), cache_directory=tmp_path / "file" / "below")
    with pytest.warns(CompileCacheWarning, match="cannot be"):
        compiled(x)
    compiled(x)


# --- other processes -----------------------------------------------------------------------------

_PRELUDE = """
import sys
import numpy as np
import fhelium as fh

engine = fh.Engine(fh.Parameters(depth=3, scale_bits=40, log_n=10, allow_insecure=True))
keys = engine.keygen(rotations=[1, 2])
engine.use(keys.evaluation())
x = engine.encrypt([0.5, 0.25], keys.public)


def shown(value):
    numbers = engine.decrypt(value, keys.secret)[:2]
    return " ".join(f"{round(number, 4) + 0.0:.2f}" for number in numbers)

"""


def _script(folder: Path, body: str) -> Path:
    path = folder / "script.py"
    path.write_text(_PRELUDE + textwrap.dedent(body))
    return path


def _environment(cache: Path) -> dict[str, str]:
    package = str(Path(fh.__file__).parents[1])
    return {**os.environ, "FHELIUM_CACHE_DIR": str(cache), "PYTHONPATH": package}


def _run(script: Path, cache: Path, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), *arguments],
        env=_environment(cache),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_an_edited_constant_takes_effect(tmp_path: Path) -> None:
    """triton 7322: the old value of an edited constant until the cache folder was deleted."""
    body = """
        K = 2.0

        @fh.jit
        def f(x):
            return x * K

        print(shown(f(x)), f.disk_hits, f.disk_misses)
        K = 5.0
        print(shown(f(x)))
        f.clear()
        print(shown(f(x)))
    """
    cache = tmp_path / "cache"
    script = _script(tmp_path, body)
    assert _run(script, cache) == ["1.00 0.50 0 1", "1.00 0.50", "2.50 1.25"]
    again = _run(script, cache)
    assert again[0] == "1.00 0.50 1 0"
    _script(tmp_path, body.replace("K = 2.0", "K = 3.0"))
    assert _run(script, cache)[0] == "1.50 0.75 0 1"


def test_an_edited_helper_takes_effect(tmp_path: Path) -> None:
    """triton 4051: after fixing a helper that is chosen by a string the old code still ran."""
    body = """
        def plus(x):
            return x + 1.0

        def minus(x):
            return x + 1.0

        HELPERS = {"add": plus, "sub": minus}

        @fh.jit
        def f(x, name):
            return HELPERS[name](x)

        for name in ("add", "sub"):
            print(shown(f(x, name)))
        print(len(f.specializations), f.disk_hits, f.disk_misses)
    """
    cache = tmp_path / "cache"
    script = _script(tmp_path, body)
    wrong = "1.50 1.25"
    # The two are the same Program until the second is mended.
    assert _run(script, cache) == [wrong, wrong, "2 1 1"]
    head, _, tail = body.partition("def minus(x):\n")
    mended = head + "def minus(x):\n" + tail.replace("x + 1.0", "x - 1.0")
    assert mended != body
    _script(tmp_path, mended)
    assert _run(script, cache) == [wrong, "-0.50 -0.75", "2 1 1"]


def test_moved_lines_hit_and_are_todays(tmp_path: Path) -> None:
    body = """
        @fh.jit
        def f(x):
            return x.rotate(1)

        f(x)
        (line,) = f.specializations[0].keys[0][1]
        print(f.disk_hits, line[1])
    """
    cache = tmp_path / "cache"
    script = _script(tmp_path, body)
    [first] = _run(script, cache)
    _script(tmp_path, "\n# A comment\n\n" + textwrap.dedent(body))
    [second] = _run(script, cache)
    assert first.split()[0] == "0"
    assert second.split()[0] == "1"
    assert int(second.split()[1]) == int(first.split()[1]) + 3


def test_dumps_are_made_whatever_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
        f = fh.jit(lambda x: x.rotate(1))
        f(x)
        print(f.disk_hits, f.disk_misses)
    """
    cache = tmp_path / "cache"
    script = _script(tmp_path, body)
    assert _run(script, cache) == ["0 1"]
    monkeypatch.setenv("FHELIUM_DUMP", str(tmp_path / "dumps"))
    assert _run(script, cache) == ["0 0"]
    assert list((tmp_path / "dumps").glob("*/*dead-values.fhe"))


def test_eight_processes_share_a_directory(tmp_path: Path) -> None:
    """numba 10128: processes that start at once crashed, or read half-written files."""
    body = """
        @fh.jit
        def f(x, k):
            y = (x * k).rescale()
            return y.rotate(1) + y.rotate(2)

        for k in (0.5, 1.5, 2.5, 3.5):
            print(shown(f(x, k)))
        print(f.disk_hits + f.disk_misses)
    """
    cache = tmp_path / "cache"
    script = _script(tmp_path, body)
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", str(script)],
            env=_environment(cache),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    outputs = []
    for process in processes:
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        outputs.append(output.splitlines())
    assert all(output == outputs[0] for output in outputs)
    assert outputs[0][-1] == "4"
    entries = sorted(path.name for path in cache.iterdir())
    assert len(entries) == 4
    assert not any("tmp" in name for name in entries)
    hits = body.replace("f.disk_hits + f.disk_misses", "f.disk_hits")
    _script(tmp_path, hits)
    assert _run(script, cache)[-1] == "4"

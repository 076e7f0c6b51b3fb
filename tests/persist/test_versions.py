"""Files of one Python version under another."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fhelium as fh

_LOAD = """
import sys
sys.path[:0] = sys.argv[2:4]
import fhelium as fh
from pathlib import Path
folder = Path(sys.argv[1])
compilation = fh.load(folder / "compilation", fh.compile.Compilation)
program = fh.load(folder / "program", fh.compile.Program)
assert compilation.program.input_names == program.input_names
x = fh.load(folder / "x", fh.Ciphertext)
result = fh.jit(compilation)(x)
fh.save(result, folder / "result")
fh.save(compilation, folder / "compilation-back")
"""


def _other_python() -> str | None:
    """An interpreter of another minor version that has numpy."""
    for minor in range(11, 15):
        name = f"python3.{minor}"
        path = shutil.which(name)
        if path is None or sys.version_info[:2] == (3, minor):
            continue
        probe = [path, "-c", "import numpy"]
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return path
    return None


def test_programs_run_under_another_python(bench: Any, tmp_path: Path) -> None:
    """concrete-ml 832: a circuit of one minor version was refused by another."""
    python = _other_python()
    if python is None:
        pytest.skip("no other Python with numpy here")
    weights = np.linspace(-1, 1, bench.slots)
    message, x = bench.fresh()
    compiled = fh.jit(lambda x: (x * weights).rescale() + 1)
    expected = compiled(x)
    specialization = compiled.specializations[0]
    fh.save(specialization.source, tmp_path / "compilation")
    fh.save(specialization.program, tmp_path / "program")
    fh.save(x, tmp_path / "x")
    package = str(Path(fh.__file__).parents[1])
    command = [python, "-c", _LOAD, str(tmp_path), package]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    result = fh.load(tmp_path / "result", fh.Ciphertext, engine=bench.engine)
    assert np.array_equal(result._residues(), expected._residues())
    assert np.abs(bench.decrypt(result) - (message * weights + 1)).max() < 1e-5
    back = fh.load(tmp_path / "compilation-back", fh.compile.Compilation)
    assert back.program == specialization.source.program


def test_files_hold_no_code(bench: Any) -> None:
    """What is written is JSON, Program text and numbers, none of it an interpreter's."""
    compiled = fh.jit(lambda x: x + 1)
    _, x = bench.fresh()
    compiled(x)
    for value in (compiled.specializations[0].compilation, compiled.specializations[0].program, x):
        data = fh.dumps(value)
        length = int.from_bytes(data[:8], "little")
        header = data[8 : 8 + length].decode()
        assert header.startswith('{"__metadata__":{"fhelium":')
        assert "python" not in header.lower().replace("test_", "")

"""Reports about installed packages that could not be imported, restated for fhelium."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fhelium import _native

WORK = """
import fhelium as fh
engine = fh.Engine(fh.Parameters(depth=1, scale_bits=40, log_n=10, allow_insecure=True))
keys = engine.keygen()
print(abs(engine.decrypt(engine.encrypt(0.5, keys.public), keys.secret)[0] - 0.5) < 1e-6)
"""


def test_the_package_works_without_an_environment(tmp_path: Path) -> None:
    """OpenFHE-python 249: import failed, libOPENFHEpke.so.1 not found."""
    result = subprocess.run(
        [sys.executable, "-c", WORK],
        env={},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stdout.split() == ["True"], result.stderr


@pytest.mark.skipif(shutil.which("ldd") is None, reason="needs ldd")
def test_the_module_needs_system_libraries_only() -> None:
    """OpenFHE-python 249: nothing unresolved, nothing of CUDA, no C++ library."""
    result = subprocess.run(
        ["ldd", _native.__file__], env={}, capture_output=True, text=True, timeout=60, check=True
    )
    assert "not found" not in result.stdout
    libraries = {line.split()[0].split("/")[-1] for line in result.stdout.splitlines()}
    for library in libraries:
        assert library.split(".")[0] in {
            "libc",
            "libm",
            "libgcc_s",
            "libpthread",
            "libdl",
            "librt",
            "linux-vdso",
            "linux-gate",
        } or library.startswith("ld-linux"), library


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_computing_on_the_cpu_opens_no_driver(tmp_path: Path) -> None:
    """A GPU is looked for when one is asked for, not at import and not for work on the CPU."""
    show = "\nprint([line for line in open('/proc/self/maps') if 'libcuda' in line])"
    result = subprocess.run(
        [sys.executable, "-c", WORK + show],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout.split() == ["True", "[]"]

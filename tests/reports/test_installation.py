"""Reports about installed packages that could not be imported, restated for fhelium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from fhelium import _native

ROOT = Path(__file__).resolve().parents[2]

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


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_a_source_distribution_holds_what_a_build_needs(tmp_path: Path) -> None:
    """The kernels are no crate's, so they have to be listed, and the lock file has to serve."""
    pytest.importorskip("maturin", reason="packs the source distribution")
    subprocess.run(
        [sys.executable, "-m", "maturin", "sdist", "--out", tmp_path],
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=True,
    )
    (packed,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / packed.name.removesuffix(".tar.gz")
    kernels = {path.name for path in (ROOT / "kernels" / "cuda").iterdir()}
    assert {path.name for path in (unpacked / "kernels" / "cuda").iterdir()} == kernels
    result = subprocess.run(
        ["cargo", "metadata", "--offline", "--format-version", "1"],
        cwd=unpacked,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr

"""Files that version 0.1.0 wrote, in schema 1: later versions read them, so they are never remade.

`x` encrypts 0.5, -0.25 and zeros under `keys`; `affine` multiplies by the captured [2, 3, 0, ...]
and adds the captured ciphertext `x`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fhelium as fh

FOLDER = Path(__file__).parent / "schema1"


def _message() -> np.ndarray:
    return np.array([0.5, -0.25] + [0.0] * 510)


def test_values_and_keys_of_schema_1_are_read() -> None:
    parameters = fh.load(FOLDER / "parameters.fhelium", fh.Parameters)
    assert (parameters.n, parameters.depth, float(parameters.scale)) == (1024, 1, 2.0**30)
    keys = fh.load(FOLDER / "keys.fhelium", fh.KeySet)
    assert keys.parameters == parameters
    assert list(keys.rotations) == [3]
    engine = fh.Engine(parameters)
    engine.use(keys.evaluation())
    x = fh.load(FOLDER / "x.fhelium", fh.Ciphertext, engine=engine)
    rotated = engine.decrypt((x * x).relinearize().rescale().rotate(3), keys.secret)
    assert np.abs(rotated - np.roll(_message() ** 2, -3)).max() < 1e-3
    plaintext = fh.load(FOLDER / "plaintext.fhelium", fh.Plaintext)
    assert np.abs(engine.decode(plaintext)[:2] - [1.0, -2.0]).max() < 1e-6


def test_programs_and_compilations_of_schema_1_are_read() -> None:
    keys = fh.load(FOLDER / "keys.fhelium", fh.KeySet)
    engine = fh.Engine(keys.parameters)
    x = fh.load(FOLDER / "x.fhelium", fh.Ciphertext, engine=engine)
    affine = fh.load(FOLDER / "affine.fhelium", fh.compile.Compilation, engine=engine)
    decrypted = engine.decrypt(fh.jit(affine)(x), keys.secret)
    factors = np.array([2.0, 3.0] + [0.0] * 510)
    assert np.abs(decrypted - _message() * (factors + 1)).max() < 1e-3
    program = fh.load(FOLDER / "program.fhelium", fh.compile.Program)
    assert program.input_names == ("x",)


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.stem)
def test_what_schema_1_is_read_as_is_what_is_written(path: Path) -> None:
    """But for the version of the writer, and the checksum that covers it."""
    written = fh.dumps(fh.load(path), allow_secret=True)
    assert fh.inspect(path)["schema"] == 1
    length = int.from_bytes(written[:8], "little")
    kept = path.read_bytes()
    assert written[8 + length :] == kept[8 + int.from_bytes(kept[:8], "little") :]

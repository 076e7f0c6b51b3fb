"""Saving and loading: what comes back, what a file tells, and what is never written."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.errors import DeviceError, KeyMismatch, SerializationError


def _roundtrip(value: Any, path: Path, **options: Any) -> Any:
    fh.save(value, path, **options)
    loaded = fh.load(path, type(value))
    assert type(loaded) is type(value)
    assert fh.dumps(loaded, allow_secret=True) == path.read_bytes()
    return loaded


def test_parameters_come_back_equal(tmp_path: Path) -> None:
    for place, parameters in enumerate(
        [
            fh.Preset.N14Depth7Scale40,
            fh.Parameters(depth=1, scale_bits=30, security=192),
            fh.Parameters(depth=3, scale_bits=40, log_n=10, allow_insecure=True),
        ]
    ):
        loaded = _roundtrip(parameters, tmp_path / f"{place}")
        assert loaded == parameters
        assert str(loaded) == str(parameters)


def test_values_come_back_to_the_bit(bench: Any, tmp_path: Path) -> None:
    _, x = bench.fresh(batch=(2, 3))
    values = [x, x * x, (x * x).rescale(), bench.engine.drop_levels(x, 4), -x]
    for place, value in enumerate(values):
        loaded = _roundtrip(value, tmp_path / f"{place}")
        for fact in ("level", "scale", "parts", "batch_shape", "secret_id", "parameters"):
            assert getattr(loaded, fact) == getattr(value, fact)
        assert np.array_equal(loaded._residues(), value._residues())
    plaintext = bench.engine.encode([0.5, -1.0], level=2, scale=2**35)
    loaded = _roundtrip(plaintext, tmp_path / "plaintext")
    assert np.array_equal(bench.engine.decode(loaded), bench.engine.decode(plaintext))


def test_keys_come_back_and_work(bench: Any, tmp_path: Path) -> None:
    message, x = bench.fresh()
    expected = bench.decrypt((x * x).relinearize().rotate(-3).conjugate())
    keys = _roundtrip(bench.keys, tmp_path / "keys", allow_secret=True)
    evaluation = _roundtrip(bench.keys.evaluation(), tmp_path / "evaluation")
    for rotations in (keys.rotations, evaluation.rotations):
        assert list(rotations) == list(bench.keys.rotations)
        assert -1 in rotations
        assert bench.slots - 1 in rotations
        assert 7 not in rotations
    engine = fh.Engine(evaluation.parameters)
    engine.use(evaluation)
    y = fh.load(_saved(x, tmp_path), fh.Ciphertext, engine=engine)
    result = (y * y).relinearize().rotate(-3).conjugate()
    assert np.array_equal(engine.decrypt(result, keys.secret), expected)
    public = _roundtrip(bench.keys.public, tmp_path / "public")
    secret = _roundtrip(bench.keys.secret, tmp_path / "secret", allow_secret=True)
    decrypted = engine.decrypt(engine.encrypt(message, public), secret)
    assert np.abs(decrypted - message).max() < 1e-6
    key = _roundtrip(bench.keys.rotations[2], tmp_path / "rotation")
    assert (key.kind, key.step) == ("rotation", 2)


def _saved(value: Any, folder: Path) -> Path:
    path = folder / "value"
    fh.save(value, path, overwrite=True)
    return path


def test_a_file_without_the_secret_says_so(bench: Any, tmp_path: Path) -> None:
    """TenSEAL 438: a changed default had left the secret out, and decryption found it missing."""
    keys, evaluation = tmp_path / "keys", tmp_path / "evaluation"
    fh.save(bench.keys, keys, allow_secret=True)
    fh.save(bench.keys.evaluation(), evaluation)
    seen = fh.inspect(keys)
    assert seen["kind"] == "key set"
    assert seen["holds_secret"] is True
    assert seen["keys"][:3] == ["secret", "public", "relinearization"]
    seen = fh.inspect(evaluation)
    assert seen["kind"] == "evaluation keys"
    assert seen["holds_secret"] is False
    assert "secret" not in seen["keys"]
    assert {"public", "relinearization", "conjugation", "rotation 2"} < set(seen["keys"])
    assert seen["parameters"] == bench.engine.parameters
    assert seen["secret_id"] == bench.keys.secret.secret_id
    _, x = bench.fresh()
    assert bench.engine.decrypt(x, fh.load(keys, fh.KeySet).secret).shape == (bench.slots,)
    with pytest.raises(SerializationError, match="holds evaluation keys, expected a key set"):
        fh.load(evaluation, fh.KeySet)
    with pytest.raises(TypeError, match=r"secret key is needed.*EvaluationKeys"):
        bench.engine.decrypt(x, fh.load(evaluation))
    with pytest.raises(SerializationError, match=r"allow_secret=True.*evaluation"):
        fh.save(bench.keys, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_no_public_file_holds_the_secret(bench: Any) -> None:
    """Neither its coefficients nor its residues, nor a part of them."""
    whole = fh.dumps(bench.keys.secret, allow_secret=True)
    coefficients = whole[-2 * bench.slots :]
    assert set(coefficients) == {0, 1, 255}
    # Whoever finds sixteen coefficients in a row has found the secret.
    pieces = [coefficients[start : start + 16] for start in range(0, 2 * bench.slots, 16)]
    assert all(piece in whole for piece in pieces)
    _, x = bench.fresh()
    public = [
        bench.keys.evaluation(),
        bench.keys.public,
        bench.keys.rotations[1],
        x,
        bench.engine.encode(1.0),
        bench.engine.parameters,
    ]
    for value in public:
        data = fh.dumps(value)
        assert not any(piece in data for piece in pieces)


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_secret_file_is_its_owners_alone(bench: Any, tmp_path: Path) -> None:
    for value in (bench.keys, bench.keys.secret):
        path = tmp_path / type(value).__name__
        fh.save(value, path, allow_secret=True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_is_replaced_only_where_asked(bench: Any, tmp_path: Path) -> None:
    path = tmp_path / "value"
    _, x = bench.fresh()
    fh.save(x, path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        fh.save(bench.keys.public, path)
    assert path.read_bytes() == before
    fh.save(bench.keys.public, path, overwrite=True)
    assert isinstance(fh.load(path), fh.PublicKey)
    assert os.listdir(tmp_path) == ["value"]
    with pytest.raises(FileNotFoundError, match="missing"):
        fh.load(tmp_path / "missing" / "file")
    with pytest.raises(FileNotFoundError, match="missing"):
        fh.save(x, tmp_path / "missing" / "file")
    assert fh.load(str(path), fh.PublicKey).secret_id == bench.keys.public.secret_id


def test_the_type_that_is_asked_for_is_held_to(bench: Any) -> None:
    _, x = bench.fresh()
    data = fh.dumps(x)
    assert type(fh.loads(data, fh.Ciphertext)) is fh.Ciphertext
    assert type(fh.loads(bytearray(data))) is fh.Ciphertext
    assert type(fh.loads(memoryview(data), object)) is fh.Ciphertext
    with pytest.raises(SerializationError, match="a ciphertext, expected a plaintext"):
        fh.loads(data, fh.Plaintext)
    for wrong in (dict, fh.Engine, "Ciphertext", 3):
        with pytest.raises(TypeError, match="files hold"):
            fh.loads(data, wrong)
    with pytest.raises(TypeError, match="bytes"):
        fh.loads("text")


def test_a_value_joins_only_an_engine_of_its_parameters(bench: Any) -> None:
    message, x = bench.fresh()
    data = fh.dumps(x)
    others = fh.Engine(fh.Parameters(depth=2, scale_bits=40, log_n=10, allow_insecure=True))
    with pytest.raises(KeyMismatch, match="a ciphertext, is of other parameters"):
        fh.loads(data, engine=others)
    with pytest.raises(KeyMismatch):
        fh.loads(fh.dumps(bench.keys.evaluation()), engine=others)
    with pytest.raises(KeyMismatch):
        fh.loads(data) + others.encrypt(1.0, others.keygen().public)
    # Several of one parameter set: the one that is named, else the last one that was made.
    mine = fh.Engine(bench.engine.parameters)
    assert fh.loads(data, engine=bench.engine)._engine == bench.engine
    with pytest.raises(TypeError, match="engine or device, not both"):
        fh.loads(data, engine=bench.engine, device="cpu")
    with pytest.raises(DeviceError, match='"tpu"'):
        fh.loads(data, device="tpu")
    assert fh.loads(data, device="cpu").device == "cpu"
    assert fh.loads(data)._engine == mine
    assert np.abs(mine.decrypt(fh.loads(data), bench.keys.secret) - message).max() < 1e-6


def test_a_value_without_an_engine_gets_one(bench: Any) -> None:
    parameters = fh.Parameters(depth=1, scale_bits=31, log_n=10, allow_insecure=True)
    engine = fh.Engine(parameters)
    keys = engine.keygen()
    data = fh.dumps(engine.encrypt([0.25, 0.5], keys.public))
    secret = fh.dumps(keys.secret, allow_secret=True)
    del engine, keys
    x = fh.loads(data, fh.Ciphertext)
    assert (x.level, x.device, x.parameters) == (1, "cpu", parameters)
    total = x + x
    decrypted = fh.Engine(parameters).decrypt(total, fh.loads(secret))
    assert np.abs(decrypted[:2] - [0.5, 1.0]).max() < 1e-4


def test_what_cannot_be_saved_is_refused_with_what_can(bench: Any, tmp_path: Path) -> None:
    compiled = fh.jit(lambda x: x + 1)
    _, x = bench.fresh()
    compiled(x)
    refused = [
        (compiled, r"CompiledCallable.*\.compilation"),
        (compiled.specializations[0], r"Specialization.*\.compilation"),
        (bench.engine, r"Engine.*parameters"),
        (bench.keys.rotations, r"RotationKeys.*evaluation\(\)"),
        (np.zeros(3), "ndarray.*Ciphertext"),
        (None, "NoneType"),
    ]
    for value, words in refused:
        with pytest.raises(TypeError, match=words):
            fh.save(value, tmp_path / "never")
    assert os.listdir(tmp_path) == []


def test_a_damaged_file_names_itself(bench: Any, tmp_path: Path) -> None:
    path = tmp_path / "damaged.fhelium"
    _, x = bench.fresh()
    whole = fh.dumps(x)
    for data in (b"", whole[:4], whole[:300], whole[:-1], whole + b"x", b"\x80\x04pickle" * 9):
        path.write_bytes(data)
        with pytest.raises(SerializationError, match=r"damaged\.fhelium"):
            fh.load(path)
        with pytest.raises(SerializationError, match=r"damaged\.fhelium"):
            fh.inspect(path)
    flipped = bytearray(whole)
    flipped[-5] ^= 4
    path.write_bytes(flipped)
    with pytest.raises(SerializationError, match="data checksum"):
        fh.load(path)
    newer = whole.replace(b'\\"schema\\":1', b'\\"schema\\":9')
    with pytest.raises(SerializationError, match=r"schema 9.*schema 1, which fhelium"):
        fh.loads(newer)
    with pytest.raises(SerializationError, match="a directory"):
        fh.load(tmp_path)

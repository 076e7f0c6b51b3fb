"""Keys: whose they are, what they allow, and what encryption leaves to chance."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.errors import KeyMismatch, MissingKey


def test_encryption_of_zero_differs_each_time(bench: Any) -> None:
    zeros = [bench.encrypt(0.0)._residues() for _ in range(4)]
    for place, left in enumerate(zeros):
        for right in zeros[place + 1 :]:
            assert (left == right).mean() < 0.01


def test_another_key_is_refused(bench: Any, other: Any) -> None:
    _, ciphertext = bench.fresh()
    with pytest.raises(KeyMismatch, match="secret"):
        other.decrypt(ciphertext)
    with pytest.raises(KeyMismatch):
        ciphertext.rotate(1, key=other.keys.rotations[1])
    with pytest.raises(KeyMismatch):
        ciphertext + other.encrypt(1.0)


def test_a_secret_encrypts_too(bench: Any) -> None:
    message = bench.message()
    ciphertext = bench.engine.encrypt(message, bench.keys.secret)
    bound = bench.noise.decode(bench.noise.encrypt(bench.noise.encode(1.0), secret=True))
    assert np.abs(bench.decrypt(ciphertext) - message).max() <= bound


def test_rotation_keys_are_a_mapping_modulo_the_slots(bench: Any) -> None:
    rotations = bench.keys.rotations
    assert isinstance(rotations, Mapping)
    assert list(rotations) == [1, 2, 3, 4, 8, bench.slots - 3, bench.slots - 1]
    assert -1 in rotations
    assert bench.slots - 1 in rotations
    assert bench.slots + 1 in rotations
    assert 7 not in rotations
    assert "1" not in rotations
    assert rotations[-3].step == bench.slots - 3
    with pytest.raises(MissingKey, match="step 7"):
        rotations[7]


def test_a_missing_key_is_named_with_those_there_are(bench: Any) -> None:
    _, ciphertext = bench.fresh()
    with pytest.raises(MissingKey, match=r"rotation 7.*\[1, 2, 3, 4, 8"):
        ciphertext.rotate(7)
    with pytest.raises(KeyError):
        ciphertext.rotate(7)


def test_explicit_keys_need_no_registration(bench: Any) -> None:
    engine = fh.Engine(bench.engine.parameters)
    keys = engine.keygen(rotations=[5], conjugation=True)
    message = bench.message()
    ciphertext = engine.encrypt(message, keys.public)
    with pytest.raises(MissingKey, match="no evaluation keys"):
        ciphertext.rotate(5)
    turned = ciphertext.rotate(5, key=keys.rotations[5])
    assert np.abs(engine.decrypt(turned, keys.secret) - np.roll(message, -5)).max() < 1e-5
    (again,) = engine.rotate_many(ciphertext, [5], key=keys.rotations)
    np.testing.assert_array_equal(again._residues(), turned._residues())
    product = engine.relinearize(ciphertext * ciphertext, key=keys.relinearization)
    assert product.parts == 2
    assert engine.conjugate(ciphertext, key=keys.conjugation).parts == 2


def test_evaluation_keys_hold_no_secret(bench: Any) -> None:
    evaluation = bench.keys.evaluation()
    assert not hasattr(evaluation, "secret")
    with pytest.raises(TypeError, match="evaluation"):
        bench.engine.use(bench.keys)
    with pytest.raises(TypeError, match="secret key"):
        bench.engine.decrypt(bench.encrypt(1.0), evaluation)


def test_key_bytes_are_known_before(bench: Any) -> None:
    predicted = bench.engine.predicted_key_bytes(rotations=[1, 2, 2, 0, -1], conjugation=True)
    keys = bench.engine.keygen(rotations=[1, 2, 2, 0, -1], conjugation=True)
    evaluation = [keys.relinearization, keys.conjugation, *keys.rotations.values()]
    made = sum(key.nbytes for key in evaluation)
    assert abs(predicted - made) <= made / 100


def test_a_test_seed_repeats_everything() -> None:
    def run() -> Any:
        parameters = fh.Parameters(depth=1, scale_bits=30, log_n=10, allow_insecure=True)
        engine = fh.Engine(parameters, seed=7)
        keys = engine.keygen()
        return engine.encrypt(0.5, keys.public)._residues()

    np.testing.assert_array_equal(run(), run())


def test_threads_share_an_engine(bench: Any) -> None:
    """SEAL-style races: one engine, many threads, no shared randomness and right results."""

    def work(seed: int) -> Any:
        message, ciphertext = bench.fresh(seed)
        product = (ciphertext * ciphertext).relinearize().rescale().rotate(1)
        error = np.abs(bench.decrypt(product) - np.roll(message**2, -1)).max()
        return error, ciphertext._residues()[1, 0, :8].tobytes()

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(64)))
    assert max(error for error, _ in results) < 1e-5
    assert len({part for _, part in results}) == 64

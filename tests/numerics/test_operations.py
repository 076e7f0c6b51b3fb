"""Every eager operation against numpy, within the bound that the parameters give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fhelium as fh

BATCHES = st.sampled_from([(), (1,), (3,), (2, 2)])
LEVELS = st.integers(0, 4)
SEEDS = st.integers(0, 2**32 - 1)


def within(bench: Any, ciphertext: fh.Ciphertext, exact: Any, estimate: fh.NoiseEstimate) -> None:
    """The decrypted message is `exact` to within the estimate, and level and scale agree."""
    assert ciphertext.level == estimate.level
    assert ciphertext.scale == estimate.scale
    found = bench.decrypt(ciphertext, real=False)
    assert found.shape == (*ciphertext.batch_shape, bench.slots)
    assert np.abs(found - exact).max() <= bench.noise.decode(estimate)


def fresh_at(bench: Any, seed: int, batch: tuple[int, ...], level: int) -> Any:
    message, ciphertext = bench.fresh(seed, batch, level=level)
    return message, ciphertext, bench.noise.encrypt(bench.noise.encode(1.0, level=level))


@given(seed=SEEDS, left=BATCHES, right=BATCHES, level=LEVELS)
def test_sums_and_differences(
    bench: Any, seed: int, left: tuple[int, ...], right: tuple[int, ...], level: int
) -> None:
    try:
        np.broadcast_shapes(left, right)
    except ValueError:
        right = left
    x, cx, ex = fresh_at(bench, seed, left, level)
    y, cy, ey = fresh_at(bench, seed + 1, right, level)
    plain = bench.noise.encode(1.0, level=level)
    within(bench, cx + cy, x + y, bench.noise.add(ex, ey))
    within(bench, cx - cy, x - y, bench.noise.add(ex, ey))
    within(bench, cx + y, x + y, bench.noise.add(ex, plain))
    within(bench, y - cx, y - x, bench.noise.add(ex, plain))
    within(bench, -cx, -x, ex)
    within(bench, bench.engine.encode(y, level=level) + cx, x + y, bench.noise.add(ex, plain))


@given(seed=SEEDS, batch=BATCHES, level=st.integers(1, 4))
def test_products(bench: Any, seed: int, batch: tuple[int, ...], level: int) -> None:
    x, cx, ex = fresh_at(bench, seed, batch, level)
    y, cy, ey = fresh_at(bench, seed + 1, batch, level)
    product = bench.noise.multiply(ex, ey)
    three = cx * cy
    assert three.parts == 3
    within(bench, three, x * y, product)
    switched = bench.noise.key_switch(product)
    two = three.relinearize()
    assert two.parts == 2
    within(bench, two, x * y, switched)
    within(bench, two.rescale(), x * y, bench.noise.rescale(switched))
    within(
        bench, (cx**2).relinearize(), x * x, bench.noise.key_switch(bench.noise.multiply(ex, ex))
    )
    plain = bench.noise.multiply(ex, bench.noise.encode(1.0, level=level))
    within(bench, cx * y, x * y, plain)
    within(bench, y * cx, x * y, plain)
    within(bench, cx * -3, -3 * x, bench.noise.multiply_integer(ex, -3))
    half = bench.noise.multiply(ex, bench.noise.encode(0.5, level=level))
    within(bench, 0.5 * cx, 0.5 * x, half)


@given(seed=SEEDS, batch=BATCHES, level=LEVELS, step=st.sampled_from([0, 1, 2, 3, 4, 8, -1, -3]))
def test_rotations_and_conjugation(
    bench: Any, seed: int, batch: tuple[int, ...], level: int, step: int
) -> None:
    x, cx, ex = fresh_at(bench, seed, batch, level)
    switched = bench.noise.key_switch(ex)
    within(bench, cx.rotate(step), np.roll(x, -step, axis=-1), switched)
    within(bench, np.roll(cx, -step, axis=-1), np.roll(x, -step, axis=-1), switched)
    z = x + 1j * x[..., ::-1]
    cz = bench.encrypt(z, level=level)
    plain = bench.noise.encode(2.0, level=level)
    within(bench, cz.conjugate(), z.conj(), bench.noise.key_switch(bench.noise.encrypt(plain)))


@given(seed=SEEDS, level=LEVELS)
def test_hoisted_rotations_are_the_single_ones(bench: Any, seed: int, level: int) -> None:
    _, cx = bench.fresh(seed, level=level)
    steps = [3, 0, -1, 8, 3]
    for step, hoisted in zip(steps, bench.engine.rotate_many(cx, steps), strict=True):
        np.testing.assert_array_equal(hoisted._residues(), cx.rotate(step)._residues())


@given(seed=SEEDS, count=st.integers(0, 4), scale_bits=st.integers(30, 45))
def test_dropped_levels_and_other_scales(
    bench: Any, seed: int, count: int, scale_bits: int
) -> None:
    scale = 2**scale_bits
    x, cx = bench.fresh(seed, scale=scale)
    estimate = bench.noise.encrypt(bench.noise.encode(1.0, scale=scale))
    within(bench, cx, x, estimate)
    within(bench, cx.drop_levels(count), x, bench.noise.drop_levels(estimate, count))


@pytest.mark.parametrize("bits", [20, 40, 59, 80, 100])
@given(seed=SEEDS, batch=BATCHES)
def test_encoding_at_every_scale(bench: Any, bits: int, seed: int, batch: tuple[int, ...]) -> None:
    z = bench.message(seed, batch) * np.exp(1j * bench.message(seed + 1, batch))
    plaintext = bench.engine.encode(z, scale=2**bits)
    estimate = bench.noise.encode(1.0, scale=2**bits)
    found = bench.engine.decode(plaintext, real=False)
    assert np.abs(found - z).max() <= bench.noise.decode(estimate)


def test_short_messages_are_padded_and_scalars_fill(bench: Any) -> None:
    error = bench.noise.decode(bench.noise.encrypt(bench.noise.encode(2.0)))
    short = bench.decrypt(bench.encrypt([[0.5, -1.0], [1.0, 2.0]]))
    expected = np.zeros((2, bench.slots))
    expected[:, :2] = [[0.5, -1.0], [1.0, 2.0]]
    assert np.abs(short - expected).max() <= error
    assert np.abs(bench.decrypt(bench.encrypt(1.25)) - 1.25).max() <= error


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex64"])
def test_decrypted_dtype_is_the_documented_one(bench: Any, dtype: str) -> None:
    values = np.array([0, 1, 1], dtype)
    ciphertext = bench.encrypt(values)
    assert bench.decrypt(ciphertext).dtype == np.float64
    assert bench.decrypt(ciphertext, real=False).dtype == np.complex128
    assert np.abs(bench.decrypt(ciphertext)[:3] - values.real).max() < 1e-6

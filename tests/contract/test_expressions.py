"""Rules 41 to 44: what is known of captured values, and expressions of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from fhelium.compile import (
    compile,
)
from fhelium.errors import (
    ArgumentError,
    CaptureError,
)


def test_rule_41_metadata_is_known(bench: Any) -> None:
    seen: dict[str, Any] = {}

    @compile
    def f(x: Any, p: Any, w: Any) -> Any:
        y = (x * x).relinearize().rescale()
        seen.update(
            level=y.level,
            scale=float(y.scale),
            parts=(x * x).parts,
            batch=x.batch_shape,
            plain=(p.level, p.scale == x.scale, p.batch_shape),
            array=(w.shape, w.dtype, w.ndim, w.size, w.T.shape),
            slots=x.parameters.slots,
        )
        with pytest.raises(AttributeError, match="has no attribute 'payload'"):
            _ = x.payload
        assert not hasattr(w, "tobytes")
        return y

    _, x = bench.fresh(batch=(3,))
    f(x, bench.engine.encode(1.0), np.ones((2, 3), np.float32))
    assert seen == {
        "level": 3,
        "scale": pytest.approx(2**40, rel=2**-20),
        "parts": 3,
        "batch": (3,),
        "plain": (4, True, ()),
        "array": ((2, 3), np.dtype("float32"), 2, 6, (3, 2)),
        "slots": bench.slots,
    }


CLEAR = {
    "operators": lambda x, y: (x + y, x - y, x * y, x / y, y**2, 2**y, -x, abs(x), x @ y.T, 3 - x),
    "indexing": lambda x, y: (x[0], x[-1, 1], x[:, 1:], x[..., ::-1], x[None], x[1:1], x[0, 2]),
    "shapes": lambda x, y: (
        x.reshape(3, 2),
        x.reshape((-1,)),
        np.reshape(x, (6,)),
        x.T,
        np.transpose(x),
        np.swapaxes(x, 0, 1),
        np.expand_dims(x, 1),
        np.squeeze(x[:1]),
        np.ravel(x),
        np.broadcast_to(x, (2, 2, 3)),
    ),
    "joins": lambda x, y: (
        np.stack([x, y]),
        np.stack((x, y), axis=-1),
        np.concatenate([x, y]),
        np.concatenate([x, y], axis=1),
        np.concatenate([x, y], axis=None),
    ),
    "rolls": lambda x, y: (
        np.roll(x, 1),
        np.roll(x, -1, axis=1),
        np.roll(x, (1, 2), axis=(0, 1)),
        np.flip(x, 1),
        np.flip(x),
    ),
    "reductions": lambda x, y: (
        np.sum(x),
        np.sum(x, axis=0),
        x.sum(axis=-1, keepdims=True),
        np.mean(x, axis=(0, 1)),
        x.mean(0),
        np.dot(x, y.T),
        np.matmul(x, y[0]),
    ),
    "choices": lambda x, y: (
        np.clip(x, -0.5, 0.5),
        np.clip(x, None, 0.25),
        x.clip(0.0),
        np.where(np.array([True, False, True]), x, y),
        np.where(np.array([True, False, True]), x, 0.0),
    ),
    "elementary": lambda x, y: (np.sqrt(y), np.square(x), np.real(x + 1j * y), np.imag(x * 1j)),
    "types": lambda x, y: (x.astype(np.float32) * 2, (x * 100).astype(np.int64) + 1, x + 1j),
}


@pytest.mark.parametrize("name", CLEAR)
def test_rules_42_and_43_clear_expressions_equal_numpys(name: str) -> None:
    generator = np.random.default_rng(3)
    x, y = generator.uniform(-1, 1, (2, 3)), generator.uniform(0.5, 2, (2, 3))
    function = CLEAR[name]
    for found, expected in zip(compile(function)(x, y), function(x, y), strict=True):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-15)


def test_rule_43_elementary_functions_are_within_an_ulp() -> None:
    x = np.random.default_rng(3).uniform(0.5, 2, 100)

    def function(x: Any) -> Any:
        return np.exp(x), np.log(x), np.sin(x), np.cos(x), np.tanh(x), x**1.5

    for found, expected in zip(compile(function)(x), function(x), strict=True):
        np.testing.assert_array_max_ulp(found, expected, 1)


def test_rule_43_other_functions_are_named() -> None:
    with pytest.raises(CaptureError, match=r"numpy\.cumsum is not available.*concatenate"):
        compile(lambda x: np.cumsum(x))(np.ones(3))
    with pytest.raises(CaptureError, match=r"numpy\.arctan2 is not available"):
        compile(lambda x: np.arctan2(x, x))(np.ones(3))


def test_rule_44_encrypted_expressions(bench: Any) -> None:
    x, cx = bench.fresh()
    y, cy = bench.fresh(1)
    w = bench.message(2)

    @compile
    def f(x: Any, y: Any) -> Any:
        z = x
        z += y
        return (
            x + y,
            x - y,
            -x,
            np.negative(x),
            (x**2).relinearize(),
            np.square(x).relinearize(),
            np.roll(x, 1),
            np.roll(x, -2, axis=-1),
            w * x,
            x * w,
            np.multiply(w, x),
            1 - x,
            x + 2.5,
            2.5 * x,
            3 * x,
            z,
            x.conjugate(),
            w - x,
            +x,
        )

    expected = (
        x + y,
        x - y,
        -x,
        -x,
        x**2,
        x**2,
        np.roll(x, 1),
        np.roll(x, -2),
        w * x,
        w * x,
        w * x,
        1 - x,
        x + 2.5,
        2.5 * x,
        3 * x,
        x + y,
        x,
        w - x,
        x,
    )
    for found, exact in zip(f(cx, cy), expected, strict=True):
        assert np.abs(bench.decrypt(found) - exact).max() < 1e-5
    for refused in (
        lambda x: x**3,
        lambda x: x / 2,
        lambda x: np.exp(x),
        lambda x: np.sum(x),
        lambda x: np.add(x, x, where=True),
        lambda x: np.roll(x, 1, axis=0),
    ):
        with pytest.raises((CaptureError, ArgumentError), match=re.escape(__file__)):
            compile(refused)(cx)

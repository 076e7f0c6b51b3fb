"""Rules 52, 84, 85 and 87: batch axes of ciphertexts and plaintexts."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fhelium.compile import compile
from fhelium.errors import (
    ArgumentError,
    BatchIndexError,
    CaptureError,
    KeyMismatch,
    LevelMismatch,
    PartsMismatch,
    ScaleMismatch,
)


def same_residues(left: Any, right: Any) -> bool:
    return (
        left.batch_shape == right.batch_shape
        and (left.level, left.scale, left.parts) == (right.level, right.scale, right.parts)
        and np.array_equal(left._residues(), right._residues())
    )


def operations(compiled: Any) -> list[str]:
    (specialization,) = compiled.specializations
    return [operation.name for operation in specialization.program.walk()]


VIEWS: list[tuple[str, Callable[[Any], Any]]] = [
    ("a place", lambda x: x[1]),
    ("from the end", lambda x: x[-1, -2]),
    ("a numpy integer", lambda x: x[np.int64(1)]),
    ("a slice", lambda x: x[:, 1:]),
    ("backwards", lambda x: x[::-1, ::-2]),
    ("no items", lambda x: x[2:]),
    ("an ellipsis", lambda x: x[..., 0]),
    ("a new axis", lambda x: x[:, None, 1]),
    ("all", lambda x: x[...]),
    ("a new shape", lambda x: x.reshape(3, 2)),
    ("one open extent", lambda x: x.reshape((-1, 1))),
    ("the same shape", lambda x: x.reshape(2, 3)),
]


@pytest.mark.parametrize("view", [view for _, view in VIEWS], ids=[name for name, _ in VIEWS])
def test_rule_84_batch_views_are_numpys(bench: Any, view: Callable[[Any], Any]) -> None:
    z, x = bench.fresh(1, batch=(2, 3))
    eager = view(x)
    # numpy on the numbers of the items says where each residue polynomial must be.
    places = view(np.arange(6).reshape(2, 3))
    assert eager.batch_shape == places.shape
    expected = x._residues().reshape(6, *x._residues().shape[2:])[places]
    np.testing.assert_array_equal(eager._residues(), expected)
    assert same_residues(compile(view)(x), eager)
    assert (eager.level, eager.scale, eager.parts) == (x.level, x.scale, x.parts)
    plain = bench.engine.encode(z)
    np.testing.assert_array_equal(
        bench.engine.decode(view(plain)),
        bench.engine.decode(plain).reshape(6, -1)[places],
    )


def test_rule_84_views_sums_rotations_and_products(bench: Any) -> None:
    z, x = bench.fresh(1, batch=(3,))
    w = bench.message(2, batch=(3,))
    plain = bench.engine.encode(w)
    key = bench.keys.rotations[1]

    def f(x: Any, plain: Any) -> Any:
        first = x[0]
        turned = first.rotate(1, key=key) + first.rotate(2)
        products = (x * plain).rescale()
        return turned, products.sum_batch(0), products[1:].sum_batch() - products[2]

    expected = f(x, plain)
    compiled = compile(f)
    for found, eager in zip(compiled(x, plain), expected, strict=True):
        assert same_residues(found, eager)
    assert "ckks.rotate_hoisted" in operations(compiled)
    turned, total, difference = (bench.decrypt(value) for value in expected)
    assert np.abs(turned - np.roll(z[0], -1) - np.roll(z[0], -2)).max() < 1e-6
    assert np.abs(total - (z * w).sum(axis=0)).max() < 1e-6
    assert np.abs(difference - z[1] * w[1]).max() < 1e-6


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_rule_52_a_batch_sum_is_one_operation(bench: Any, axis: int) -> None:
    z, x = bench.fresh(3, batch=(2, 3, 2))
    compiled = compile(lambda x: x.sum_batch(axis))
    total = compiled(x)
    names = operations(compiled)
    assert names.count("ckks.sum_batch") == 1
    assert not [name for name in names if "add" in name]
    assert compiled.specializations[0].keys == ()
    place = axis % 3
    assert total.batch_shape == z.shape[:place] + z.shape[place + 1 : -1]
    assert (total.level, total.scale, total.parts) == (x.level, x.scale, x.parts)
    assert np.abs(bench.decrypt(total) - z.sum(axis=place)).max() < 1e-6


def test_rule_52_an_axis_of_one_item_becomes_a_view(bench: Any) -> None:
    _, x = bench.fresh(4, batch=(1, 2))
    compiled = compile(lambda x: x.sum_batch(0))
    assert same_residues(compiled(x), x[0])
    assert operations(compiled) == ["ckks.batch_reshape"]
    assert same_residues(x.sum_batch(0), x[0])


def test_rule_87_a_batch_sum_equals_the_eager_one_and_keeps_its_input(bench: Any) -> None:
    _, x = bench.fresh(5, batch=(4,))
    before = x._residues().copy()
    product = x * x  # three parts
    compiled = compile(lambda x: bench.engine.sum_batch(x, 0))
    for value in (x, product):
        eager = bench.engine.sum_batch(value, 0)
        assert same_residues(compiled(value), eager)
        pairs = (value[0] + value[1]) + (value[2] + value[3])
        np.testing.assert_array_equal(eager._residues(), pairs._residues())
    np.testing.assert_array_equal(x._residues(), before)


def test_rule_85_plaintexts_and_constants_are_live(bench: Any) -> None:
    z, x = bench.fresh(6, batch=(2,))
    weights = bench.message(7, batch=(2,))

    @compile
    def f(x: Any, plain: Any) -> Any:
        # The constant is encoded, then viewed: both are kept until the array changes.
        rows = bench.engine.encode(weights)
        return (x * rows[1] + x * rows[::-1]).rescale() * plain[1]

    for seed in (8, 9):
        y = bench.message(seed, batch=(2,))
        plain = bench.engine.encode(y, level=3)
        for _ in range(2):
            found = bench.decrypt(f(x, plain))
            exact = (z * weights[1] + z * weights[::-1]) * y[1]
            assert np.abs(found - exact).max() < 1e-5
            weights += 0.25  # in place
    assert len(f.specializations) == 1


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stacks_hold_each_operand(bench: Any, axis: int) -> None:
    (a, x), (b, y) = bench.fresh(11, batch=(2,)), bench.fresh(12, batch=(2,))
    eager = bench.engine.stack([x, y, x], axis)
    compiled = compile(lambda x, y: bench.engine.stack((x, y, x), axis))
    assert same_residues(compiled(x, y), eager)
    place = axis % 2
    np.testing.assert_array_equal(
        eager._residues(),
        np.stack([x._residues(), y._residues(), x._residues()], axis=place),
    )
    plain = bench.engine.stack([bench.engine.encode(a), bench.engine.encode(b)], axis)
    assert np.abs(bench.engine.decode(plain) - np.stack([a, b], axis=place)).max() < 1e-6
    parts = [eager[i] if place == 0 else eager[:, i] for i in range(3)]
    assert same_residues(parts[1], y)
    assert same_residues(parts[2], x)


def test_batches_of_slices_run_through_the_check(bench: Any) -> None:
    """Guards that the precision report knows what each batch operation means."""
    _, x = bench.fresh(13, batch=(2, 2))

    @compile
    def f(x: Any) -> Any:
        rows = x.reshape(4)[::-2]
        return bench.engine.stack([rows, rows * 2], 1).sum_batch(0)

    assert f.check(x, secret=bench.keys.secret).passed


WRONG: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: x[2], BatchIndexError, r"index 2 .* axis 0 .*batch shape is \(2, 3\)"),
    (lambda x: x[-3], IndexError, r"index -3 .* axis 0 .*batch shape is \(2, 3\)"),
    (lambda x: x[0, 0, 0], BatchIndexError, r"2-dimensional.*batch shape is \(2, 3\).*slots"),
    (lambda x: x[..., ...], BatchIndexError, "single ellipsis"),
    (lambda x: x[[0, 1]], ArgumentError, r"integers, slices.*found list.*\(2, 3\)"),
    (lambda x: x[True], ArgumentError, "found bool"),
    (lambda x: x[::0], ArgumentError, "zero"),
    (lambda x: x.reshape(4), ArgumentError, r"\[4\].*batch shape is \[2, 3\]"),
    (lambda x: x.reshape(-1, -1), ArgumentError, r"more than one.*batch shape is \[2, 3\]"),
    (lambda x: x.reshape(-6), ArgumentError, r"negative.*batch shape is \[2, 3\]"),
    (lambda x: x.reshape(1.5), TypeError, "float"),
    (lambda x: x.sum_batch(2), ArgumentError, r"axis 2 .*-2..=1.*batch shape is \[2, 3\]"),
    (lambda x: x.sum_batch("0"), TypeError, "str"),
    (lambda x: x[0, 0].sum_batch(), ArgumentError, r"batch shape is \[\]"),
    (lambda x: x[2:].sum_batch(), ArgumentError, r"batch shape \[0, 3\] is empty"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), WRONG)
def test_bad_axes_and_indices_name_the_batch_shape(
    bench: Any, wrong: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    _, x = bench.fresh(14, batch=(2, 3))
    with pytest.raises(error, match=message):
        wrong(x)
    with pytest.raises(CaptureError if error is TypeError else error, match=message) as raised:
        compile(wrong)(x)
    assert "test_batches.py" in str(raised.value)


def test_stacks_that_do_not_fit_are_refused(bench: Any, other: Any) -> None:
    stack = bench.engine.stack
    _, x = bench.fresh(15)
    _, pair = bench.fresh(16, batch=(2,))
    for items, error, message in (
        ([], ArgumentError, "one ciphertext at least"),
        ([x, 1.0], TypeError, "found float"),
        ([x, pair], ArgumentError, r"batch shape \[2\], the first \[\]"),
        ([x, bench.engine.encode(1.0)], ArgumentError, "plaintext, the first a ciphertext"),
        ([x, x.drop_levels(1)], LevelMismatch, "drop_levels"),
        ([x, (x * x).relinearize()], ScaleMismatch, "one scale"),
        ([x * x, (x * x).relinearize()], PartsMismatch, "relinearize"),
        ([x, other.fresh(1)[1]], KeyMismatch, "secret"),
    ):
        with pytest.raises(error, match=message):
            stack(items)


def test_batches_are_indexed_not_iterated_over(bench: Any) -> None:
    _, x = bench.fresh(17, batch=(2,))
    for value in (x, bench.engine.encode(bench.message(1, batch=(2,)))):
        with pytest.raises(TypeError, match=r"index it; its batch shape is \(2,\)"):
            list(value)
        # Whoever counts up until there are no more, as Python's older protocol does, ends.
        places = itertools.count()
        with contextlib.suppress(IndexError):
            while True:
                value[next(places)]
        assert next(places) == 3
    with pytest.raises(CaptureError, match="iterating over"):
        compile(lambda x: sum(x))(x)

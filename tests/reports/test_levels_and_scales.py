"""Reports about levels, scales, rescaling and relinearization, restated for fhelium.

Each docstring names the public reports that the test restates and says what went wrong there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fhelium as fh
from fhelium.compile import capture, compile, encrypted
from fhelium.errors import (
    LevelExhausted,
    LevelMismatch,
    ParameterError,
    PartsMismatch,
    ScaleMismatch,
)


def error_of(bench: Any, ciphertext: Any, exact: Any) -> float:
    """The largest error of a slot; of its real part where the message is real."""
    real = not np.iscomplexobj(exact)
    return float(np.abs(bench.decrypt(ciphertext, real=real) - exact).max())


def square(x: Any) -> Any:
    return (x * x).relinearize().rescale()


def ways(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The same function run eagerly and compiled."""
    return [function, compile(function)]


# --- real mismatches -------------------------------------------------------------------------


def scale_mismatch(x: Any, y: Any) -> Any:
    product = x * x
    shifted = y + 1
    return product - shifted


def level_mismatch(x: Any, y: Any) -> Any:
    product = square(x)
    shifted = y + 1
    return product - shifted


def line_of(function: Any, offset: int) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


def test_a_real_scale_mismatch_names_scales_levels_lines_and_remedy(usual: Any) -> None:
    """phantom-fhe 5, SEAL-Python 98: "scale mismatch" and nothing else."""
    _, cx = usual.fresh()
    for run in ways(scale_mismatch):
        with pytest.raises(ScaleMismatch) as caught:
            run(cx, cx)
        text = str(caught.value)
        for part in ("2^80 (level 7)", "2^40 (level 7)", "subtract", "rescale", "encode"):
            assert part in text
    for offset in (1, 2, 3):
        assert line_of(scale_mismatch, offset) in text


# --- a fresh value beside a rescaled one -----------------------------------------------------


@pytest.mark.parametrize("levels", [1, 2, 7])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_a_fresh_value_beside_a_lowered_one(usual: Any, name: str, levels: int) -> None:
    """SEAL-Python 107: the error did not say which operand was where."""
    _, cx = usual.fresh()
    low = cx.drop_levels(levels)
    operation = getattr(usual.engine, name)
    for left, right, which in ((low, cx, "right"), (cx, low, "left")):
        with pytest.raises(LevelMismatch) as caught:
            operation(left, right)
        text = str(caught.value)
        assert f"left operand is at level {left.level}" in text
        assert f"right operand at level {right.level}" in text
        assert f"lower the {which} one with drop_levels({levels})" in text
        lowered = (
            left.drop_levels(left.level - low.level),
            right.drop_levels(right.level - low.level),
        )
        if levels < 7 or name != "multiply":
            assert operation(*lowered).level == low.level


def test_a_captured_level_mismatch_names_the_lines(usual: Any) -> None:
    """SEAL-Python 107 and heir 3386: where each operand was made."""
    _, cx = usual.fresh()
    with pytest.raises(LevelMismatch) as caught:
        compile(level_mismatch)(cx, cx)
    text = str(caught.value)
    assert "left operand is at level 6" in text
    assert "right operand at level 7" in text
    for place in (line_of(square, 1), line_of(level_mismatch, 2), line_of(level_mismatch, 3)):
        assert place in text


HEIR: dict[str, Callable[[Any], Any]] = {
    "unrelinearized -": lambda x: (x * x) - ((x * x) * (x * x)),
    "unrelinearized +": lambda x: (x * x) + ((x * x) * (x * x)),
    "unrelinearized, other order": lambda x: ((x * x) * (x * x)) - (x * x),
}


@pytest.mark.parametrize("function", HEIR.values(), ids=HEIR)
def test_products_of_unrelinearized_products_are_refused_at_capture(
    usual: Any, function: Any
) -> None:
    """heir 3386: the compiler died in its own verifier, naming its own operations."""
    _, cx = usual.fresh()
    for run in ways(function):
        with pytest.raises(PartsMismatch, match="3 parts and must have 2; relinearize it first"):
            run(cx)
    with pytest.raises(PartsMismatch, match=f"{__file__}:{function.__code__.co_firstlineno}"):
        capture(function, inputs={"x": encrypted()}, parameters=usual.engine.parameters)


def relinearized(x: Any) -> Any:
    return (x * x).relinearize()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("rescaled", [False, True])
def test_operands_at_different_depths_are_refused_at_capture(
    usual: Any, sign: int, swapped: bool, rescaled: bool
) -> None:
    """heir 3386: operands at different depths gave an ill-typed operation."""
    _, cx = usual.fresh()
    step = square if rescaled else relinearized

    def function(x: Any) -> Any:
        left, right = step(x), step(step(x))
        if swapped:
            left, right = right, left
        return left + right if sign > 0 else left - right

    expected = LevelMismatch if rescaled else ScaleMismatch
    with pytest.raises(expected) as caught:
        compile(function)(cx)
    text = str(caught.value)
    found = ("level 6", "level 5") if rescaled else ("2^80 (level 7)", "2^160 (level 7)")
    assert all(part in text for part in found)
    assert line_of(function, 4) in text
    assert line_of(step, 1) in text


# --- one product too many --------------------------------------------------------------------


def power(x: Any) -> Any:
    for _ in range(8):
        x = square(x)
    return x


def weighted(x: Any) -> Any:
    for _ in range(8):
        x = (x * 0.5).rescale()
    return x


def rescaled_at_the_end(x: Any) -> Any:
    return (x.drop_levels(7) * 1).rescale()


def dropped_below(x: Any) -> Any:
    return square(x).drop_levels(7)


@pytest.mark.parametrize(
    ("function", "line", "words"),
    [
        (power, line_of(square, 1), ["multiply", "level 0 of 7", "Parameters(depth=8)"]),
        (weighted, line_of(weighted, 2), ["multiply", "level 0 of 7", "Parameters(depth=8)"]),
        (
            rescaled_at_the_end,
            line_of(rescaled_at_the_end, 1),
            ["rescale", "level 0 of 7", "Parameters(depth=8)"],
        ),
        (dropped_below, line_of(dropped_below, 1), ["drop_levels", "7 levels", "level 6"]),
    ],
)
def test_one_level_too_many(usual: Any, function: Any, line: str, words: list[str]) -> None:
    """TenSEAL 78, 205, 241, 300: "scale out of bounds", late and without a line."""
    _, cx = usual.fresh()
    for run in ways(function):
        with pytest.raises(LevelExhausted) as caught:
            run(cx)
        assert all(word in str(caught.value) for word in words), str(caught.value)
    compiled = compile(function)
    for late in (
        lambda: compiled(cx),
        lambda: compiled.prepare(cx),
        lambda: capture(function, inputs={"x": encrypted()}, parameters=usual.engine.parameters),
    ):
        with pytest.raises(LevelExhausted) as caught:
            late()
        assert line in str(caught.value)
    assert compiled.specializations == ()


def test_the_depth_that_an_error_names_fits() -> None:
    """TenSEAL 78: the parameters that the message tells are enough, and one less is not."""

    def run(depth: int) -> Any:
        parameters = fh.Parameters(depth=depth, scale_bits=40, log_n=10, allow_insecure=True)
        capture(power, inputs={"x": encrypted()}, parameters=parameters)

    with pytest.raises(LevelExhausted, match=r"Parameters\(depth=8\)"):
        run(7)
    run(8)


# --- rescaling -------------------------------------------------------------------------------


def once_too_often(x: Any) -> Any:
    y = square(x)
    return y.rescale()


def never_multiplied(x: Any) -> Any:
    return x.rescale()


def after_an_integer(x: Any) -> Any:
    return (x * 3).rescale()


@pytest.mark.parametrize("function", [once_too_often, never_multiplied, after_an_integer])
def test_rescaling_where_nothing_is_to_rescale(usual: Any, function: Any) -> None:
    """lattigo 40: a second rescale gave a huge random number."""
    _, cx = usual.fresh()
    for run in ways(function):
        with pytest.raises(ScaleMismatch, match="rescale once after each product") as caught:
            run(cx)
        assert "2^40" in str(caught.value)
        assert "2^20" in str(caught.value)
    assert __file__ in str(caught.value)


@given(bits=st.integers(20, 120))
@settings(max_examples=40)
def test_a_rescale_is_right_or_refused(bench: Any, bits: int) -> None:
    """lattigo 40: at every scale, a rescale gives the message or a named error."""
    x, cx = bench.fresh(scale=2**bits)
    try:
        lower = cx.rescale()
    except ScaleMismatch:
        assert bits < 60
    else:
        noise = bench.noise
        bound = noise.rescale(noise.encrypt(noise.encode(1.0, scale=2**bits)))
        assert lower.scale == bound.scale
        assert error_of(bench, lower, x) <= noise.decode(bound)


# --- plaintexts of other levels and scales ---------------------------------------------------


@pytest.mark.parametrize("run", [0, 1], ids=["eager", "compiled"])
def test_plaintexts_of_a_higher_level_serve(usual: Any, run: int) -> None:
    """SEAL 377: a rescaled ciphertext times a plaintext encoded at the top level failed."""
    (x, cx), w = usual.fresh(), usual.message(1)
    low = square(cx)
    for level in (7, 6):
        plain = usual.engine.encode(w, level=level)
        for function, exact in (
            (lambda c, p: (c * p).rescale(), x * x * w),
            (lambda c, p: (p * c).rescale(), x * x * w),
            (lambda c, p: c + p, x * x + w),
            (lambda c, p: p - c, w - x * x),
        ):
            found = ways(function)[run](low, plain)
            assert error_of(usual, found, exact) <= 1e-6


def test_plaintexts_of_a_lower_level_are_refused_with_both_levels(usual: Any) -> None:
    """SEAL 377: the other direction cannot work, and says so."""
    _, cx = usual.fresh()
    for level in range(7):
        plain = usual.engine.encode(0.5, level=level)
        for operation in (usual.engine.add, usual.engine.subtract, usual.engine.multiply):
            with pytest.raises(LevelMismatch, match=rf"level 7 .*level {level};"):
                operation(cx, plain)


def test_scales_that_the_primes_do_not_track(usual: Any) -> None:
    """SEAL 372: after one rescale of a 2^40 value over 49-bit primes nothing could be added."""
    (x, cx), (y, cy) = usual.fresh(scale=2**30), usual.fresh(1)
    product = (cx * usual.engine.encode(x)).rescale()
    assert product.scale.log2 == pytest.approx(30, abs=1e-5)
    with pytest.raises(ScaleMismatch) as caught:
        product + cy.drop_levels(1)
    text = str(caught.value)
    assert "2^30" in text
    assert "2^40" in text
    assert "encode the other at 2^30" in text
    # The remedy works.
    matched = usual.encrypt(y, level=6, scale=product.scale)
    assert error_of(usual, product + matched, x * x + y) <= 1e-3


@pytest.mark.parametrize("log_n", [10, 12, 14, 16])
@pytest.mark.parametrize("scale_bits", [28, 34, 40, 45, 50, 58])
def test_chosen_primes_track_the_scale(scale_bits: int, log_n: int) -> None:
    """SEAL 372: default primes that were 8 bits away from the scale that was asked for."""
    parameters = fh.Parameters(
        depth=6, scale_bits=scale_bits, log_n=log_n, first_bits=60, allow_insecure=True
    )
    # How far apart primes that are 1 modulo 2N lie on average, in bits: a chain of six needs
    # some that are several times as far from the scale.
    apart = parameters.n * scale_bits / 2**scale_bits
    scale = parameters.scale
    for level in range(6, 0, -1):
        scale = scale * scale / parameters.moduli[level]
        assert abs(scale.log2 - scale_bits) <= max(2.0**-20, 4 * apart)


def test_explicit_primes_far_from_the_scale_are_refused() -> None:
    """SEAL 372: explicit 48-bit primes for a 2^40 scale."""
    usual = fh.Parameters(depth=2, scale_bits=40, log_n=10, allow_insecure=True)
    wide = fh.Parameters(depth=2, scale_bits=48, log_n=10, allow_insecure=True)
    mixed = [usual.moduli[0], usual.moduli[1], wide.moduli[2]]
    with pytest.raises(ParameterError, match=str(wide.moduli[2])):
        fh.Parameters.from_primes(10, mixed, usual.special_moduli, 2**40, allow_insecure=True)


# --- levels of results -----------------------------------------------------------------------


@pytest.mark.parametrize("level", range(8))
def test_the_level_and_scale_of_every_result(usual: Any, level: int) -> None:
    """lattigo 106: relinearizing into an output of a higher level left a wrong level behind."""
    message, ciphertext = usual.fresh(level, scale=2**24, level=level)

    def operations(x: Any) -> Any:
        kept = [x.rotate(1), x.rotate(0), x.conjugate(), -x, x + message, message - x, x * 3, x + x]
        products = [x * x, (x * x).relinearize()]
        return kept, products, [x.drop_levels(count) for count in range(level + 1)]

    for run in ways(operations):
        kept, products, dropped = run(ciphertext)
        for value in kept:
            assert (value.level, value.scale, value.parts) == (level, 2**24, 2)
        for value, parts in zip(products, (3, 2), strict=True):
            assert (value.level, value.scale, value.parts) == (level, 2**48, parts)
        for count, value in enumerate(dropped):
            assert (value.level, value.scale, value.parts) == (level - count, 2**24, 2)
        for value in (*kept, *products, *dropped):
            assert value._residues().shape[-2] == value.level + 1
    if level:
        x, cx = usual.fresh(level, level=level)
        lower = (cx * x).rescale()
        prime = usual.engine.parameters.moduli[level]
        assert (lower.level, lower._residues().shape[-2]) == (level - 1, level)
        assert lower.scale == fh.Scale(2**80) / prime


@pytest.mark.slow
def test_a_deep_chain_at_a_large_ring(make_bench: Any) -> None:
    """FIDESlib 31: circuits went wrong from about level 6 of 14; shallow ones were right."""
    bench = make_bench(conjugation=False, depth=17, scale_bits=45, log_n=16)
    x, cx = bench.fresh()
    w = np.where(np.abs(x) > 0.5, 1.0, -1.0)
    for level in range(17, 0, -1):
        if level % 2:
            x, cx = x * x, square(cx)
        else:
            x, cx = x * w, (cx * w).rescale()
        assert cx.level == level - 1
        if level % 4 == 1:
            assert error_of(bench, cx, x) <= 1e-3
    assert cx.level == 0

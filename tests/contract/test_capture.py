"""Rules 40, 45 to 56, 61 and 62: what is captured, and what capture refuses."""

from __future__ import annotations

import re
import sys
from collections import namedtuple
from functools import reduce
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import (
    capture,
    compile,
    encrypted,
    message,
    static,
)
from fhelium.errors import (
    CaptureError,
    CompileInputError,
    LevelExhausted,
    LevelMismatch,
    PartsMismatch,
    ScaleMismatch,
)


def operations(specialization: Any) -> list[str]:
    return [operation.name for operation in specialization.source.program.walk()]


def truth(x: Any) -> Any:
    return x if x else -x  # tested


def equal(x: Any) -> Any:
    return x == 0  # tested


def unequal(x: Any) -> Any:
    return x != x  # tested


def ordered(x: Any) -> Any:
    return x < 1  # tested


def iterated(x: Any) -> Any:
    return [entry for entry in x]  # noqa: C416  # tested


def unpacked(x: Any) -> Any:
    first, *_ = x  # tested
    return first


def hashed(x: Any) -> Any:
    return {x: 1}  # tested


def length(x: Any) -> Any:
    return len(x)  # tested


def contained(x: Any) -> Any:
    return 1 in x  # tested


def converted(x: Any) -> Any:
    return float(x)  # tested


def indexes(x: Any) -> Any:
    return [1, 2][x]  # tested


def assigned(x: Any) -> Any:
    x[0] = 1  # tested
    return x


def unknown(x: Any) -> Any:
    return x.payload  # tested


def as_array(x: Any) -> Any:
    return np.asarray(x)  # tested


def compared_by_numpy(x: Any) -> Any:
    return np.equal(x, 0)  # tested


LIES = [
    truth,
    equal,
    unequal,
    ordered,
    iterated,
    unpacked,
    hashed,
    length,
    contained,
    converted,
    indexes,
    assigned,
    unknown,
    as_array,
    compared_by_numpy,
]


@pytest.mark.parametrize("kind", ["ciphertext", "array", "plaintext"])
@pytest.mark.parametrize("function", LIES, ids=lambda function: function.__name__)
def test_rule_40_looking_at_a_value_is_an_error_with_the_line(
    bench: Any, function: Any, kind: str, line_of: Any
) -> None:
    arguments = {
        "ciphertext": bench.encrypt(1.0),
        "plaintext": bench.engine.encode(1.0),
        "array": np.ones(3),
    }
    with pytest.raises(CaptureError, match=re.escape(line_of(function, "# tested"))):
        compile(function)(arguments[kind])


def test_rule_45_engine_methods_are_captured(bench: Any) -> None:
    engine = bench.engine
    device = bench.engine.device
    _, cx = bench.fresh()
    _, cy = bench.fresh(1)

    def f(x: Any, y: Any) -> Any:
        assert engine.slots == engine.parameters.slots
        assert engine.device == device
        product = engine.relinearize(engine.multiply(x, y))
        return [
            engine.add(x, y),
            engine.subtract(x, y),
            engine.negate(x),
            engine.rescale(product),
            engine.relinearize(engine.square(x)),
            engine.rotate(x, 1),
            *engine.rotate_many(x, [1, 2]),
            engine.conjugate(x),
            engine.drop_levels(x, 2),
            x + engine.encode(np.ones(engine.slots)),
        ]

    compiled = compile(f)
    for found, eager in zip(compiled(cx, cy), f(cx, cy), strict=True):
        np.testing.assert_array_equal(found._residues(), eager._residues())
    for refused in (
        lambda x: engine.encrypt(1.0, bench.keys.public),
        lambda x: engine.decrypt(x, bench.keys.secret),
        lambda x: engine.keygen(),
        lambda x: engine.use(bench.keys.evaluation()),
        lambda x: engine.decode(engine.encode(1.0)),
    ):
        with pytest.raises(CaptureError, match=r"cannot be captured"):
            compile(refused)(cx)


def test_rule_46_operands_that_do_not_fit_are_errors_at_capture(bench: Any, line_of: Any) -> None:
    _, x = bench.fresh()

    def levels(x: Any) -> Any:
        low = x.drop_levels(1)  # made
        return x + low  # tested

    def scales(x: Any) -> Any:
        return x * 0.5 + x  # tested

    def parts(x: Any) -> Any:
        return (x * x).rotate(1)  # tested

    def exhausted(x: Any) -> Any:
        for _ in range(5):
            x = (x * x).relinearize().rescale()  # tested
        return x

    for function, error in (
        (levels, LevelMismatch),
        (scales, ScaleMismatch),
        (parts, PartsMismatch),
        (exhausted, LevelExhausted),
    ):
        with pytest.raises(error, match=re.escape(line_of(function, "# tested"))):
            compile(function)(x)
    with pytest.raises(LevelMismatch, match=re.escape(line_of(levels, "# made"))):
        compile(levels)(x)


def test_rule_47_nothing_is_added_or_taken_away(bench: Any) -> None:
    _, x = bench.fresh()

    def f(x: Any) -> Any:
        return (x * x).relinearize().rescale()

    specialization = compile(f).prepare(x)
    assert operations(specialization) == ["he.mul", "he.relinearize", "he.rescale"]
    names = [operation.name for operation in specialization.program.walk()]
    assert sum("rescale" in name for name in names) == 1


def test_rule_48_several_engines_lend_their_operations(bench: Any, other: Any) -> None:
    x, cx = bench.fresh()
    first, second = bench.engine, other.engine

    @compile
    def f(x: Any) -> Any:
        return first.add(second.negate(x), second.encode(np.ones(8)))

    expected = -x
    expected[:8] += 1
    assert np.abs(bench.decrypt(f(cx)) - expected).max() < 1e-6


def test_rule_49_missing_keys_are_listed_with_their_lines(bench: Any, line_of: Any) -> None:
    def f(x: Any) -> Any:
        y = x.rotate(5)  # first
        return y + x.rotate(6)  # second

    _, x = bench.fresh()
    with pytest.raises(fh.errors.MissingKey) as caught:
        compile(f)(x)
    for text in ("rotation 5", "rotation 6", line_of(f, "# first"), line_of(f, "# second")):
        assert text in str(caught.value)


def test_rule_50_a_rotation_by_zero_needs_no_key(bench: Any) -> None:
    x, cx = bench.fresh()
    f = compile(lambda x: x.rotate(0) + x.rotate(bench.slots))
    assert np.abs(bench.decrypt(f(cx)) - 2 * x).max() < 1e-6
    assert f.specializations[0].keys == ()


def test_rule_51_many_rotations_share_a_decomposition(bench: Any) -> None:
    x, cx = bench.fresh()
    f = compile(lambda x: bench.engine.rotate_many(x, [1, 2, 3]))
    for step, out in enumerate(f(cx), 1):
        assert np.abs(bench.decrypt(out) - np.roll(x, -step)).max() < 1e-6
    names = [operation.name for operation in f.specializations[0].program.walk()]
    assert names.count("ckks.rotate_hoisted") == 1
    assert "ckks.rotate" not in names


SHIFT = np.ones(4)
Pair = namedtuple("Pair", ["left", "right"])
NESTED = {"a": [np.ones(4), (np.full(4, 2.0),)], "p": Pair(np.full(4, 3.0), 1)}


def doubled_shift() -> Any:
    return np.roll(SHIFT, 1) * 2


def uses_fixed_arrays(x: Any, bias: Any = None) -> Any:
    return x + doubled_shift() + NESTED["a"][0] + NESTED["a"][1][0] * NESTED["p"].left


def test_rule_53_fixed_arrays_are_live() -> None:
    f = compile(uses_fixed_arrays)
    local = np.zeros(4)
    g = compile(lambda x: x + local * 3)
    x = np.zeros(4)
    np.testing.assert_array_equal(f(x), np.full(4, 9.0))
    np.testing.assert_array_equal(g(x), x)
    try:
        SHIFT[:] = [0, 1, 2, 3]
        NESTED["a"][0][:] = 0
        local[:] = 1
        np.testing.assert_array_equal(f(x), np.array([12.0, 6.0, 8.0, 10.0]))
        np.testing.assert_array_equal(g(x), np.full(4, 3.0))
    finally:
        SHIFT[:] = 1
        NESTED["a"][0][:] = 1
    assert (f.misses, g.misses) == (1, 1)


def test_rule_53_encodings_of_live_arrays_are_refreshed(bench: Any) -> None:
    weights = bench.message(5)
    f = compile(lambda x: x * weights + np.roll(weights, 1).sum())
    frozen = compile(lambda x: x * weights, frozen_materials=True)
    x, cx = bench.fresh()

    def check(function: Any, exact: Any) -> None:
        assert np.abs(bench.decrypt(function(cx)) - exact).max() < 1e-5

    first = weights.copy()
    scale = bench.engine.parameters.scale
    g = compile(lambda x: (x * weights).rescale())
    check(g, x * first)
    check(frozen, x * first)
    weights *= -0.5
    check(g, x * first * -0.5)
    check(frozen, x * first)
    assert g.misses == 1
    with pytest.raises(ScaleMismatch):
        # The sum is a scalar at the product's scale only if it is encoded so.
        compile(lambda x: x * weights + x)(cx)
    assert np.abs(bench.decrypt(f(cx)) - (x * weights + weights.sum())).max() < 1e-4
    assert f(cx).scale == scale * scale


def test_rule_53_an_array_that_the_function_fills_is_taken_as_it_was_used() -> None:
    @compile
    def f(x: Any) -> Any:
        work = np.zeros(2)
        work[0] = 1
        first = x + work
        work[0] = 5
        return first, x + work

    for _ in range(2):
        first, second = f(np.zeros(2))
        np.testing.assert_array_equal(first, [1, 0])
        np.testing.assert_array_equal(second, [5, 0])


OFFSET = np.ones(2)


def helper(x: Any, scale: float = 2.0) -> Any:
    return scaled_by(x, scale) + OFFSET


def scaled_by(x: Any, scale: float) -> Any:
    return x * scale


@compile
def jitted_helper(x: Any, times: int = 2) -> Any:
    return x * times + OFFSET


def test_rule_54_helpers_are_part_of_the_outer_function() -> None:
    def inner(x: Any) -> Any:
        return reduce(lambda a, b: a + b, [helper(x), jitted_helper(x, times=3), nested(x)])

    def nested(x: Any) -> Any:
        return x - local

    local = np.full(2, 0.5)
    f = compile(inner)
    jitted_helper.clear()
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(f(x), inner(x))
    jitted_helper.clear()
    hits, misses = jitted_helper.hits, jitted_helper.misses
    OFFSET[:] = 10
    try:
        np.testing.assert_array_equal(f(x), 6 * x + 20 - 0.5)
    finally:
        OFFSET[:] = 1
    assert (jitted_helper.hits, jitted_helper.misses) == (hits, misses)
    of_program = compile(capture(helper, inputs={"x": message((2,)), "scale": static(2.0)}))
    bare = compile(of_program.specializations or of_program.source.program)
    with pytest.raises(CaptureError, match="compiled from a Program"):
        compile(lambda x: bare(x))(x)


def test_rule_55_other_exceptions_keep_their_cause_and_line(line_of: Any) -> None:
    def f(x: Any) -> Any:
        return x + {}["key"]  # tested

    with pytest.raises(CaptureError, match=re.escape(line_of(f, "# tested"))) as caught:
        compile(f)(np.ones(1))
    assert isinstance(caught.value.__cause__, KeyError)
    assert "KeyError" in str(caught.value)


def test_rule_56_encoding_is_exact_and_kept(bench: Any) -> None:
    """Ours rounds to nearest, without randomness, so an encoding of fixed data is kept."""
    weights = bench.message(5)
    weights.setflags(write=False)
    x, cx = bench.fresh()
    f = compile(lambda x: x * weights)
    first, second = f(cx), f(cx)
    np.testing.assert_array_equal(first._residues(), second._residues())
    prologue = [entry for entry in f.specializations[0].manifest["operations"] if entry["prologue"]]
    assert "ckks.encode" in {entry["operation"] for entry in prologue}
    assert np.abs(bench.decrypt(second) - x * weights).max() < 1e-6


def test_rule_61_unknown_calls_are_named_at_capture(bench: Any) -> None:
    """Ours keeps no opaque calls: what cannot run is an error where it is written."""
    with pytest.raises(CaptureError, match=r"numpy\.exp has no meaning on encrypted values"):
        capture(lambda x: np.exp(x), inputs={"x": encrypted()}, parameters=bench.engine.parameters)


def test_rule_62_control_flow_and_assertions(bench: Any) -> None:
    def asserts(x: Any, k: int) -> Any:
        assert k > 2, "k must be large"
        return x

    with pytest.raises(CompileInputError, match="k must be large"):
        capture(asserts, inputs={"x": message((1,)), "k": static(1)})
    with pytest.raises(CaptureError, match="testing the truth"):
        capture(truth, inputs={"x": message((1,))})


def test_functions_without_source_are_captured() -> None:
    """numba 7641: exec, lambdas on one line, redefinition."""
    names: dict[str, Any] = {"np": np}
    exec("def f(x):\n    return np.roll(x, 1) + offset\noffset = np.ones(3)", names)
    np.testing.assert_array_equal(compile(names["f"])(np.arange(3.0)), [3, 1, 2])
    first, second = compile(lambda x: x + 1), compile(lambda x: x * 3)
    assert first(np.ones(1)) == 2
    assert second(np.ones(1)) == 3
    old = compile(names["f"])
    exec("def f(x):\n    return x", names)
    np.testing.assert_array_equal(old(np.arange(3.0)), [3, 1, 2])
    exec("def g(x):\n    return bool(x)", names)
    with pytest.raises(CaptureError, match=r"<string>:2 in g"):
        compile(names["g"])(np.ones(1))


def test_a_value_does_not_outlive_its_capture(bench: Any) -> None:
    kept: list[Any] = []

    @compile
    def f(x: Any) -> Any:
        kept.append(x)
        return x

    _, x = bench.fresh()
    f(x)
    with pytest.raises(CaptureError, match="after the capture of its function ended"):
        kept[0] + kept[0]
    with pytest.raises(CaptureError, match="captured elsewhere"):
        compile(lambda y: y + kept[0])(x)


def test_capture_leaves_no_recorder_behind() -> None:
    f = compile(lambda x: bool(x))
    with pytest.raises(CaptureError):
        f(np.ones(1))
    assert sys.getrefcount(f) < 10
    np.testing.assert_array_equal(compile(lambda x: x + 1)(np.ones(1)), [2.0])


def test_endless_recursion_names_the_function_that_calls_itself(line_of: Any) -> None:
    @compile
    def f(x: Any) -> Any:
        return f(x) + 1  # tested

    with pytest.raises(CaptureError, match=re.escape(line_of(f.reference, "# tested"))):
        f(np.ones(1))

"""Rules 35 to 39 and 57 to 60: what arguments are, and declared inputs."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pytest

from fhelium.compile import (
    InputSpec,
    capture,
    compile,
    encrypted,
    message,
    plaintext,
    static,
)
from fhelium.errors import (
    CompileInputError,
)


def operations(specialization: Any) -> list[str]:
    return [operation.name for operation in specialization.source.program.walk()]


def test_rule_35_roles_come_from_arguments_or_from_specs(bench: Any) -> None:
    _, ciphertext = bench.fresh()

    def f(x: Any, w: Any) -> Any:
        return x * w

    by_arguments = compile(f).prepare(ciphertext, bench.message())
    specs = {"x": encrypted(), "w": message((bench.slots,))}
    by_specs = compile(f, inputs=specs).prepare(ciphertext, bench.message())
    assert by_arguments.source.program == by_specs.source.program
    with pytest.raises(TypeError, match=r"'x' of .*f is declared encrypted, found a tensor"):
        compile(f, inputs=specs).prepare(bench.message(), bench.message())


def test_rule_36_containers_are_no_arguments() -> None:
    f = compile(lambda x: x)
    for container in ([np.ones(1)], (np.ones(1),), {"a": np.ones(1)}):
        with pytest.raises(TypeError, match="argument x is a"):
            f(container)


def test_rule_36_pythons_own_arrays_are_arrays(bench: Any) -> None:
    numbers = array("d", [1.0, 2.0, 3.0])
    f = compile(lambda x: x + numbers)
    for argument in (numbers, memoryview(numbers), np.array(numbers)):
        np.testing.assert_array_equal(f(argument), [2.0, 4.0, 6.0])
    assert len(f.specializations) == 1
    numbers[0] = 10.0
    np.testing.assert_array_equal(f(np.zeros(3)), [10.0, 2.0, 3.0])
    found = bench.decrypt(bench.encrypt(memoryview(numbers)) + numbers)[:3]
    assert np.abs(found - [20.0, 4.0, 6.0]).max() < 1e-5


def test_rule_37_scalars_are_static_and_steer_the_function() -> None:
    @compile
    def f(x: Any, count: int, negate: bool = False, name: str = "add") -> Any:
        for _ in range(count):
            x = x + 1 if name == "add" else x * 2
        return -x if negate else x

    one = np.ones(1)
    assert f(one, 3) == 4
    assert f(one, 3, True) == -4
    assert f(one, 2, name="mul") == 4
    assert [entry.name for entry in f.specializations[0].program.walk()].count("tensor.add") == 3
    assert f.specializations[0].program.input_names == ("x",)
    for value in (np.inf, complex(0, np.nan)):
        with pytest.raises(ValueError, match="must be finite"):
            f(one, value)


def test_rule_38_plaintext_arguments(bench: Any) -> None:
    """Ours has one form of plaintext, and takes it."""
    x, ciphertext = bench.fresh()
    y = bench.message(1)
    out = compile(lambda c, p: p - c)(ciphertext, bench.engine.encode(y))
    assert np.abs(bench.decrypt(out) - (y - x)).max() < 1e-6


def test_rule_39_public_arguments_stay_public(bench: Any) -> None:
    _, ciphertext = bench.fresh()
    specialization = compile(lambda x, w: (x * (w + 1), w * 2)).prepare(ciphertext, bench.message())
    assert operations(specialization).count("tensor.add") == 1
    assert [entry.kind for entry in specialization.program.inputs.values()] == [
        "ciphertext",
        "tensor",
    ]


def test_rule_57_input_specs() -> None:
    assert encrypted() == InputSpec("encrypted")
    assert encrypted(2, 2**30, parts=3, batch_shape=(2,)).batch_shape == (2,)
    assert plaintext(level=1).role == "plaintext"
    assert message((2, 3), "float32").dtype == "float32"
    assert static(3).value == 3
    with pytest.raises(AttributeError):
        encrypted().level = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: InputSpec("secret"), ValueError),  # type: ignore[arg-type]
        (lambda: InputSpec("message", level=1), ValueError),
        (lambda: InputSpec("encrypted", value=1), ValueError),
        (lambda: encrypted(-1), ValueError),
        (lambda: encrypted(True), TypeError),
        (lambda: encrypted(scale=0.0), ValueError),
        (lambda: encrypted(scale=float("inf")), ValueError),
        (lambda: encrypted(parts=4), ValueError),
        (lambda: encrypted(batch_shape=(-1,)), ValueError),
        (lambda: static([1]), TypeError),
        (lambda: static(float("nan")), ValueError),
        (lambda: message("ab"), TypeError),
    ],
)
def test_rule_58_input_specs_are_checked(make: Any, error: Any) -> None:
    with pytest.raises(error):
        make()


def test_rule_59_every_parameter_needs_a_spec() -> None:
    with pytest.raises(CompileInputError, match=r"missing: \['y'\], not a parameter: \['z'\]"):
        capture(lambda x, y: x, inputs={"x": message(), "z": message()})
    with pytest.raises(CompileInputError):
        compile(lambda x, y: x, inputs={"x": message((1,))})
    assert issubclass(CompileInputError, ValueError)
    with pytest.raises(TypeError, match="fixed signature"):
        capture(lambda *x: x, inputs={"x": message((1,))})


def test_rule_60_a_call_gives_what_specs_leave_open(bench: Any) -> None:
    f = compile(lambda x, k: x * k, inputs={"x": encrypted(), "k": static(1)})
    x, cx = bench.fresh(batch=(2,), level=2)
    assert np.abs(bench.decrypt(f(cx, 3)) - 3 * x).max() < 1e-6
    assert f.specializations[0].program.inputs["x"].level == 2

"""Reports about operands, capture and Python's ways to make functions, restated for fhelium."""

from __future__ import annotations

import builtins
import code
import contextlib
import functools
import importlib.util
import io
import linecache
import py_compile
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fhelium.compile import CompiledCallable, capture, compile, encrypted
from fhelium.errors import PartsMismatch, ScaleMismatch


def error_of(bench: Any, ciphertext: Any, exact: Any) -> float:
    return float(np.abs(bench.decrypt(ciphertext) - exact).max())


def ways(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The same function run eagerly and compiled."""
    return [function, compile(function)]


# --- operands stay as they were --------------------------------------------------------------

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "swapped": lambda x, y: y - x,
    "twice": lambda x, y: x + y + y,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "x * x": lambda x: x * x,
    "x + x": lambda x: x + x,
    "x - x": lambda x: x - x,
    "x ** 2": lambda x: x**2,
    "-x": lambda x: -x,
    "+x": lambda x: +x,
    "x * 3": lambda x: x * 3,
    "0.5 * x": lambda x: 0.5 * x,
    "1 - x": lambda x: 1 - x,
    "relinearize": lambda x: (x * x).relinearize(),
    "rescale": lambda x: (x * 0.5).rescale(),
    "late relinearize": lambda x: (x * x).rescale().relinearize(),
    "rotate": lambda x: x.rotate(1),
    "rotate by 0": lambda x: x.rotate(0),
    "conjugate": lambda x: x.conjugate(),
    "drop_levels": lambda x: x.drop_levels(1),
    "drop no levels": lambda x: x.drop_levels(0),
    "numpy": lambda x: np.add(np.multiply(x, 2), np.roll(x, 1, axis=-1)),
}


@pytest.mark.parametrize("name", UNARY)
def test_an_operation_leaves_its_operand(bench: Any, name: str) -> None:
    """TenSEAL 354: z = x.mul(y) changed x and y, and z was wrong."""
    _, cx = bench.fresh(batch=(2,))
    before = cx._residues().copy()
    state = cx.level, cx.scale, cx.parts
    for run in ways(UNARY[name]):
        first = run(cx)
        again = run(cx)
        np.testing.assert_array_equal(first._residues(), again._residues())
        # A result that changes must not change the operand, nor the other way round.
        (first + 1) * 2
        np.testing.assert_array_equal(cx._residues(), before)
        assert (cx.level, cx.scale, cx.parts) == state


@pytest.mark.parametrize("kind", ["ciphertext", "same", "one value", "array", "plaintext", "list"])
@pytest.mark.parametrize("name", BINARY)
def test_an_operation_leaves_both_operands(bench: Any, name: str, kind: str) -> None:
    """TenSEAL 354: with one value each, with arrays, and with the same object twice."""
    x, cx = bench.fresh()
    if kind == "one value":
        cx, other = bench.encrypt([0.5]), bench.encrypt([0.25])
        x = np.r_[0.5, np.zeros(bench.slots - 1)]
    else:
        other = {
            "ciphertext": lambda: bench.encrypt(bench.message(1)),
            "same": lambda: cx,
            "array": lambda: bench.message(1),
            "plaintext": lambda: bench.engine.encode(bench.message(1)),
            "list": lambda: [0.5, 0.25, 1.0],
        }[kind]()

    def contents(value: Any) -> Any:
        if kind == "plaintext" and value is other:
            return bench.engine.decode(value)
        return value._residues() if hasattr(value, "_residues") else np.array(value)

    before = contents(cx).copy(), contents(other).copy()
    operation = BINARY[name]
    runs = [operation] if kind == "list" else ways(operation)
    for run in runs:
        np.testing.assert_array_equal(run(cx, other)._residues(), operation(cx, other)._residues())
        np.testing.assert_array_equal(contents(cx), before[0])
        np.testing.assert_array_equal(contents(other), before[1])
    assert error_of(bench, cx, x) <= 1e-6


def test_in_place_operators_make_new_values(bench: Any) -> None:
    """TenSEAL 354: `x += y` rebinds x; whoever else holds it sees no change."""
    x, cx = bench.fresh()

    def accumulate(x: Any) -> Any:
        total = x
        total += x
        total *= 2
        total -= 1
        return total

    for run in ways(accumulate):
        assert error_of(bench, run(cx), 4 * x - 1) <= 1e-5
        assert error_of(bench, cx, x) <= 1e-6


def test_returned_operands_and_captured_values_are_safe(bench: Any) -> None:
    """TenSEAL 354: outputs that are inputs, the same output twice, a captured ciphertext."""
    x, cx = bench.fresh()
    y, cy = bench.fresh(1)

    def function(x: Any) -> Any:
        total = x + cy
        return x, total, total, cy, x * 2

    before = cx._residues(), cy._residues()
    for run in ways(function):
        for found, exact in zip(run(cx), (x, x + y, x + y, y, 2 * x), strict=True):
            assert error_of(bench, found, exact) <= 1e-6
            found + 1
        np.testing.assert_array_equal(cx._residues(), before[0])
        np.testing.assert_array_equal(cy._residues(), before[1])


# --- transparent ciphertexts -----------------------------------------------------------------


def diagonals(matrix: Any) -> Callable[[Any], Any]:
    """The product with a matrix by its diagonals, as in Halevi and Shoup 2014."""
    size = len(matrix)
    rows = np.arange(size)
    parts = [matrix[rows, (rows + step) % size] for step in range(size)]

    def product(x: Any) -> Any:
        total = x * parts[0]
        for step in range(1, size):
            total = total + x.rotate(step) * parts[step]
        return total.rescale()

    return product


def test_results_that_are_zero_work(bench: Any) -> None:
    """TenSEAL 398 and 33: ct * zeros and ct - ct were refused as transparent."""
    x, cx = bench.fresh()
    y, cy = bench.fresh(1)
    zeros = np.zeros(bench.slots)
    plain = bench.engine.encode(0.0)
    for function, exact in (
        (lambda c: c * zeros, zeros),
        (lambda c: c * 0, zeros),
        (lambda c: c * 0.0, zeros),
        (lambda c: c * -0.0, zeros),
        (lambda c: c * plain, zeros),
        (lambda c: c - c, zeros),
        (lambda c: c + -c, zeros),
        (lambda c: c + zeros, x),
        (lambda c: (c - c) * (c - c), zeros),
        (lambda c: ((c - c) * cy).relinearize().rescale(), zeros),
        (lambda c: (c - c) + cy, y),
        (lambda c: (c * zeros).rescale().rotate(1), zeros),
        (lambda c: (c - c).conjugate(), zeros),
        (lambda c: (c * 0) * (c * 0), zeros),
    ):
        for run in ways(function):
            assert error_of(bench, run(cx), exact) <= 1e-6


@pytest.mark.parametrize("kind", ["identity", "zero", "permutation", "one row"])
def test_products_with_sparse_matrices(make_bench: Any, kind: str) -> None:
    """TenSEAL 398: ct @ identity, whose diagonals but one are zero."""
    bench = make_bench((1, 2, 3, 4, 5, 6, 7), depth=2, log_n=10, allow_insecure=True)
    matrix = {
        "identity": np.eye(8),
        "zero": np.zeros((8, 8)),
        "permutation": np.roll(np.eye(8), 3, axis=1),
        "one row": np.eye(8)[[2] * 8],
    }[kind]
    x = bench.message()[:8]
    # Repeated, so that turning the slots turns the eight values.
    cx = bench.encrypt(np.tile(x, bench.slots // 8))
    for run in ways(diagonals(matrix)):
        assert np.abs(bench.decrypt(run(cx))[:8] - matrix @ x).max() <= 1e-6


# --- three parts -----------------------------------------------------------------------------


def turned_square(x: Any) -> Any:
    product = x * x
    return product.rotate(1)


def conjugated_square(x: Any) -> Any:
    product = x * x
    return product.conjugate()


def doubly_squared(x: Any) -> Any:
    product = x * x
    return product * x


@pytest.mark.parametrize(
    ("function", "name"),
    [(turned_square, "rotate"), (conjugated_square, "conjugate"), (doubly_squared, "multiply")],
)
def test_three_parts_where_two_are_needed(bench: Any, function: Any, name: str) -> None:
    """EVA 36: encrypted size must be 2."""
    _, cx = bench.fresh()
    place = f"{__file__}:{function.__code__.co_firstlineno + 2} in {function.__name__}"
    with pytest.raises(PartsMismatch, match=f"{name}.* 3 parts .*relinearize"):
        function(cx)
    for call in (
        lambda: compile(function)(cx),
        lambda: capture(function, inputs={"x": encrypted()}, parameters=bench.engine.parameters),
    ):
        with pytest.raises(PartsMismatch, match=f"{name}.* 3 parts .*relinearize") as caught:
            call()
        assert place in str(caught.value)


def test_a_sum_of_squared_differences(bench: Any) -> None:
    """EVA 36: the program that was compiled, with its relinearization written down."""
    a, b = np.arange(16.0) % 10, np.arange(16.0) % 5

    def distance(a: Any, b: Any) -> Any:
        difference = a - b
        total = (difference * difference).relinearize().rescale()
        for step in (8, 4, 2, 1):
            total = total + total.rotate(step)
        return total

    ca, cb = (bench.encrypt(np.tile(v, bench.slots // 16)) for v in (a, b))
    for run in ways(distance):
        assert error_of(bench, run(ca, cb), ((a - b) ** 2).sum()) <= 1e-3


# --- where functions come from ---------------------------------------------------------------


def made(source: str, filename: str = "<string>", name: str = "f") -> Any:
    names: dict[str, Any] = {"np": np}
    exec(builtins.compile(source, filename, "exec"), names)
    return names[name]


def console() -> Any:
    """A function typed into a Python prompt."""
    names: dict[str, Any] = {}
    prompt = code.InteractiveConsole(names, filename="<stdin>")
    for line in ("def f(x):", "    return x * 2 + 1", "", ""):
        prompt.push(line)
    return names["f"]


def notebook_cell() -> Any:
    """A function of a notebook cell, whose source stands in linecache."""
    source, filename = "\n\ndef f(x):\n    return x * 2 + 1\n", "<ipython-input-7-0123456789ab>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    return made(source, filename)


def replaced_code() -> Any:
    """A function whose code is not where its module's source says."""
    function = made("def f(x):\n    return x")
    function.__code__ = made("def g(x):\n    return x * 2 + 1", name="g").__code__
    return function


def decorated() -> Any:
    inner = made("def f(x):\n    return x * 3")

    @functools.wraps(inner)
    def wrapper(x: Any) -> Any:
        return x * 2 + 1

    return wrapper


SOURCES: dict[str, Callable[[], Any]] = {
    "exec": lambda: made("def f(x):\n    return x * 2 + 1"),
    "exec without a file": lambda: made("def f(x):\n    return x * 2 + 1", filename=""),
    "eval of a lambda": lambda: eval("lambda x: x * 2 + 1"),
    "prompt": console,
    "notebook": notebook_cell,
    "nested": lambda: made(
        "def g():\n    def f(x):\n        return x * 2 + 1\n    return f\nf = g()"
    ),
    "types.FunctionType": lambda: types.FunctionType(
        made("def f(x):\n    return x * 2 + 1").__code__, {}, "anything"
    ),
    "replaced code": replaced_code,
    "decorated": decorated,
    "comprehension": lambda: [lambda x, k=k: x * k + 1 for k in (1, 2)][1],
    "no name": lambda: types.FunctionType((lambda x: x * 2 + 1).__code__, {}, ""),
    "non-ASCII name": lambda: made("def größe(x):\n    return x * 2 + 1", name="größe"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_functions_without_a_source_file(bench: Any, source: str) -> None:
    """numba 7641: functions made by exec, in a prompt or a notebook could not be compiled."""
    function = SOURCES[source]()
    x, cx = bench.fresh()
    compiled = compile(function)
    arguments = (cx,) if source != "comprehension" else (cx, 2)
    assert error_of(bench, compiled(*arguments), 2 * x + 1) <= 1e-6
    assert repr(compiled)
    assert compiled.explain(*arguments).startswith("hit")
    for operation in compiled.specializations[0].source.program.walk():
        file, line, name = operation.location
        assert line >= 1
        assert name
        assert isinstance(file, str)


@pytest.mark.parametrize("filename", ["<string>", "<stdin>", "<ipython-input-3-abc>", "/gone.py"])
def test_errors_name_the_best_place_there_is(bench: Any, filename: str) -> None:
    """numba 7641: no source line is no reason for no place."""
    _, cx = bench.fresh()
    function = made("\n\ndef f(x):\n    y = x * x\n    return y + x\n", filename)
    with pytest.raises(ScaleMismatch, match=rf"{filename}:5 in f.*{filename}:4 in f"):
        compile(function)(cx)


def test_a_module_without_source(bench: Any, tmp_path: Path) -> None:
    """numba 7641: only the compiled file is there."""
    source, target = tmp_path / "gone.py", tmp_path / "gone.pyc"
    source.write_text("def f(x):\n    return x * 2 + 1\n")
    py_compile.compile(str(source), cfile=str(target), doraise=True)
    source.unlink()
    spec = importlib.util.spec_from_file_location("gone", target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x, cx = bench.fresh()
    compiled = compile(module.f)
    assert error_of(bench, compiled(cx), 2 * x + 1) <= 1e-6
    location = compiled.specializations[0].program.walk()[-1].location
    assert location == (str(source), 2, "f")


def test_lambdas_on_one_line_are_two_callables(bench: Any) -> None:
    """numba 7641: two lambdas of one line were taken for one."""
    x, cx = bench.fresh()
    one, two = compile(lambda x: x + 1), compile(lambda x: x - 1)
    many = [compile(lambda x, k=k: x + k) for k in range(3)]
    for _ in range(2):
        assert error_of(bench, one(cx), x + 1) <= 1e-6
        assert error_of(bench, two(cx), x - 1) <= 1e-6
        for k, function in enumerate(many):
            assert error_of(bench, function(cx), x + k) <= 1e-6


def test_a_function_redefined_under_one_name(bench: Any) -> None:
    """numba 7641: the first definition ran in place of the second."""
    x, cx = bench.fresh()
    callables = []
    for k in (1, 2, 3):
        callables.append(compile(made(f"def f(x):\n    return x + {k}")))
        assert error_of(bench, callables[-1](cx), x + k) <= 1e-6
    for k, function in enumerate(callables, 1):
        assert error_of(bench, function(cx), x + k) <= 1e-6
    assert [f.misses for f in callables] == [1, 1, 1]


PROMPT = """
import fhelium as fh
engine = fh.Engine(fh.Parameters(depth=1, scale_bits=40, log_n=10, allow_insecure=True))
keys = engine.keygen()
@fh.jit
def f(x):
    return x * 2 + 1

print(round(float(engine.decrypt(f(engine.encrypt(0.5, keys.public)), keys.secret)[0]), 5))
"""


@pytest.mark.parametrize("arguments", [["-i", "-q"], ["-"], ["-c", PROMPT]], ids=["-i", "-", "-c"])
def test_a_real_prompt_and_scripts_without_files(arguments: list[str]) -> None:
    """numba 7641: `python -i`, a script on standard input and `python -c`."""
    result = subprocess.run(
        [sys.executable, *arguments],
        input=PROMPT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "2.0" in result.stdout, result.stderr


def test_the_help_of_a_compiled_function_is_its_own() -> None:
    """numba 7641: a function without source still has its name, signature and documentation."""
    function = made('def f(x, *, k=2):\n    "Adds k."\n    return x + k')
    compiled = compile(function)
    assert isinstance(compiled, CompiledCallable)
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        help(compiled)
    assert (compiled.__name__, compiled.__doc__) == ("f", "Adds k.")
    assert str(compiled.__signature__) == "(x, *, k=2)"
    assert shown.getvalue()


# --- zeros among the weights -----------------------------------------------------------------


@pytest.mark.parametrize("fixed", [False, True], ids=["argument", "captured"])
def test_zeros_among_the_weights_change_nothing(bench: Any, fixed: bool) -> None:
    """TenSEAL 449: one 0.0 in the clear matrix, and later "parameter mismatch"."""
    x, cx = bench.fresh()
    random = bench.message(3)
    with_zero = random.copy()
    with_zero[5] = 0.0
    variants = [random, with_zero, np.zeros(bench.slots), np.full(bench.slots, -0.0)]
    held = random.copy()

    def twice(x: Any, w: Any) -> Any:
        return ((x * w).rescale() * w).rescale()

    compiled = compile(lambda x: twice(x, held)) if fixed else compile(twice)
    texts, states = set(), set()
    for weights in variants:
        held[:] = weights
        found = compiled(cx) if fixed else compiled(cx, weights)
        for result in (found, twice(cx, weights)):
            states.add((result.level, str(result.scale), result.parts))
            assert error_of(bench, result, x * weights * weights) <= 1e-6
        texts.add(compiled.specializations[-1].program.to_text())
    assert len(compiled.specializations) == len(texts) == len(states) == 1

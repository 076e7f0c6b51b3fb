"""Reports about precision and number formats, restated for fhelium."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import compile
from fhelium.errors import ArgumentError

# The floating-point transforms' share of an error, relative to the largest value: noise.rs.
TRANSFORM = 2.0**-49


def error_of(bench: Any, ciphertext: Any, exact: Any) -> float:
    """The largest error of a slot; of its real part where the message is real."""
    real = not np.iscomplexobj(exact)
    return float(np.abs(bench.decrypt(ciphertext, real=real) - exact).max())


# --- large values ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def default(make_bench: Any) -> Any:
    """The default parameters."""
    return make_bench(rotations=(1, 2, 4, 8, 16, 32))


@pytest.mark.parametrize(
    ("left", "right", "bound"), [(7.0, 8.0, 1e-4), (100.0, 100.0, 1e-2), (-100.0, 100.0, 1e-2)]
)
def test_products_of_values_beyond_one(
    default: Any, left: float, right: float, bound: float
) -> None:
    """heir 1823: 7 * 8 gave 1e-10 instead of 56."""
    x, y = default.encrypt(left), default.encrypt(right)
    for run in (lambda x, y: (x * y).relinearize().rescale(), lambda x, y: (x * y).rescale()):
        for function in (run, compile(run)):
            assert error_of(default, function(x, y), left * right) <= bound


def test_sums_of_products_beyond_one(default: Any) -> None:
    """heir 1823: the sum of 64 products, over ciphertexts and over slots."""
    x = default.encrypt(8.0)
    total = (x * x).relinearize()
    for _ in range(63):
        total = total + (x * x).relinearize()
    assert error_of(default, total.rescale(), 64 * 64.0) <= 1e-2
    row = default.encrypt(np.full(64, 8.0))
    total = (row * row).relinearize().rescale()
    for step in (1, 2, 4, 8, 16, 32):
        total = total + total.rotate(step)
    assert abs(default.decrypt(total)[0] - 64 * 64.0) <= 1e-2


@pytest.mark.parametrize("scale", [2**30, 2**40])
def test_the_largest_safe_value_is_known_and_kept(usual: Any, scale: int) -> None:
    """heir 1823: there was no way to know which inputs are too large."""
    assert "level 0" in fh.Parameters.largest_message.__doc__
    parameters = usual.engine.parameters
    largest = parameters.largest_message * (2**40 / scale)
    assert parameters.largest_message >= 2**8
    for shape in ((), (1,), (usual.slots,)):
        safe = np.full(shape, 0.999 * largest)
        ciphertext = usual.encrypt(safe, level=0, scale=scale)
        assert abs(usual.decrypt(ciphertext)[0] - 0.999 * largest) <= 1e-6 * 2**40 / scale
        for value in (1.001 * largest, -1.001 * largest, 1e30):
            with pytest.raises(
                ArgumentError, match=r"at scale .* and level 0 \|values\| must stay"
            ):
                usual.encrypt(np.full(shape, value), level=0, scale=scale)
    # Higher levels hold more.
    assert error_of(usual, usual.encrypt(1e6, level=2), 1e6) <= 1e-6


# --- the search for bad inputs ---------------------------------------------------------------


def squared_score(columns: list[Any], w: list[float], b: float) -> Any:
    total = columns[0] * w[0]
    for column, weight in zip(columns[1:], w[1:], strict=True):
        total = total + column * weight
    inner = total.rescale() + b
    return (inner * inner).relinearize().rescale()


def score_bound(noise: fh.NoiseModel, w: list[float], b: float) -> float:
    fresh = noise.encrypt(noise.encode(3.0))
    total = noise.multiply(fresh, noise.encode(abs(w[0])))
    for weight in w[1:]:
        total = noise.add(total, noise.multiply(fresh, noise.encode(abs(weight))))
    total = noise.rescale(total)
    inner = noise.add(total, noise.encode(abs(b), level=total.level, scale=total.scale))
    return noise.decode(noise.rescale(noise.key_switch(noise.multiply(inner, inner))))


def test_a_search_for_bad_inputs_finds_none(make_bench: Any) -> None:
    """TenSEAL 518: a search found errors near 2e-3 in a circuit of depth 2, scale 2^40."""
    bench = make_bench(conjugation=False, depth=2, scale_bits=40, log_n=13)
    generator = np.random.default_rng(0)
    w, b = [float(weight) for weight in generator.uniform(-1, 1, 8)], 0.25

    @compile
    def score(x0: Any, x1: Any, x2: Any, x3: Any, x4: Any, x5: Any, x6: Any, x7: Any) -> Any:
        return squared_score([x0, x1, x2, x3, x4, x5, x6, x7], w, b)

    bound = score_bound(bench.noise, w, b)
    corners = np.array(list(itertools.product([-3.0, 3.0], repeat=8)))
    inputs = np.concatenate([corners, generator.uniform(-3, 3, (2000, 8))])
    worst = 0.0
    for _ in range(200):
        columns = [bench.encrypt(inputs[:, place]) for place in range(8)]
        found = bench.decrypt(score(*columns))[: len(inputs)]
        errors = np.abs(found - (inputs @ np.array(w) + b) ** 2)
        worst = max(worst, errors.max())
        # Climb: the worst inputs, and neighbours of them, in place of the others.
        best = inputs[np.argsort(errors)[-64:]]
        steps = generator.normal(0, 0.3, (31, *best.shape))
        inputs = np.concatenate([best, np.clip(best + steps, -3, 3).reshape(-1, 8)])
    assert worst <= 1e-5
    assert worst <= bound


@pytest.mark.parametrize("parts", [2, 3])
def test_the_estimate_is_not_below_the_error(usual: Any, parts: int) -> None:
    """TenSEAL 518: an estimate that is printed has to hold, for three parts as well."""
    x, cx = usual.fresh()
    noise = usual.noise
    bound = noise.encrypt(noise.encode(1.0))
    product, estimate = cx * cx, noise.multiply(bound, bound)
    if parts == 2:
        product, estimate = product.relinearize(), noise.key_switch(estimate)
    for _ in range(2):
        found = usual.decrypt(product.rescale(), real=False)
        assert np.abs(found - x**2).max() <= noise.decode(noise.rescale(estimate))
        product, estimate = product * 3 * 0.5, noise.multiply_integer(estimate, 3)
        x, estimate = x * np.sqrt(1.5), noise.multiply(estimate, noise.encode(0.5))


# --- tiny values -----------------------------------------------------------------------------

TINY = [5e-324, 1e-300, 1e-30, 2.0**-60, -0.0, -5e-324, -(2.0**-60), np.nextafter(0, 1)]


@pytest.mark.parametrize("bits", [20, 30, 40, 50, 59, 60, 64, 80])
@pytest.mark.parametrize("imaginary", [False, True])
def test_tiny_values_are_encoded_right(usual: Any, bits: int, imaginary: bool) -> None:
    """OpenFHE 1257: tiny inputs were encoded through shifts by out-of-range amounts."""
    lists = [*([value] for value in TINY), TINY, [*TINY, 1.0], [1.0, *TINY], [5e-324] * 8]
    for values in lists:
        message = np.array(values) * (1j if imaginary else 1)
        encoded = usual.engine.encode(message, scale=2**bits)
        found = usual.engine.decode(encoded, real=False)
        padded = np.zeros(usual.slots, complex)
        padded[: len(values)] = message
        bound = 2.0**-bits * usual.slots + TRANSFORM * np.abs(message).max()
        assert np.abs(found - padded).max() <= bound
    for value in TINY:
        encoded = usual.engine.encode(value * (1j if imaginary else 1), scale=2**bits)
        found = usual.engine.decode(encoded, real=False)
        assert np.abs(found - value * (1j if imaginary else 1)).max() <= 2.0**-bits


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, complex(0, np.nan), complex(np.inf, 0)])
def test_values_that_are_no_numbers_are_named(bench: Any, bad: Any) -> None:
    """OpenFHE 1257, the other end of the range."""
    for values, index in (([0.0, bad], 1), (bad, 0), (np.full(bench.slots, bad), 0)):
        for call in (bench.engine.encode, bench.encrypt, lambda v: bench.encrypt(1.0) + v):
            with pytest.raises(ArgumentError, match=rf"index {index} .*finite"):
                call(values)


# --- the shortest chains ---------------------------------------------------------------------

SHORT = [
    *({"depth": 1, "scale_bits": 40, "log_n": n, "allow_insecure": True} for n in (10, 11, 12)),
    {"depth": 1, "scale_bits": 40, "log_n": 13},
    {"depth": 1, "scale_bits": 28, "log_n": 12},
    {"depth": 0, "scale_bits": 40, "log_n": 13},
]


@pytest.mark.parametrize("parameters", SHORT, ids=str)
def test_key_switches_on_the_shortest_chains(make_bench: Any, parameters: Any) -> None:
    """phantom-fhe 8: a rotation by 0 on a chain of three primes gave 1e29."""
    bench = make_bench(rotations=(1, -1), **parameters)
    x = bench.message() + 1j * bench.message(1)
    cx = bench.encrypt(x)
    noise = bench.noise
    bound = noise.decode(noise.key_switch(noise.encrypt(noise.encode(np.sqrt(2)))))
    if parameters["scale_bits"] == 40:
        bound = min(bound, 1e-5)
    for step in (0, 1, -1, bench.slots - 1, bench.slots, -bench.slots):
        for function in (lambda c, s=step: c.rotate(s), lambda c, s=step: np.roll(c, -s)):
            assert error_of(bench, function(cx), np.roll(x, -step)) <= bound
            assert error_of(bench, compile(function)(cx), np.roll(x, -step)) <= bound
    for run in (lambda c: c.conjugate(), compile(lambda c: c.conjugate())):
        assert error_of(bench, run(cx), x.conj()) <= bound


# --- number formats --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", ">f8", ">c16"]
)
def test_the_decrypted_type_is_the_documented_one(bench: Any, dtype: str) -> None:
    """einhops 2: float32 in, float64 out of decrypt, so that every comparison raised."""
    assert "float64" in fh.Engine.decrypt.__doc__
    values = np.array([0, 1, 1, 0], dtype)
    if values.dtype.kind == "c":
        values = values * values.dtype.type(1 - 2j)
    ciphertext = bench.encrypt(values)
    sources = (ciphertext, compile(lambda x: x + 0.0)(ciphertext), ciphertext + values * 0)
    for source in sources:
        real, whole = bench.decrypt(source), bench.decrypt(source, real=False)
        assert (real.dtype, whole.dtype) == (np.float64, np.complex128)
        np.testing.assert_allclose(real[:4], values.real, atol=1e-6)
        np.testing.assert_allclose(whole[:4], values, atol=1e-6)


def test_arrays_of_other_libraries(bench: Any) -> None:
    """einhops 2: torch tensors, and whatever speaks DLPack."""

    class Foreign:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    for dtype in ("f4", "f8", "i8", "c8"):
        values = np.arange(4).astype(dtype)
        for call in (bench.encrypt, lambda v: bench.encrypt(0.0) + v):
            found = bench.decrypt(call(Foreign(values)))
            assert found.dtype == np.float64
            np.testing.assert_allclose(found[:4], values.real, atol=1e-6)
        clear = compile(lambda v: v + v)(Foreign(values))
        assert clear.dtype == values.dtype
        np.testing.assert_array_equal(clear, values + values)


def test_torch_tensors(bench: Any) -> None:
    """einhops 2: the reporter's own case."""
    torch = pytest.importorskip("torch")
    values = torch.arange(4, dtype=torch.float32)
    found = bench.decrypt(bench.encrypt(values))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found[:4], values.numpy(), atol=1e-6)


# --- constants beside products that are not rescaled -----------------------------------------


@pytest.mark.parametrize("constant", [0.3, -1.75, 1e-9, 1.0, 0.3 - 0.7j])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_constants_beside_products_that_are_not_rescaled(
    usual: Any, bench: Any, constant: complex, depth: int
) -> None:
    """Measured on a peer: x * x + 0.3 at scale 2^80 lost the constant, without an exception."""
    usual = usual if depth == 1 else bench
    x, cx = usual.fresh()

    def product(x: Any) -> Any:
        value = x
        for _ in range(depth):
            value = value * x
            value = value.relinearize() if not isinstance(value, np.ndarray) else value
        return value

    exact = x ** (depth + 1)
    scale = 2 ** (40 * (depth + 1))
    forms = {
        "scalar": constant,
        "array": np.full(usual.slots, constant),
        "plaintext": usual.engine.encode(constant, scale=scale),
        "array plaintext": usual.engine.encode(np.full(usual.slots, constant), scale=scale),
    }
    for name, form in forms.items():
        for function, result in (
            (lambda c, f: product(c) + f, exact + constant),
            (lambda c, f: f + product(c), exact + constant),
            (lambda c, f: f - product(c), constant - exact),
        ):
            eager = function(cx, form)
            assert eager.scale == scale
            assert error_of(usual, eager, result) <= 1e-6, name
            fixed = compile(lambda c: function(c, form))(cx)  # noqa: B023
            np.testing.assert_array_equal(fixed._residues(), eager._residues())
            if not isinstance(form, complex):
                given = compile(function)(cx, form)
                np.testing.assert_array_equal(given._residues(), eager._residues())


@pytest.mark.parametrize("bits", [20, 40, 53, 62, 63, 64, 65, 80, 127, 128, 160, 300])
def test_encoding_is_exact_to_its_scale_or_refused(usual: Any, bits: int) -> None:
    """Measured on a peer: encodings past 2^63 wrapped around."""
    values = [0.3, -0.3, 1.0, -1.0, 1 / 3, 2.0**-20]
    for value in values:
        found = usual.engine.decode(usual.engine.encode(value, scale=2**bits))
        assert np.abs(found - value).max() <= 2.0**-bits + 2.0**-52
    found = usual.engine.decode(usual.engine.encode(values, scale=2**bits))[: len(values)]
    assert np.abs(found - values).max() <= 2.0**-bits * usual.slots + 2.0**-45
    for level in range(8):
        # The most that the modulus at a level holds: beyond, the scale is refused by name.
        room = sum(np.log2(np.array(usual.engine.parameters.moduli[: level + 1], float)))
        if bits > room:
            with pytest.raises(ArgumentError, match=rf"2\^{bits} .*level {level}"):
                usual.engine.encode(0.3, level=level, scale=2**bits)
        elif bits < room - 1:
            found = usual.engine.encode(0.3, level=level, scale=2**bits)
            assert np.abs(usual.engine.decode(found) - 0.3).max() <= 2.0**-bits + 2.0**-52

"""Reports about levels, scales, keys, precision and parameters, restated for fhelium.

Each test names the public report that it restates; its docstring says what went wrong there.
"""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import capture, compile, encrypted
from fhelium.errors import (
    ArgumentError,
    LevelExhausted,
    LevelMismatch,
    ParameterError,
    PartsMismatch,
    ScaleMismatch,
    SecurityError,
)


def error_of(bench: Any, ciphertext: Any, exact: Any) -> float:
    return float(np.abs(bench.decrypt(ciphertext) - exact).max())


def test_phantom_5_seal_659_levels_reached_by_two_paths(usual: Any) -> None:
    """Sums of values that reached a level by different paths were refused as mismatched."""
    (x, cx), (y, cy) = usual.fresh(), usual.fresh(1)
    square = (cx * cx).relinearize().rescale()
    lowered = cx.drop_levels(1)
    product = (square * lowered).relinearize().rescale()
    assert error_of(usual, product, x**3) < 1e-6
    # Scales that are only nominally equal differ by about 2^-20 for each rescale.
    assert error_of(usual, product + cy.drop_levels(2), x**3 + y) < 4e-6
    assert error_of(usual, square + cy.drop_levels(1) - lowered, x * x + y - x) < 4e-6
    with pytest.raises(ScaleMismatch, match=r"2\^80 \(level 7\) and 2\^40 \(level 7\).*rescale"):
        cx * y + cy


def test_seal_python_107_a_fresh_value_beside_a_rescaled_one(usual: Any) -> None:
    """The error did not say which operand was where."""
    (_, cx), (_, cy) = usual.fresh(), usual.fresh(1)
    product = (cx * cx).relinearize().rescale()
    with pytest.raises(LevelMismatch, match=r"left.* level 6 .*right.* level 7.*drop_levels\(1\)"):
        product - cy
    with pytest.raises(LevelMismatch, match=r"left.* level 7 .*right.* level 6.*drop_levels\(1\)"):
        cy - product


def all_operations(bench: Any, x: Any, y: Any) -> list[Any]:
    array = bench.message(9)
    product = x * y
    return [
        x + y,
        x - y,
        x + array,
        array - x,
        x * array,
        product,
        product.relinearize(),
        product.rescale(),
        x * x,
        x + x,
        x - x,
        -x,
        x * 3,
        x**2,
        x.rotate(1),
        x.conjugate(),
        x.drop_levels(1),
        bench.engine.rotate_many(x, [1, 2]),
    ]


def test_tenseal_354_operands_stay_as_they_were(bench: Any) -> None:
    """x.mul(y) changed x and y."""
    (_, cx), (_, cy) = bench.fresh(), bench.fresh(1)
    before = cx._residues(), cy._residues()
    all_operations(bench, cx, cy)
    all_operations(bench, cx, cx)
    compile(lambda a, b: all_operations(bench, a, b))(cx, cx)
    compile(lambda a, b: (a + b, a * b, a.rotate(1), a))(cx, cy)
    for value, residues in zip((cx, cy), before, strict=True):
        np.testing.assert_array_equal(value._residues(), residues)


def test_tenseal_398_transparent_results_work(bench: Any) -> None:
    """ct * zeros and ct - ct were refused as transparent."""
    x, cx = bench.fresh()
    ones, zeros = np.ones(bench.slots), np.zeros(bench.slots)
    for function, exact in (
        (lambda c: c * zeros, zeros),
        (lambda c: c * 0, zeros),
        (lambda c: c * 0.0, zeros),
        (lambda c: c - c, zeros),
        (lambda c: (c - c) * (c - c), zeros),
        (lambda c: c * ones, x),
        (lambda c: (c * zeros).rescale().rotate(1), zeros),
    ):
        assert error_of(bench, function(cx), exact) < 1e-6
        assert error_of(bench, compile(function)(cx), exact) < 1e-6


def test_tenseal_78_one_product_too_many(bench: Any) -> None:
    """scale out of bounds, raised late and without a line."""
    _, cx = bench.fresh()

    def power(x: Any) -> Any:
        for _ in range(5):
            x = (x * x).relinearize().rescale()
        return x

    ran = []
    for call in (lambda: power(cx), lambda: compile(power)(cx)):
        with pytest.raises(LevelExhausted, match=r"level 0 of 4.*Parameters\(depth=5\)"):
            ran.append(call())
    with pytest.raises(LevelExhausted, match=rf"{__file__}:\d+ in power"):
        capture(power, inputs={"x": encrypted()}, parameters=bench.engine.parameters)
    assert not ran


@pytest.mark.parametrize("special_primes", [1, 2, 3, 5])
def test_heongpu_24_key_switches_at_every_level(make_bench: Any, special_primes: int) -> None:
    """Rotations of a ciphertext at level 0 were wrong, for some digit layouts."""
    bench = make_bench(
        (1,), depth=4, scale_bits=40, log_n=10, special_primes=special_primes, allow_insecure=True
    )
    x, cx = bench.fresh()
    z = x + 1j * x[::-1]
    cz = bench.encrypt(z)
    for level in range(5):
        count = 4 - level
        low = cx.drop_levels(count)
        assert error_of(bench, low.rotate(1), np.roll(x, -1)) < 1e-5
        found = bench.decrypt(cz.drop_levels(count).conjugate(), real=False)
        assert np.abs(found - z.conj()).max() < 1e-5
        small = bench.encrypt(x, scale=2**20, level=level)
        assert error_of(bench, (small * small).relinearize(), x * x) < 5e-2


def test_heongpu_4_every_rotation_step() -> None:
    """Steps -3, -2, 1 and 4 were wrong."""
    engine = fh.Engine(fh.Parameters(depth=1, scale_bits=40, log_n=10, allow_insecure=True))
    keys = engine.keygen(rotations=range(engine.slots))
    engine.use(keys.evaluation())
    x = np.arange(engine.slots) / engine.slots
    ciphertext = engine.encrypt(x, keys.public)
    for step in [*range(-engine.slots + 1, engine.slots, 7), 1, -1, -2, -3, 4, 10**9, -(10**9)]:
        turned = engine.decrypt(ciphertext.rotate(step), keys.secret)
        assert np.abs(turned - np.roll(x, -step)).max() < 1e-5, step


def test_openfhe_675_rotation_by_zero_without_keys() -> None:
    """The process ended with map::at."""
    engine = fh.Engine(fh.Parameters(depth=1, scale_bits=40, log_n=10, allow_insecure=True))
    keys = engine.keygen()
    x = np.arange(8.0)
    ciphertext = engine.encrypt(x, keys.public)
    for step in (0, engine.slots, -engine.slots):
        turned = engine.decrypt(ciphertext.rotate(step), keys.secret)
        assert np.abs(turned[:8] - x).max() < 1e-5
    with pytest.raises(fh.errors.MissingKey, match="rotation 1"):
        ciphertext.rotate(1)


def test_lattigo_40_rescaling_once_too_often(usual: Any) -> None:
    """A second rescale gave a huge random number."""
    _, cx = usual.fresh()
    with pytest.raises(ScaleMismatch, match="rescaled already: rescale once after each product"):
        cx.rescale()
    product = (cx * cx).relinearize().rescale()
    with pytest.raises(ScaleMismatch, match="rescale"):
        product.rescale()


def test_seal_377_a_plaintext_encoded_above_the_ciphertext(usual: Any) -> None:
    """Multiplying a rescaled ciphertext by a plaintext of the top level failed."""
    (x, cx), w = usual.fresh(), usual.message(1)
    low = (cx * cx).relinearize().rescale()
    top = usual.engine.encode(w)
    assert error_of(usual, (low * top).rescale(), x * x * w) < 1e-6
    assert error_of(usual, low + top, x * x + w) < 1e-6
    with pytest.raises(LevelMismatch, match=r"level 7.* level 3"):
        cx * usual.engine.encode(w, level=3)


def test_seal_406_parameters_too_small_for_one_product() -> None:
    """Accepted when made, useless at the first product."""
    for log_n in (10, 11):
        with pytest.raises(SecurityError, match="log QP"):
            fh.Parameters(depth=1, scale_bits=40, log_n=log_n)


@pytest.mark.parametrize("constant", [0.3, -1.75, 1e-9])
def test_constants_beside_an_unrescaled_product(bench: Any, constant: float) -> None:
    """x * x + 0.3 at scale 2^80 lost the constant without a word."""
    x, cx = bench.fresh()
    forms = (constant, np.full(bench.slots, constant), bench.engine.encode(constant, scale=2**80))
    for form in forms:
        for function in (lambda c, f=form: c * c + f, lambda c, f=form: f + c * c):
            assert error_of(bench, function(cx), x * x + constant) < 1e-6
            assert error_of(bench, compile(function)(cx), x * x + constant) < 1e-6
    far = bench.engine.encode(constant, scale=2**100)
    assert np.abs(bench.engine.decode(far) - constant).max() < 1e-15


def test_lattigo_106_levels_of_results(usual: Any) -> None:
    """Relinearizing into an output of a higher level left a wrong level behind."""
    for level in range(8):
        message, ciphertext = usual.fresh(level, scale=2**30, level=level)
        kept = [
            ciphertext.rotate(1),
            ciphertext.conjugate(),
            -ciphertext,
            ciphertext + message,
            (ciphertext * ciphertext).relinearize() if level else ciphertext,
        ]
        for value in kept:
            assert value.level == level
            assert value._residues().shape[-2] == level + 1
        assert all(value.scale == ciphertext.scale for value in kept[:4])
        for count in range(level + 1):
            assert ciphertext.drop_levels(count)._residues().shape[-2] == level - count + 1
        if level:
            product = (ciphertext * np.ones(4)).rescale()
            assert (product.level, product._residues().shape[-2]) == (level - 1, level)


def test_seal_372_scales_that_the_primes_do_not_track(usual: Any) -> None:
    """After one rescale of a 2^40 value over 49-bit primes nothing could be added any more."""
    _, cx = usual.fresh(scale=2**30)
    _, other = usual.fresh(1)
    product = (cx * usual.engine.encode(0.5)).rescale()
    with pytest.raises(ScaleMismatch, match=r"2\^30.*2\^40.*rescale|encode"):
        product + other.drop_levels(1)
    for parameters in (usual.engine.parameters, fh.Parameters(depth=16)):
        scale = parameters.scale
        for level in range(parameters.depth, 0, -1):
            scale = scale * scale / parameters.moduli[level]
            assert abs(2 ** (scale.log2 - 40) - 1) < 2**-17


@pytest.mark.parametrize("factors", [(7.0, 8.0), (100.0, 100.0)])
def test_heir_1823_values_beyond_one(usual: Any, factors: tuple[float, float]) -> None:
    """7 * 8 gave 1e-10 instead of 56."""
    left, right = (usual.encrypt(np.full(64, factor)) for factor in factors)
    product = (left * right).relinearize().rescale()
    bound = 1e-4 if factors[0] == 7.0 else 1e-2
    assert np.abs(usual.decrypt(product)[:64] - factors[0] * factors[1]).max() <= bound
    total = sum(((left * right).relinearize() for _ in range(4)), left * 0 * right)
    assert total.parts in (2, 3)
    assert usual.engine.parameters.largest_message >= 256


def test_openfhe_1257_tiny_values(bench: Any) -> None:
    """Tiny inputs were encoded through shifts by out-of-range amounts."""
    tiny = [5e-324, 1e-300, 1e-30, 2.0**-60, -0.0, -5e-324]
    for bits in (20, 40, 59, 80):
        for values in (*([value] for value in tiny), [*tiny, 1.0]):
            encoded = bench.engine.encode(values, scale=2**bits)
            found = bench.engine.decode(encoded)[: len(values)]
            assert np.abs(found - values).max() <= 2.0**-bits * bench.slots + 1e-15


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, complex(0, np.nan), 1e300])
def test_values_that_cannot_be_encoded_are_named(bench: Any, bad: Any) -> None:
    with pytest.raises(ArgumentError, match=r"\b1\b"):
        bench.engine.encode([0.0, bad])


@pytest.mark.parametrize("log_n", [10, 11, 12, 13])
def test_phantom_8_rotations_on_the_shortest_chains(make_bench: Any, log_n: int) -> None:
    """Rotation by 0 on a short chain gave 1e29."""
    bench = make_bench((1, -1), depth=1, scale_bits=28, log_n=log_n, allow_insecure=log_n < 12)
    x, cx = bench.fresh()
    for step in (0, 1, -1, bench.slots - 1, bench.slots):
        assert error_of(bench, cx.rotate(step), np.roll(x, -step)) < 1e-3
    assert error_of(bench, cx.conjugate(), x) < 1e-3


def test_seal_403_exact_keys_need_one_switch(bench: Any) -> None:
    """Keys for powers of two only, so that other steps cost several rotations."""
    f = compile(lambda x: x.rotate(3))
    specialization = f.prepare(bench.encrypt(1.0))
    assert specialization.cost["key_switches"] == 1
    assert [kind for kind, _ in specialization.keys] == ["rotation 3"]


def test_openfhe_378_modulus_bits_beyond_the_table() -> None:
    """N = 65536 with 2253 modulus bits was made as if it had 128-bit security."""
    with pytest.raises(SecurityError, match="1747"):
        fh.Parameters(depth=50, scale_bits=40, log_n=16)
    insecure = fh.Parameters(depth=50, scale_bits=40, log_n=16, allow_insecure=True)
    assert insecure.security_bits < 128
    assert "INSECURE" in repr(insecure)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"scale_bits": 0}, "scale_bits"),
        ({"scale_bits": 5}, "scale_bits"),
        ({"scale_bits": 10}, "scale_bits"),
        ({"scale_bits": 70}, "scale_bits"),
        ({"depth": -1}, "depth"),
        ({"depth": 10**6}, "depth"),
        ({"log_n": 3}, "log_n"),
        ({"log_n": 40}, "log_n"),
        ({"first_bits": 20}, "first_bits"),
        ({"first_bits": 62}, "first_bits"),
        ({"special_primes": 0}, "special_primes"),
        ({"security": 100}, "security"),
        ({"secret": "gaussian"}, "secret"),
    ],
)
def test_openfhe_339_bad_parameters_are_named(arguments: dict[str, Any], name: str) -> None:
    """A 10-bit scale gave a message about something else."""
    value = next(iter(arguments.values()))
    with pytest.raises(ParameterError, match=rf"{name}.*{value}") as caught:
        fh.Parameters(**arguments)
    assert "expected" in str(caught.value) or "must" in str(caught.value)


def test_tenseal_515_the_direction_of_a_rotation(bench: Any) -> None:
    """Which way, which keys, which limits."""
    ramp = np.arange(bench.slots) / bench.slots
    ciphertext = bench.encrypt(ramp)
    turned = bench.decrypt(ciphertext.rotate(1))
    assert abs(turned[0] - ramp[1]) < 1e-6
    assert error_of(bench, np.roll(ciphertext, 1), np.roll(ramp, 1)) < 1e-6
    np.testing.assert_array_equal(
        np.roll(ciphertext, 1)._residues(), ciphertext.rotate(-1)._residues()
    )


def test_heir_3386_operands_at_different_depths(bench: Any) -> None:
    """The compiler emitted an ill-typed operation and died in its own verifier."""
    _, cx = bench.fresh()
    square = lambda x: (x * x).relinearize().rescale()  # noqa: E731
    for function in (
        lambda x: (x * x) - ((x * x) * (x * x)),
        lambda x: (x * x) + ((x * x) * (x * x)),
        lambda x: square(x) - square(square(x)),
        lambda x: square(square(x)) + square(x),
    ):
        with pytest.raises((LevelMismatch, ScaleMismatch, PartsMismatch)) as caught:
            compile(function)(cx)
        assert str(caught.value).count(f"{__file__}:") >= 1


def test_eva_36_a_rotation_of_an_unrelinearized_square(bench: Any) -> None:
    """encrypted size must be 2."""
    _, cx = bench.fresh()
    for call in (lambda x: (x * x).rotate(1), compile(lambda x: (x * x).rotate(1))):
        with pytest.raises(PartsMismatch, match=r"rotate.* 3 parts.*relinearize"):
            call(cx)


def test_concrete_1309_adding_the_input_at_the_end(usual: Any) -> None:
    """Adding the original input back after a chain of products was wrong."""
    x, cx = usual.fresh()
    a, b = 13 / 16, -10 / 16

    def f(x: Any) -> Any:
        y = ((x + 3) * b).rescale() - 13
        y = (y * a).rescale()
        y = (y * a).rescale()
        return y + x.drop_levels(3)

    exact = a * (a * (b * (x + 3) - 13)) + x
    assert error_of(usual, f(cx), exact) < 1e-6
    assert error_of(usual, compile(f)(cx), exact) < 1e-6


def test_tenseal_449_a_zero_among_the_weights(bench: Any) -> None:
    """A 0.0 in the clear matrix changed the parameters of the result."""
    x, cx = bench.fresh()
    random = bench.message(3)
    with_zero = random.copy()
    with_zero[5] = 0.0
    variants = [random, with_zero, np.zeros(bench.slots), np.full(bench.slots, -0.0)]
    f = compile(lambda x, w: ((x * w).rescale() * w).rescale())
    texts = set()
    for weights in variants:
        found, eager = f(cx, weights), ((cx * weights).rescale() * weights).rescale()
        assert (found.level, found.scale, found.parts) == (eager.level, eager.scale, eager.parts)
        assert found.level == 2
        assert error_of(bench, found, x * weights * weights) < 1e-6
        texts.add(f.specializations[0].program.to_text())
    assert len(f.specializations) == len(texts) == 1


def test_tenseal_518_errors_stay_below_the_estimate(bench: Any) -> None:
    """A search for bad inputs found errors that random tests miss."""
    generator = np.random.default_rng(0)
    w, b = generator.uniform(-1, 1, 8), 0.25
    corners = np.array(list(itertools.product([-3.0, 3.0], repeat=8)))
    inputs = np.concatenate([corners, generator.uniform(-3, 3, (256, 8))])
    columns = [bench.encrypt(inputs[:, place]) for place in range(8)]
    total = columns[0] * w[0]
    for column, weight in zip(columns[1:], w[1:], strict=True):
        total = total + column * weight
    inner = total.rescale() + b
    result = (inner * inner).relinearize().rescale()
    exact = (inputs @ w + b) ** 2
    error = np.abs(bench.decrypt(result)[: len(inputs)] - exact).max()
    noise = bench.noise
    estimate = noise.encrypt(noise.encode(3.0))
    parts = [noise.multiply(estimate, noise.encode(abs(weight))) for weight in w]
    summed = parts[0]
    for part in parts[1:]:
        summed = noise.add(summed, part)
    summed = noise.rescale(summed)
    summed = noise.add(summed, noise.encode(b, level=summed.level, scale=summed.scale))
    bound = noise.decode(noise.rescale(noise.key_switch(noise.multiply(summed, summed))))
    assert error <= bound
    assert error <= 1e-5


PHRASES = ("std::", "unwrap", "panicked", "map::at", "Option", "RefCell")


def wrong_uses(bench: Any) -> list[Any]:
    engine, keys = bench.engine, bench.keys
    _, x = bench.fresh()
    low, three = x.drop_levels(4), x * x
    plain = engine.encode(1.0)
    return [
        lambda: x + "text",
        lambda: x * None,
        lambda: x + [1.0] * (bench.slots + 1),
        lambda: x + np.ones((2, 3), object),
        lambda: x * np.array(["a"]),
        lambda: x + np.nan,
        lambda: x * 1e300,
        lambda: x * 2**70,
        lambda: x**3,
        lambda: x**0.5,
        lambda: x < 1,
        lambda: x == 1.0,
        lambda: bool(x),
        lambda: np.exp(x),
        lambda: np.sum(x),
        lambda: np.roll(x, 0.5),
        lambda: x.rotate(1.5),
        lambda: x.rotate("1"),
        lambda: x.rotate(6),
        lambda: x.rotate(1, key=keys.rotations[2]),
        lambda: x.rotate(1, key=keys.relinearization),
        lambda: x.rotate(1, key=plain),
        lambda: three.rotate(1),
        lambda: three.conjugate(),
        lambda: three * x,
        lambda: three.relinearize().relinearize(),
        lambda: x.relinearize(),
        lambda: x.rescale(),
        lambda: low.rescale(),
        lambda: low * low,
        lambda: x.drop_levels(-1),
        lambda: x.drop_levels(5),
        lambda: x.drop_levels(0.5),
        lambda: x + low,
        lambda: x + x * 0.5,
        lambda: x.to("tpu"),
        lambda: x.to("cuda"),
        lambda: engine.add(1.0, 2.0),
        lambda: engine.multiply(plain, plain),
        lambda: engine.negate(plain),
        lambda: engine.rotate_many(x, [1], key=3),
        lambda: engine.encode("text"),
        lambda: engine.encode([1.0], level=9),
        lambda: engine.encode([1.0], level=-1),
        lambda: engine.encode([1.0], scale=0),
        lambda: engine.encode([1.0], scale=-2.0),
        lambda: engine.encode([1.0], scale="2^x"),
        lambda: engine.encode([1.0], scale=2**500),
        lambda: engine.encrypt(1.0, keys),
        lambda: engine.encrypt(1.0, keys.relinearization),
        lambda: engine.encrypt(plain, keys.public, level=1),
        lambda: engine.decrypt(plain, keys.secret),
        lambda: engine.decrypt(x, keys.public),
        lambda: engine.use(keys),
        lambda: engine.use(3),
        lambda: fh.Engine(3),
        lambda: fh.Engine(engine.parameters, device="tpu"),
        lambda: fh.Engine(engine.parameters, device="cuda"),
        lambda: fh.Engine(engine.parameters, threads=0),
        lambda: fh.Parameters(depth=300),
        lambda: fh.Scale(0),
        lambda: fh.Scale("nonsense"),
        lambda: keys.rotations[5],
        lambda: fh.Preset.N99,
        lambda: compile(3),
        lambda: compile(lambda x: x + low)(x),
    ]


def test_tenseal_217_messages_say_what_was_found(bench: Any) -> None:
    """ValueError: std::exception."""
    uses = wrong_uses(bench)
    assert len(uses) >= 60
    for use in uses:
        what = inspect.getsource(use).strip()
        try:
            use()
        except Exception as error:
            text = str(error)
            assert len(text) > 20, (what, text)
            assert not any(phrase in text for phrase in PHRASES), (what, text)
        else:
            pytest.fail(f"accepted: {what}")

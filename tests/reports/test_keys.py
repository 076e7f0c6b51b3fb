"""Reports about keys and key switching, restated for fhelium."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import compile, default_pipeline
from fhelium.errors import MissingKey


def error_of(bench: Any, ciphertext: Any, exact: Any) -> float:
    """The largest error of a slot; of its real part where the message is real."""
    real = not np.iscomplexobj(exact)
    return float(np.abs(bench.decrypt(ciphertext, real=real) - exact).max())


def ways(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The same function run eagerly and compiled."""
    return [function, compile(function)]


# --- key switches at every level -------------------------------------------------------------


@pytest.mark.parametrize("special_primes", [1, 2, 3, 4, 5, 8])
def test_key_switches_at_every_level(make_bench: Any, special_primes: int) -> None:
    """HEonGPU 24: rotations of a ciphertext at level 0 were wrong for some digit layouts."""
    bench = make_bench(
        (1, -1),
        depth=7,
        scale_bits=40,
        log_n=10,
        special_primes=special_primes,
        allow_insecure=True,
    )
    noise = bench.noise
    z = bench.message() + 1j * bench.message(1)
    # A scale of which level 0 holds the square.
    scale = 2**22
    for level in range(8):
        cz = bench.encrypt(z, level=level, scale=scale)
        fresh = noise.encrypt(noise.encode(np.sqrt(2), level=level, scale=scale))
        switched = noise.decode(noise.key_switch(fresh))
        squared = noise.decode(noise.key_switch(noise.multiply(fresh, fresh)))
        for function, exact, bound in (
            (lambda c: c.rotate(1), np.roll(z, -1), switched),
            (lambda c: c.rotate(-1), np.roll(z, 1), switched),
            (lambda c: c.conjugate(), z.conj(), switched),
            (lambda c: (c * c).relinearize(), z * z, squared),
        ):
            for run in ways(function):
                found = run(cz)
                assert (found.level, found.parts) == (level, 2)
                assert error_of(bench, found, exact) <= bound
        # Lowered to the level instead of encrypted at it.
        lowered = bench.encrypt(z).drop_levels(7 - level)
        assert error_of(bench, lowered.rotate(1), np.roll(z, -1)) <= 1e-5
        assert error_of(bench, lowered.conjugate(), z.conj()) <= 1e-5


# --- rotation steps --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def every(make_bench: Any) -> Any:
    """A ring of 512 slots with the keys of all steps."""
    return make_bench(range(512), depth=1, scale_bits=40, log_n=10, allow_insecure=True)


def test_every_rotation_step(every: Any) -> None:
    """HEonGPU 4: steps -3, -2, 1 and 4 were wrong."""
    slots = every.slots
    x, cx = every.fresh()
    bound = every.noise.decode(every.noise.key_switch(every.noise.encrypt(every.noise.encode(1.0))))
    assert bound <= 1e-5
    steps = list(range(-slots + 1, slots))
    hoisted = every.engine.rotate_many(cx, steps)
    for step, together in zip(steps, hoisted, strict=True):
        alone = cx.rotate(step)
        assert error_of(every, alone, np.roll(x, -step)) <= bound, step
        np.testing.assert_array_equal(together._residues(), alone._residues())


@pytest.mark.parametrize("step", [1, -2, -3, 4, 511])
def test_steps_are_taken_modulo_the_slots(every: Any, step: int) -> None:
    """HEonGPU 4: and every other step."""
    _, cx = every.fresh()
    expected = cx.rotate(step)._residues()
    for turns in (1, -1, 2, 10**6, -(10**6)):
        wrapped = step + turns * every.slots
        for run in ways(lambda c: c.rotate(wrapped)):  # noqa: B023
            np.testing.assert_array_equal(run(cx)._residues(), expected)


def test_compiled_rotations_by_many_steps(every: Any) -> None:
    """HEonGPU 4: hoisting by the compiler changes no step's result."""
    x, cx = every.fresh()
    steps = [-3, -2, 1, 4, 0, 512, -511, 255, 256, -256, 1]
    found = compile(lambda c: [c.rotate(step) for step in steps])(cx)
    for step, turned in zip(steps, found, strict=True):
        np.testing.assert_array_equal(turned._residues(), cx.rotate(step)._residues())
        assert error_of(every, turned, np.roll(x, -step)) <= 1e-5


def test_rotation_by_zero_needs_no_key() -> None:
    """OpenFHE 675: without a key for it, the process ended with map::at."""
    engine = fh.Engine(fh.Parameters(depth=1, scale_bits=40, log_n=10, allow_insecure=True))
    keys = engine.keygen()
    x = np.arange(engine.slots) / engine.slots
    ciphertext = engine.encrypt(x, keys.public)
    for step in (0, engine.slots, -engine.slots, 10 * engine.slots):
        for run in (
            *ways(lambda c: c.rotate(step)),  # noqa: B023
            lambda c: np.roll(c, step),  # noqa: B023
            lambda c: engine.rotate(c, step),  # noqa: B023
            lambda c: engine.rotate_many(c, [step, 0])[0],  # noqa: B023
        ):
            turned = run(ciphertext)
            np.testing.assert_array_equal(turned._residues(), ciphertext._residues())
            assert np.abs(engine.decrypt(turned, keys.secret) - x).max() <= 1e-6
        assert engine.keygen(rotations=[step]).rotations.keys() == []


@pytest.mark.parametrize("step", [6, -6, 100, 518])
def test_a_missing_rotation_key_is_named(bench: Any, step: int) -> None:
    """OpenFHE 675: map::at instead of the step."""
    _, cx = bench.fresh()
    wanted = step % bench.slots
    for run in (
        *ways(lambda c: c.rotate(step)),
        lambda c: np.roll(c, -step),
        lambda c: bench.engine.rotate_many(c, [1, step]),
        lambda c: bench.engine.rotate(c, step),
    ):
        with pytest.raises(MissingKey) as caught:
            run(cx)
        text = str(caught.value)
        assert f"rotation {wanted}" in text
        assert "[1, 2, 3, 4, 8, 509, 511]" in text
        assert f"rotations=[{wanted}]" in text
        # KeyError is what a person would catch.
        assert isinstance(caught.value, KeyError)


def test_other_missing_keys_are_named(bench: Any) -> None:
    """OpenFHE 675: no keys at all, or none of that kind."""
    engine = fh.Engine(bench.engine.parameters)
    keys = engine.keygen()
    ciphertext = engine.encrypt(0.5, keys.public)
    square = ciphertext * ciphertext
    for call, name in (
        (lambda: ciphertext.rotate(1), "rotation 1"),
        (ciphertext.conjugate, "conjugation"),
        (square.relinearize, "relinearization"),
        (lambda: compile(lambda c: (c * c).relinearize())(ciphertext), "relinearization"),
    ):
        with pytest.raises(MissingKey, match=rf"{name}.*Engine\.use"):
            call()
    engine.use(keys.evaluation())
    square.relinearize()
    with pytest.raises(MissingKey, match="conjugation=True"):
        ciphertext.conjugate()


def test_a_compiled_function_names_all_missing_keys_and_lines(bench: Any) -> None:
    """OpenFHE 675: one missing key after the other."""
    _, cx = bench.fresh()

    def turns(x: Any) -> Any:
        first = x.rotate(6)
        return first + x.rotate(7) + x.rotate(1)

    with pytest.raises(MissingKey) as caught:
        compile(turns)(cx)
    text, line = str(caught.value), turns.__code__.co_firstlineno
    assert f"rotation 6 (needed at {__file__}:{line + 1}" in text
    assert f"rotation 7 (needed at {__file__}:{line + 2}" in text
    assert "rotations=[6, 7]" in text


def test_the_direction_of_a_rotation(every: Any) -> None:
    """TenSEAL 515: whether there is rotation, which way it turns, and its limits."""
    ramp = np.arange(every.slots) / every.slots
    ciphertext = every.encrypt(ramp)
    turned = every.decrypt(ciphertext.rotate(1))
    assert abs(turned[0] - ramp[1]) <= 1e-6
    assert abs(turned[-1] - ramp[0]) <= 1e-6
    for shift in (1, -1, 5, every.slots):
        rolled = np.roll(ciphertext, shift)
        assert error_of(every, rolled, np.roll(ramp, shift)) <= 1e-5
        np.testing.assert_array_equal(rolled._residues(), ciphertext.rotate(-shift)._residues())


# --- which keys there are, and what they cost ------------------------------------------------


def test_an_exact_key_needs_one_switch(bench: Any) -> None:
    """SEAL 403: other steps than powers of two cost several rotations, with room for all keys."""
    specialization = compile(lambda x: x.rotate(3)).prepare(bench.encrypt(1.0))
    assert specialization.cost["key_switches"] == 1
    assert [kind for kind, _ in specialization.keys] == ["rotation 3"]
    # The same step in the other direction, and one that is wrapped, are that key too.
    specialization = compile(lambda x: x.rotate(bench.slots + 3)).prepare(bench.encrypt(1.0))
    assert [kind for kind, _ in specialization.keys] == ["rotation 3"]


def test_powers_of_two_alone_do_not_turn_by_other_steps(make_bench: Any) -> None:
    """SEAL 403: what a step costs is never a surprise: its key is there or named as missing."""
    powers = [2**k for k in range(9)]
    bench = make_bench([*powers, *(-p for p in powers)], depth=1, log_n=10, allow_insecure=True)
    x, cx = bench.fresh()
    for step in powers:
        assert error_of(bench, cx.rotate(step), np.roll(x, -step)) <= 1e-5
    with pytest.raises(MissingKey, match="rotation 15"):
        cx.rotate(15)
    assert error_of(bench, cx.rotate(16).rotate(-1), np.roll(x, -15)) <= 1e-5


def test_a_key_set_says_what_it_allows(bench: Any) -> None:
    """homomorphic-implementors-toolkit 150: no way to ask which rotations keys allow."""
    slots = bench.slots
    stored = fh.loads(fh.dumps(bench.keys.evaluation()), fh.EvaluationKeys)
    for keys in (bench.keys, bench.keys.evaluation(), stored):
        rotations = keys.rotations
        assert list(rotations) == [1, 2, 3, 4, 8, slots - 3, slots - 1]
        assert len(rotations) == 7
        for step in (1, 2, 3, 4, 8, -1, -3):
            for turns in (0, slots, -slots, 5 * slots):
                assert step + turns in rotations
                assert rotations[step + turns].step == step % slots
                assert rotations.get(step + turns) is not None
        for step in (5, -2, 7, slots // 2, 0, slots):
            assert step not in rotations
            assert rotations.get(step) is None
        assert "1" not in rotations
        assert 1.5 not in rotations
        assert None not in rotations
        assert keys.conjugation is not None
        assert keys.relinearization is not None
    without = bench.engine.keygen()
    assert list(without.rotations) == []
    assert without.conjugation is None


@pytest.mark.parametrize("steps", [[], [1], [1, 2, 2, 0, -1, 512], range(64)], ids=len)
@pytest.mark.parametrize("conjugation", [False, True])
def test_key_bytes_are_known_before_keys_are_made(
    bench: Any, steps: Any, conjugation: bool
) -> None:
    """SEAL 94 and 285: no way to know that all rotation keys would not fit."""
    predicted = bench.engine.predicted_key_bytes(rotations=steps, conjugation=conjugation)
    keys = bench.engine.keygen(rotations=steps, conjugation=conjugation)
    distinct = {step % bench.slots for step in steps} - {0}
    assert len(keys.rotations) == len(distinct)
    switching = [keys.relinearization, *keys.rotations.values()]
    switching += [keys.conjugation] if conjugation else []
    made = sum(key.nbytes for key in switching)
    assert abs(predicted - made) <= made / 100
    assert keys.evaluation().nbytes == made + keys.public.nbytes
    assert keys.nbytes == made + keys.public.nbytes + keys.secret.nbytes


PEAK = """
import resource, fhelium as fh
engine = fh.Engine(fh.Parameters(depth=7, scale_bits=40, log_n=14))
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
keys = engine.keygen(rotations=range(1, 41))
print(keys.nbytes, peak() - before)
"""

TOO_LARGE = """
import resource, fhelium as fh
engine = fh.Engine(fh.Parameters(depth=7, scale_bits=40, log_n=14))
resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
steps = range(1, engine.slots)
needed = engine.predicted_key_bytes(rotations=steps)
try:
    engine.keygen(rotations=steps)
except fh.errors.OutOfMemory as error:
    assert isinstance(error, MemoryError)
    print(str(needed) in str(error), len(engine.keygen(rotations=[1, 2]).rotations))
"""


def printed(script: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_making_keys_takes_little_more_memory_than_the_keys() -> None:
    """SEAL 94 and 285: std::bad_alloc for the rotation keys of a large ring."""
    keys, peak = map(int, printed(PEAK))
    assert keys > 200e6
    assert peak <= 1.2 * keys + 200e6


def test_keys_that_do_not_fit_are_refused_with_their_bytes() -> None:
    """SEAL 94 and 285: a named error instead of the end of the process."""
    assert printed(TOO_LARGE) == ["True", "2"]


def test_the_default_pipeline_asks_for_no_key_of_its_own(bench: Any) -> None:
    """SEAL 94: keys are made for what a person asks, and for nothing else."""
    specialization = compile(lambda x: (x + 1) * 0.5, pipeline=default_pipeline()).prepare(
        bench.encrypt(1.0)
    )
    assert specialization.keys == ()

"""Reports about parameters and security, restated for fhelium."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.errors import FheliumError, ParameterError, SecurityError

# The largest log QP for a ternary secret (security guidelines of 2024), by log2 N.
BUDGETS = {10: 26, 11: 53, 12: 106, 13: 214, 14: 430, 15: 868, 16: 1747, 17: 3523}


@pytest.mark.parametrize("log_n", BUDGETS)
@pytest.mark.parametrize("scale_bits", [30, 40, 50])
def test_no_depth_passes_the_modulus_that_a_ring_allows(log_n: int, scale_bits: int) -> None:
    """OpenFHE 378: N = 65536 with 2253 modulus bits was made as if it had 128-bit security."""
    budget, secure = BUDGETS[log_n], []
    for depth in sorted({0, 1, 2, 5, budget // scale_bits - 1, budget // scale_bits + 1, 60}):
        if depth < 0:
            continue
        options = {"depth": depth, "scale_bits": scale_bits, "log_n": log_n}
        try:
            parameters = fh.Parameters(**options)
        except SecurityError as error:
            text = str(error)
            found = float(re.search(r"log QP = ([\d.]+)", text)[1])
            assert found > budget
            assert f"exceeds {budget}," in text
            assert "special primes counted" in text
            assert "log_n = " in text or "depth = " in text
            secure.append(False)
        except ParameterError:
            # So few primes near the scale in so large a ring: no matter of security.
            secure.append(None)
        else:
            primes = (*parameters.moduli, *parameters.special_moduli)
            assert parameters.log_qp <= budget
            assert sum(map(math.log2, primes)) == pytest.approx(parameters.log_qp, abs=1e-6)
            assert parameters.security_bits >= 128
            assert "INSECURE" not in repr(parameters)
            secure.append(True)
    known = [entry for entry in secure if entry is not None]
    assert known == sorted(known, reverse=True)


def test_the_reporters_own_parameters() -> None:
    """OpenFHE 378: log QP 2253 at N = 65536; only allow_insecure passes, and it shows."""
    usual = fh.Parameters(depth=2, scale_bits=45, log_n=16)
    insecure = fh.Parameters(depth=42, scale_bits=45, log_n=16, allow_insecure=True)
    with pytest.raises(SecurityError) as caught:
        fh.Parameters(depth=42, scale_bits=45, log_n=16)
    assert f"log QP = {insecure.log_qp:.2f}" in str(caught.value) or "log QP = " in str(
        caught.value
    )
    assert "exceeds 1747" in str(caught.value)
    assert "log_n = 17 fits this depth" in str(caught.value)
    assert insecure.security_bits < 128
    assert "INSECURE" in repr(insecure)
    assert (usual.security_bits >= 128, insecure == usual) == (True, False)
    # The same primes given by hand.
    explicit = (16, insecure.moduli, insecure.special_moduli, insecure.scale)
    with pytest.raises(SecurityError, match=r"log QP = 2\d\d\d\.\d+ exceeds 1747"):
        fh.Parameters.from_primes(*explicit)
    assert fh.Parameters.from_primes(*explicit, allow_insecure=True).security_bits < 128


def advice(text: str) -> dict[str, int]:
    found = {}
    for name in ("log_n", "depth"):
        match = re.search(rf"{name} = (\d+) fits", text)
        if match:
            found[name] = int(match[1])
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"depth": 42, "scale_bits": 45, "log_n": 16},
        {"depth": 1, "scale_bits": 40, "log_n": 12},
        {"depth": 7, "scale_bits": 40, "log_n": 13},
        {"depth": 9, "scale_bits": 40, "log_n": 14},
        {"depth": 7, "scale_bits": 40, "log_n": 14, "security": 192},
        {"depth": 7, "scale_bits": 40, "log_n": 14, "security": 256},
        {"depth": 3, "scale_bits": 50, "log_n": 13, "first_bits": 60},
    ],
    ids=str,
)
def test_the_parameters_that_a_message_names_fit(options: dict[str, Any]) -> None:
    """OpenFHE 378 and SEAL 406: the N or the depth that fits is named, and fits."""
    with pytest.raises(SecurityError) as caught:
        fh.Parameters(**options)
    named = advice(str(caught.value))
    assert named
    for name, value in named.items():
        fitting = fh.Parameters(**{**options, name: value})
        assert fitting.security_bits >= options.get("security", 128)
    if "log_n" in named:
        assert named["log_n"] > options["log_n"]
        with pytest.raises(SecurityError):
            fh.Parameters(**{**options, "log_n": named["log_n"] - 1})
    if "depth" in named:
        assert named["depth"] < options["depth"]
        with pytest.raises(SecurityError):
            fh.Parameters(**{**options, "depth": named["depth"] + 1})


@pytest.mark.parametrize("log_n", [10, 11, 12])
@pytest.mark.parametrize("scale_bits", [30, 40, 50])
def test_too_small_for_one_product(log_n: int, scale_bits: int) -> None:
    """SEAL 406: accepted when made, useless at the first product."""
    with pytest.raises(SecurityError) as caught:
        fh.Parameters(depth=1, scale_bits=scale_bits, log_n=log_n)
    named = advice(str(caught.value))
    smallest = fh.Parameters(depth=1, scale_bits=scale_bits, log_n=named["log_n"])
    # What is made is good for the product that its depth promises.
    engine = fh.Engine(smallest)
    keys = engine.keygen()
    engine.use(keys.evaluation())
    x = engine.encrypt(0.5, keys.public)
    product = (x * x).relinearize().rescale()
    noise = fh.NoiseModel(smallest)
    fresh = noise.encrypt(noise.encode(0.5))
    bound = noise.decode(noise.rescale(noise.key_switch(noise.multiply(fresh, fresh))))
    assert np.abs(engine.decrypt(product, keys.secret) - 0.25).max() <= bound <= 2.0**-10


def test_the_ring_is_chosen_to_fit() -> None:
    """SEAL 406: without log_n, the smallest ring that fits."""
    for depth, scale_bits in ((1, 28), (1, 40), (3, 38), (7, 40), (16, 40), (34, 40)):
        parameters = fh.Parameters(depth=depth, scale_bits=scale_bits)
        assert parameters.security_bits >= 128
        assert parameters.depth == depth
        if parameters.log_n > 10:
            with pytest.raises((SecurityError, ParameterError)):
                fh.Parameters(depth=depth, scale_bits=scale_bits, log_n=parameters.log_n - 1)


BAD: list[tuple[dict[str, Any], str]] = [
    *(({"scale_bits": bits}, "scale_bits") for bits in (0, 5, 10, 19, 60, 70, -40)),
    *(({"depth": depth}, "depth") for depth in (-1, 201, 10**6, -(10**6))),
    *(({"log_n": log_n}, "log_n") for log_n in (-1, 0, 3, 9, 18, 40)),
    *(({"first_bits": bits}, "first_bits") for bits in (-1, 0, 20, 40, 61, 62, 100)),
    *(({"special_primes": count}, "special_primes") for count in (-1, 0, 33, 1000)),
    *(({"security": bits}, "security") for bits in (-1, 0, 80, 100, 127, 512)),
    *(({"secret": name}, "secret") for name in ("gaussian", "", "Ternary")),
    ({"scale_bits": 10, "first_bits": 20}, "scale_bits"),
    ({"scale_bits": 50, "first_bits": 30, "log_n": 15}, "first_bits"),
]


@pytest.mark.parametrize(("options", "name"), BAD, ids=str)
@pytest.mark.parametrize("allow_insecure", [False, True])
def test_a_bad_argument_is_named(options: dict[str, Any], name: str, allow_insecure: bool) -> None:
    """OpenFHE 339: a 10-bit scale and 20-bit first modulus: a message about something else."""
    value = options[name]
    with pytest.raises(ParameterError) as caught:
        fh.Parameters(**options, allow_insecure=allow_insecure)
    text = str(caught.value)
    assert re.search(rf"{name} = \"?{re.escape(str(value))}\"? is not allowed: expected", text), (
        text
    )
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"depth": 1.5}, "depth"),
        ({"depth": "7"}, "depth"),
        ({"depth": None}, "depth"),
        ({"scale_bits": 40.0}, "scale_bits"),
        ({"log_n": [14]}, "log_n"),
        ({"secret": 3}, "secret"),
        ({"allow_insecure": "no"}, "allow_insecure"),
        ({"depht": 3}, "depht"),
        ({"depth": 2**70}, "depth"),
        ({"scale_bits": -(2**70)}, "scale_bits"),
        ({"special_primes": 2**64}, "special_primes"),
    ],
    ids=str,
)
def test_an_argument_of_a_wrong_kind_is_named(options: dict[str, Any], name: str) -> None:
    """OpenFHE 339: the same for what is no number, or none that fits a word."""
    with pytest.raises((TypeError, FheliumError)) as caught:
        fh.Parameters(**options)
    text = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert name in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m, s: ([], s), ["moduli", "at least one prime"]),
        (lambda m, s: (m, []), ["special_moduli", "at least one prime"]),
        (lambda m, s: ([m[0], m[1], m[1]], s), ["twice", "distinct"]),
        (lambda m, s: ([m[0], s[0]], s), ["distinct"]),
        (lambda m, s: ([m[0], m[1] + 2], s), ["1 modulo 2N"]),
        (lambda m, s: ([m[0], 2**40], s), ["1 modulo 2N"]),
        (lambda m, s: ([m[0], 0], s), ["moduli", "0"]),
        (lambda m, s: ([m[1], m[2]], s), ["first prime", "twice the scale"]),
        (lambda m, s: ([m[0], m[1]], [97]), ["97"]),
    ],
)
def test_bad_explicit_primes_are_named(change: Any, words: list[str]) -> None:
    """OpenFHE 339 and SEAL 372: the same for primes that a person chooses."""
    usual = fh.Parameters(depth=2, scale_bits=40, log_n=10, allow_insecure=True)
    moduli, special = change(list(usual.moduli), list(usual.special_moduli))
    with pytest.raises(ParameterError) as caught:
        fh.Parameters.from_primes(10, moduli, special, 2**40, allow_insecure=True)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_presets_are_secure_and_leave_head_room() -> None:
    """SEAL 406 and HEIR 1823: what has a name is good for what the name says."""
    names = list(fh.Preset)
    assert len(names) >= 8
    for name in names:
        parameters = getattr(fh.Preset, name)
        log_n, depth, scale = map(int, re.match(r"N(\d+)Depth(\d+)Scale(\d+)$", name).groups())
        assert (parameters.log_n, parameters.depth) == (log_n, depth)
        assert parameters.scale == 2**scale
        assert parameters.security_bits >= 128
        assert parameters.largest_message >= 2**8

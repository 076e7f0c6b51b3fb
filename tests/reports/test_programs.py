"""Reports about polynomials in different forms, restated for Programs written by hand."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import Program, compile
from fhelium.errors import CompileError, FheliumError, ScaleMismatch

PARAMETERS = fh.Parameters(depth=2, scale_bits=40, log_n=10, allow_insecure=True)


def program(operation: str, *inputs: str) -> str:
    names = ["%a", "%b", "%c"][: len(inputs)]
    given = ", ".join(f"{name}: !{type_}" for name, type_ in zip(names, inputs, strict=True))
    return (
        "program @f {\n"
        f"  chain {{ log_n = 10, scale = 2^40, moduli = {list(PARAMETERS.moduli)}, "
        f"special = {list(PARAMETERS.special_moduli)} }}\n"
        f"  func ({given}) {{\n"
        f"    %0 = {operation.format(*names)}\n"
        "    return %0\n"
        "  }\n"
        "}\n"
    )


def residues(parts: int = 1, basis: str = "Q(2)", domain: str = "ntt", batch: str = "") -> str:
    return f"residues<[{batch}], parts={parts}, basis={basis}, domain={domain}>"


FORMS = {
    "domains": (residues(), residues(domain="coefficient"), "ntt", "coefficient"),
    "levels": (residues(), residues(basis="Q(1)"), r"Q\(2\)", r"Q\(1\)"),
    "special primes": (residues(), residues(basis="QP(2)"), r"Q\(2\)", r"QP\(2\)"),
    "digits": (residues(), residues(basis="digit(2, 0, 1)"), r"Q\(2\)", r"digit\(2, 0, 1\)"),
    "parts": (residues(parts=2), residues(parts=3), "2", "3"),
    "batches": (residues(batch="2"), residues(batch="3"), r"\[2\]", r"\[3\]"),
}


@pytest.mark.parametrize("operation", ["rns.add", "rns.sub", "rns.mul"])
@pytest.mark.parametrize("form", FORMS)
def test_residues_of_two_forms_are_refused(operation: str, form: str) -> None:
    """OpenFHE 1147: sums of polynomials in evaluation and coefficient form were wrong."""
    left, right, *names = FORMS[form]
    if form == "parts" and operation != "rns.mul":
        # Parts that one of them lacks are zero.
        text = Program.parse(program(f"{operation} {{}}, {{}}", left, right)).to_text()
        assert re.search(rf"{operation} %a, %b : !residues<\[\], parts=3", text)
        return
    assert operation in Program.parse(program(f"{operation} {{}}, {{}}", left, left)).to_text()
    for pair in ((left, right), (right, left)):
        text = program(f"{operation} {{}}, {{}}", *pair)
        with pytest.raises(FheliumError, match=rf"line 4, column 10: {operation}: ") as caught:
            Program.parse(text)
        assert all(re.search(name, str(caught.value)) for name in names)


def test_coefficients_do_not_multiply() -> None:
    """OpenFHE 1147: a product is one of values, not of coefficients."""
    form = residues(domain="coefficient")
    with pytest.raises(CompileError, match="coefficient"):
        Program.parse(program("rns.mul {}, {}", form, form))


def test_ciphertexts_of_two_scales_or_kinds_are_refused() -> None:
    """OpenFHE 1147, one level up: a text is verified like what is captured."""
    usual = "ciphertext<[], level=2, scale=2^40, parts=2>"
    with pytest.raises(ScaleMismatch, match=r"2\^40 .*2\^41"):
        Program.parse(program("he.add {}, {}", usual, usual.replace("2^40", "2^41")))
    with pytest.raises(CompileError, match="residues"):
        Program.parse(program("he.add {}, {}", usual, residues(parts=2)))
    with pytest.raises(CompileError, match="ciphertext"):
        Program.parse(program("rns.add {}, {}", usual, residues(parts=2)))


def test_values_that_come_by_every_route_add_right(bench: Any) -> None:
    """OpenFHE 1147: whatever route made a value, a sum with it is right."""
    x, cx = bench.fresh()
    y, cy = bench.fresh(1)

    def routes(x: Any) -> list[Any]:
        clear = isinstance(x, np.ndarray)
        turned = np.roll(x, -1)
        conjugated = x if clear else x.conjugate()
        hoisted = [np.roll(x, -2), x] if clear else bench.engine.rotate_many(x, [2, 0])
        product = x * x if clear else (x * x).relinearize().rescale()
        plain = x * 0.5 if clear else (x * 0.5).rescale()
        dropped = x if clear else x.drop_levels(1)
        integer = x * -3
        return [x, turned, conjugated, *hoisted, integer, -x, dropped, product, plain]

    exact = routes(x)
    for results in (routes(cx), compile(routes)(cx)):
        for found, message in zip(results, exact, strict=True):
            other = cy.drop_levels(cy.level - found.level)
            assert np.abs(bench.decrypt(found + other) - (message + y)).max() <= 1e-6
            assert np.abs(bench.decrypt(other - found) - (y - message)).max() <= 1e-6
            assert np.abs(bench.decrypt(found + y) - (message + y)).max() <= 1e-6

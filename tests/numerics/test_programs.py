"""Long random programs: compiled equals eager bit for bit, and both match numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import fhelium as fh

STEPS = [1, 2, 3, 4, 8, -1, -3]

Instruction = tuple[str, int, int, float]
INSTRUCTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "sub", "add_array", "mul", "mul_array", "integer", "rotate", "neg", "conjugate"]
        ),
        st.integers(0, 1000),
        st.integers(0, 1000),
        st.floats(-1, 1),
    ),
    min_size=5,
    max_size=40,
)


def run(program: list[Instruction], start: list[Any], arrays: list[Any], *, clear: bool) -> Any:
    """Interprets a program on ciphertexts, or with the same steps on numpy arrays.

    Values are kept with their levels, so that operands of a sum can be brought to one.
    """
    depth = 4
    values = [(value, depth) for value in start]

    def lower(value: Any, level: int, to: int) -> Any:
        return value if clear or level == to else value.drop_levels(level - to)

    def rescaled(value: Any, relinearize: bool) -> Any:
        if clear:
            return value
        return (value.relinearize() if relinearize else value).rescale()

    for name, first, second, number in program:
        left, left_level = values[first % len(values)]
        right, right_level = values[second % len(values)]
        level = min(left_level, right_level)
        array = arrays[second % len(arrays)]
        if name in ("add", "sub"):
            pair = lower(left, left_level, level), lower(right, right_level, level)
            result = pair[0] + pair[1] if name == "add" else pair[0] - pair[1]
        elif name == "add_array":
            result, level = left + array * number, left_level
        elif name == "mul" and level > 0:
            result = lower(left, left_level, level) * lower(right, right_level, level)
            result, level = rescaled(result, relinearize=True), level - 1
        elif name == "mul_array" and left_level > 0:
            result, level = rescaled(left * array, relinearize=False), left_level - 1
        elif name == "integer":
            result, level = left * (second % 3 - 1), left_level
        elif name == "rotate":
            step = STEPS[second % len(STEPS)]
            result = np.roll(left, -step, axis=-1) if clear else left.rotate(step)
            level = left_level
        elif name == "conjugate":
            result, level = left.conjugate(), left_level
        else:
            result, level = -left, left_level
        values.append((result, level))
        if clear and np.abs(result).max() > 4:
            # Both interpreters see the clear run's sizes; see `keep_small`.
            values.pop()
    return [value for value, _ in values]


def keep_small(program: list[Instruction], messages: list[Any], arrays: list[Any]) -> Any:
    """The instructions whose results stay small, so that errors can be bounded by a constant."""
    kept: list[Instruction] = []
    for instruction in program:
        before = run(kept, messages, arrays, clear=True)
        after = run([*kept, instruction], messages, arrays, clear=True)
        if len(after) > len(before):
            kept.append(instruction)
    return kept


@settings(max_examples=15)
@given(program=INSTRUCTIONS, seed=st.integers(0, 2**32 - 1), batch=st.sampled_from([(), (2,)]))
def test_random_programs(
    bench: Any, program: list[Instruction], seed: int, batch: tuple[int, ...]
) -> None:
    messages = [bench.message(seed, batch), bench.message(seed + 1, batch)]
    arrays = [bench.message(seed + 2), bench.message(seed + 3)]
    program = keep_small(program, messages, arrays)
    ciphertexts = [bench.encrypt(message) for message in messages]

    @fh.jit
    def compiled(x: Any, y: Any) -> Any:
        return run(program, [x, y], arrays, clear=False)

    eager = run(program, ciphertexts, arrays, clear=False)
    outputs = compiled(*ciphertexts)
    exact = run(program, messages, arrays, clear=True)
    assert len(outputs) == len(eager) == len(exact)
    for found, same, message in zip(outputs, eager, exact, strict=True):
        assert (found.level, found.scale, found.parts) == (same.level, same.scale, same.parts)
        np.testing.assert_array_equal(found._residues(), same._residues())
        # 40 steps on messages up to 4 with errors of 2^-24 at the most each.
        assert np.abs(bench.decrypt(found, real=False) - message).max() < 2e-4

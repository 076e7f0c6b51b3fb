"""What the tests of messages share: values to use wrongly, and what a text must be."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import fhelium as fh
from fhelium.compile import compile

# What a message of an implementation would show, and no message to a person should.
INTERNAL = (
    "std::",
    "unwrap",
    "panicked",
    "map::at",
    "Option",
    "PanicException",
    "RefCell",
    "None(",
)


@pytest.fixture(scope="session")
def t(bench: Any, other: Any, device: str) -> SimpleNamespace:
    """Values to use wrongly."""
    engine, keys = bench.engine, bench.keys
    x = bench.encrypt(bench.message())
    stranger = fh.Engine(
        fh.Parameters(depth=4, scale_bits=38, log_n=10, allow_insecure=True), device=device
    )
    their_keys = stranger.keygen(rotations=[1])
    return SimpleNamespace(
        engine=engine,
        keys=keys,
        x=x,
        low=x.drop_levels(4),
        three=x * x,
        batch=bench.encrypt([[0.5], [0.25]]),
        plain=engine.encode(1.0),
        foreign=other.encrypt(0.5),
        other=other,
        stranger=stranger,
        theirs=stranger.encrypt(0.5, their_keys.public),
        their_keys=their_keys,
        slots=bench.slots,
        double=compile(lambda x: x + x),
        missing=compile(lambda x: x + x, on_miss="error"),
        parameters=engine.parameters,
    )


@pytest.fixture(scope="session")
def check_text() -> Callable[[Exception, list[str]], None]:
    """Checks an error's text: long enough, without internals, with all of the words."""
    return _check_text


def _check_text(error: Exception, words: list[str]) -> None:
    text = "\n".join([str(error), *getattr(error, "__notes__", [])])
    assert len(text) > 20, text
    assert not any(phrase in text for phrase in INTERNAL), text
    missing = [word for word in words if word not in text]
    assert not missing, f"{missing} not in: {text}"
    assert len(text) < 2000

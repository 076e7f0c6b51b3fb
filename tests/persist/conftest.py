"""Files hold the host form of everything: what a GPU adds is in tests/cuda."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def device() -> str:
    return "cpu"

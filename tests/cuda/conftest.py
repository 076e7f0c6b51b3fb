"""What the tests of a GPU share."""

import pytest

import fhelium as fh


@pytest.fixture(scope="session")
def needs_a_gpu() -> None:
    """Skips where there is no GPU, with the reason."""
    problem = fh.build_info()["cuda"]["problem"]
    if problem is not None:
        pytest.skip(problem)

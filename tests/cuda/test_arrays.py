"""Clear arrays on a GPU: computed there, and shared with other libraries without a copy."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.errors import ArgumentError, DeviceError

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> None:
    problem = fh.build_info()["cuda"]["problem"]
    if problem is not None:
        pytest.skip(problem)


class Foreign:
    """Another library's array, with what its consumers asked of it."""

    def __init__(self, array: fh.Array, *, versioned: bool = True) -> None:
        self.array, self.versioned = array, versioned
        self.asked: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        self.asked.append(options)
        if not self.versioned and "max_version" in options:
            raise TypeError("an unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(stream=1, max_version=options.get("max_version"))


DTYPES = ["bool", "int32", "int64", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_go_up_and_come_back(dtype: str) -> None:
    values = np.arange(24).reshape(2, 3, 4).astype(dtype).transpose(2, 0, 1)
    array = fh.Array(values)
    assert (array.shape, array.ndim, array.dtype) == ((4, 2, 3), 3, values.dtype)
    assert (array.device, array.nbytes) == ("cuda:0", values.nbytes)
    assert repr(array) == f'Array(shape=(4, 2, 3), dtype={dtype}, device="cuda:0")'
    np.testing.assert_array_equal(array.numpy(), values)
    assert array.to("cuda") is array
    assert isinstance(array.to("cpu"), np.ndarray)


def test_nothing_goes_to_the_host_unasked() -> None:
    with pytest.raises(TypeError, match=r"cuda:0.*\.numpy\(\)"):
        np.asarray(fh.Array([1.0]))
    with pytest.raises(ArgumentError, match="numpy's"):
        fh.Array([1.0], "cpu")


@pytest.mark.parametrize("versioned", [True, False])
def test_other_libraries_arrays_are_shared(versioned: bool) -> None:
    """Guards both forms of DLPack, that the producer is told our stream, and that its memory stays
    while we use it."""
    values = np.arange(12.0).reshape(3, 4)
    foreign = Foreign(fh.Array(values), versioned=versioned)
    array = fh.Array.from_dlpack(foreign)
    assert foreign.asked[-1]["stream"] not in (None, 0, 1, 2)
    del foreign
    gc.collect()
    other = fh.Array(np.zeros((3, 4)))
    np.testing.assert_array_equal(array.numpy(), values)
    np.testing.assert_array_equal(other.numpy(), 0)


def test_what_dlpack_may_ask_for() -> None:
    array = fh.Array([1.0, 2.0])
    asked: list[dict[str, Any]] = [
        {},
        {"stream": -1},
        {"stream": 2},
        {"max_version": (1, 1)},
        {"copy": True},
    ]
    for options in asked:
        assert "dltensor" in repr(array.__dlpack__(**options))
    with pytest.raises(ArgumentError, match="stream 0 is ambiguous"):
        array.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="move it"):
        array.__dlpack__(dl_device=(1, 0))
    with pytest.raises(TypeError, match="numpy"):
        fh.Array.from_dlpack(np.ones(2))


def test_functions_of_arrays_run_where_they_are() -> None:
    @fh.jit
    def score(x: Any, w: Any) -> Any:
        return (x * 2.0 + w).sum(axis=0), x @ w

    x, w = np.linspace(0, 1, 6).reshape(2, 3), np.array([0.25, -1.0, 3.0])
    total, product = score(fh.Array(x), fh.Array(w))
    assert isinstance(total, fh.Array)
    expected = score(x, w)
    np.testing.assert_array_equal(total.numpy(), expected[0])
    np.testing.assert_allclose(product.numpy(), expected[1], rtol=1e-15)
    with pytest.raises(DeviceError, match="cpu"):
        score(fh.Array(x), w)


def test_arrays_on_the_gpu_are_messages() -> None:
    parameters = fh.Parameters(depth=2, scale_bits=40, log_n=10, allow_insecure=True)
    engine = fh.Engine(parameters, device="cuda")
    keys = engine.keygen()
    values = np.linspace(-1, 1, engine.slots)
    x = engine.encrypt(fh.Array(values), keys.public)
    product = (x * fh.Array(values)).rescale()
    np.testing.assert_allclose(engine.decrypt(product, keys.secret), values**2, atol=1e-6)

    @fh.jit
    def scale(x: fh.Ciphertext, w: Any) -> Any:
        return (x * w).rescale()

    result = scale(x, fh.Array(values))
    np.testing.assert_allclose(engine.decrypt(result, keys.secret), values**2, atol=1e-6)

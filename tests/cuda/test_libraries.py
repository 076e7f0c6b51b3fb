"""PyTorch and CuPy beside fhelium on one GPU: arrays without a copy, streams, and their graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fhelium as fh

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("needs_a_gpu")]


@pytest.fixture
def torch() -> Any:
    """PyTorch with a GPU: a driver that is emulated does for fhelium alone."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    return torch


def parts(engine: fh.Engine) -> Any:
    keys = engine.keygen(rotations=[1])
    engine.use(keys.evaluation())
    return keys


@pytest.fixture(scope="module")
def engine(needs_a_gpu: None) -> fh.Engine:
    parameters = fh.Parameters(depth=3, scale_bits=40, log_n=12, allow_insecure=True)
    return fh.Engine(parameters, device="cuda")


def test_torch_tensors_go_in_and_come_out_in_place(torch: Any) -> None:
    values = torch.arange(12, dtype=torch.float64, device="cuda").reshape(3, 4)
    array = fh.Array.from_dlpack(values)
    np.testing.assert_array_equal(array.numpy(), values.cpu().numpy())
    back = torch.from_dlpack(array)
    assert back.data_ptr() == values.data_ptr()
    values += 1
    np.testing.assert_array_equal(array.numpy(), values.cpu().numpy())


def test_each_use_of_a_tensor_comes_after_what_torch_does_to_it(torch: Any) -> None:
    values = torch.zeros(1 << 22, dtype=torch.float64, device="cuda")
    array, double = fh.Array.from_dlpack(values), fh.jit(lambda x: x * 2)
    for step in range(1, 5):
        for _ in range(200):
            values += 1
        assert (array.numpy() == 400 * step - 200).all()
        for _ in range(200):
            values += 1
        assert (double(array).numpy() == 800 * step).all()


def test_functions_of_torch_tensors_give_torch_tensors(torch: Any) -> None:
    f = fh.jit(lambda x, y: np.exp(x) @ y + 1)
    x = torch.linspace(-1, 1, 12, dtype=torch.float64, device="cuda").reshape(3, 4)
    y = torch.ones(4, 2, dtype=torch.float64, device="cuda")
    found = f(x, y)
    assert isinstance(found, torch.Tensor)
    assert found.is_cuda
    torch.testing.assert_close(found, torch.exp(x) @ y + 1, rtol=1e-14, atol=0)


def test_side_streams_are_ordered(torch: Any) -> None:
    """What another stream still writes is waited for."""
    f = fh.jit(lambda x: x * 2)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.zeros(1 << 20, dtype=torch.float64, device="cuda")
        for _ in range(200):
            x = x + 1
        y = f(x) + 0
    stream.synchronize()
    assert bool((y == 400).all())


def test_a_compiled_call_becomes_part_of_a_graph_of_torch(torch: Any, engine: fh.Engine) -> None:
    """Rule 78: after warm-up a call is captured, and each replay computes anew."""
    keys = parts(engine)
    square = fh.jit(lambda x: (x * x).relinearize().rescale().rotate(1))
    message = np.linspace(-1, 1, engine.slots)
    x = engine.encrypt(message, keys.public)
    expected = [square(x) for _ in range(3)][-1]._residues()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = engine.on_stream(torch.cuda.current_stream(), square, x)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    np.testing.assert_array_equal(y._residues(), expected)
    found = engine.decrypt(y, keys.secret)
    assert np.abs(found - np.roll(message**2, -1)).max() < 1e-6


def test_torch_tensors_are_encoded_in_a_graph_of_torch(torch: Any, engine: fh.Engine) -> None:
    """Each replay reads an argument and a captured tensor where they are; launches overlap."""
    keys = parts(engine)
    w = torch.full((engine.slots,), 0.5, dtype=torch.float32, device="cuda")
    bias = torch.zeros(engine.slots, dtype=torch.float64, device="cuda")
    affine = fh.jit(lambda x, w: (x * (w * 2.0)).rescale() + bias)
    x = engine.encrypt(np.linspace(-1, 1, engine.slots), keys.public)
    for _ in range(3):
        affine(x, w)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = engine.on_stream(torch.cuda.current_stream(), affine, x, w)
    for factor in (0.25, -1.0):
        w.fill_(factor)
        bias.fill_(2 * factor)
        graph.replay()
        torch.cuda.synchronize()
        expected = np.linspace(-1, 1, engine.slots) * 2 * factor + 2 * factor
        assert np.abs(engine.decrypt(y, keys.secret) - expected).max() < 1e-6


def test_captured_torch_tensors_are_live(torch: Any, engine: fh.Engine) -> None:
    """What torch's stream wrote into one before a call is what the call reads."""
    keys = parts(engine)
    w = torch.zeros(engine.slots, dtype=torch.float64, device="cuda")
    scale = fh.jit(lambda x: x * w)
    x = engine.encrypt(0.5, keys.public)
    for step in range(5):
        w += 1
        found = engine.decrypt(scale(x), keys.secret)
        assert np.abs(found - 0.5 * (step + 1)).max() < 1e-6


def test_cupy_arrays_go_in_and_come_out() -> None:
    cupy = pytest.importorskip("cupy")
    try:
        x = cupy.arange(6, dtype=cupy.float64)
    except Exception as error:
        pytest.skip(f"CuPy has no GPU: {error}")
    y = fh.jit(lambda x: x * x)(x)
    assert isinstance(y, cupy.ndarray)
    cupy.testing.assert_array_equal(y, x * x)

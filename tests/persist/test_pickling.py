"""pickle, copy and processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import pickletools
from typing import Any

import numpy as np
import pytest

import fhelium as fh


def _through_pickle(value: Any) -> Any:
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        loaded = pickle.loads(pickle.dumps(value, protocol))
        assert type(loaded) is type(value)
    return loaded


def test_everything_without_a_secret_is_pickled(bench: Any) -> None:
    message, x = bench.fresh()
    keys = bench.keys.evaluation()
    parameters = fh.Parameters(depth=1, scale_bits=30, security=192)
    assert _through_pickle(parameters) == parameters
    loaded = _through_pickle(x * 2)
    assert np.abs(bench.decrypt(loaded) - 2 * message).max() < 1e-6
    plaintext = _through_pickle(bench.engine.encode(message))
    assert np.abs(bench.decrypt(x * plaintext) - message**2).max() < 1e-6
    assert _through_pickle(keys).nbytes == keys.nbytes
    assert _through_pickle(keys.public).nbytes == keys.public.nbytes
    assert _through_pickle(keys.relinearization).kind == "relinearization"
    assert list(_through_pickle(keys.rotations)) == list(keys.rotations)


def test_secrets_are_not_pickled(bench: Any) -> None:
    for value in (bench.keys, bench.keys.secret, {"nested": [bench.keys]}):
        with pytest.raises(TypeError, match="allow_secret=True"):
            pickle.dumps(value)


def test_copies_of_what_never_changes_are_itself(bench: Any) -> None:
    _, x = bench.fresh()
    values = [
        x,
        bench.engine.encode(1.0),
        bench.keys,
        bench.keys.secret,
        bench.keys.public,
        bench.keys.evaluation(),
        bench.keys.rotations,
        bench.keys.relinearization,
        bench.engine.parameters,
    ]
    for value in values:
        assert copy.copy(value) is value
        assert copy.deepcopy(value) is value
    nested = copy.deepcopy({"x": [x]})
    assert nested["x"][0] is x


def test_a_pickle_runs_nothing_but_the_loader(bench: Any) -> None:
    """The one name in it is `fhelium.loads`, which takes bytes of anyone."""
    _, x = bench.fresh()
    program = fh.jit(lambda x: x + 1)
    program(x)
    variant = program.specializations[0]
    for value in (x, bench.keys.evaluation(), variant.program, variant.compilation):
        names = [
            argument
            for opcode, argument, _ in pickletools.genops(pickle.dumps(value, 3))
            if opcode.name == "GLOBAL"
        ]
        assert names == ["fhelium loads"]


def test_programs_and_compilations_are_pickled(bench: Any) -> None:
    weights = np.linspace(0, 1, bench.slots)
    bias = bench.encrypt(weights)

    def affine(x: Any) -> Any:
        return (x * weights).rescale() + bench.engine.drop_levels(bias, 1)

    message, x = bench.fresh()
    compiled = fh.jit(affine)
    expected = compiled(x)
    specialization = compiled.specializations[0]
    program = _through_pickle(specialization.program)
    assert program == specialization.program
    assert copy.deepcopy(program) == program
    for compilation in (specialization.source, specialization.compilation):
        loaded = _through_pickle(compilation)
        assert loaded.program == compilation.program
        assert set(loaded.material_bindings) == set(compilation.material_bindings)
        assert [report.name for report in loaded.reports] == [
            report.name for report in compilation.reports
        ]
        again = fh.jit(loaded)
        assert np.array_equal(again(x)._residues(), expected._residues())
    assert np.abs(bench.decrypt(expected) - (message * weights + weights)).max() < 1e-5
    # What is saved is what the arrays hold then, and the loaded arrays are the loader's own.
    weights[:] = 2.0
    changed = pickle.loads(pickle.dumps(specialization.source))
    arrays = [v for v in changed.material_bindings.values() if isinstance(v, np.ndarray)]
    assert [float(array.max()) for array in arrays] == [2.0]
    arrays[0][:] = 0.0
    assert weights.max() == 2.0


def test_arrays_of_every_type_come_back(bench: Any) -> None:
    text = """program @f {
  func (%x: !tensor<f64, [2]>) {
    return %x
  }
}"""
    program = fh.compile.Program.parse(text)
    arrays = {
        "bool": np.array([[True, False]]),
        "int32": np.array([-1, 2], np.int32),
        "int64": np.array(2**62),
        "float32": np.array([np.nan, -0.0], np.float32),
        "float64": np.zeros((0, 3)),
        "complex64": np.array([1 + 2j], np.complex64),
        "complex128": np.arange(6).reshape(2, 3).T * 1j,
    }
    compilation = fh.compile.Compilation(program, arrays)
    loaded = pickle.loads(pickle.dumps(compilation)).material_bindings
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype == np.dtype(name)
        assert loaded[name].shape == array.shape
        assert loaded[name].tobytes() == array.tobytes()


def test_a_compiled_function_says_what_to_pickle(bench: Any) -> None:
    compiled = fh.jit(lambda x: x + 1)
    with pytest.raises(TypeError, match=r"cannot be pickled: pickle the Program.*\.compilation"):
        pickle.dumps(compiled)
    with pytest.raises(TypeError, match="cannot be pickled"):
        copy.deepcopy(compiled)


def _products(pairs: list[tuple[fh.Ciphertext, fh.Ciphertext]]) -> list[fh.Ciphertext]:
    return [left * right for left, right in pairs]


def _relinearized(keys: fh.EvaluationKeys, value: fh.Ciphertext) -> tuple[int, fh.Ciphertext]:
    engine = fh.Engine(keys.parameters)
    engine.use(keys)
    # The value joins the engine that has just been made, with its keys.
    return value.parts, (value * value).relinearize().rescale().rotate(2)


def test_products_are_spread_over_processes(bench: Any) -> None:
    """SEAL-Python 106, 127: a hundred products in a pool of four processes."""
    messages = [bench.message(seed) for seed in range(5)]
    values = [bench.encrypt(message) for message in messages]
    pairs = [(place % 5, place // 5 % 5) for place in range(100)]
    work = [(values[left], values[right]) for left, right in pairs]
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        results = pool.map(_products, [work[start::4] for start in range(4)])
        parts, rotated = pool.apply(_relinearized, (bench.keys.evaluation(), values[0]))
    for start, products in enumerate(results):
        for (left, right), product in zip(pairs[start::4], products, strict=True):
            assert product.parts == 3
            expected = messages[left] * messages[right]
            assert np.abs(bench.decrypt(product) - expected).max() < 1e-6
    assert parts == 2
    expected = np.roll(messages[0] ** 2, -2)
    assert np.abs(bench.decrypt(rotated) - expected).max() < 1e-6

"""Clear arrays on a GPU: computed there, and shared with other libraries without a copy."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.errors import ArgumentError, DeviceError

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("needs_a_gpu")]


class Foreign:
    """Another library's array, with what its consumers asked of it."""

    def __init__(self, array: fh.Array, *, versioned: bool = True) -> None:
        self.array, self.versioned = array, versioned
        self.asked: list[dict[str, Any]] = []
        self.refusal: Exception | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        self.asked.append(options)
        if not self.versioned and "max_version" in options:
            raise TypeError("an unexpected keyword argument 'max_version'")
        if self.refusal is not None:
            raise self.refusal
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


@pytest.fixture(scope="module")
def engine(needs_a_gpu: None) -> fh.Engine:
    parameters = fh.Parameters(depth=2, scale_bits=40, log_n=10, allow_insecure=True)
    return fh.Engine(parameters, device="cuda")


@pytest.fixture(scope="module")
def keys(engine: fh.Engine) -> fh.KeySet:
    return engine.keygen()


def is_replayed(compiled: Any) -> bool:
    found = compiled.specializations[-1].executable.replays
    return any(text in found for text in ("graph", "recorded launches"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_on_the_gpu_are_messages(engine: fh.Engine, keys: fh.KeySet, dtype: str) -> None:
    """Encoded there to the residues that their elements have from the host; also in a replay."""
    values = (np.arange(24) % 5 - 2).reshape(4, 6).astype(dtype).T
    x = engine.encrypt(fh.Array(values), keys.public)
    here, there = engine.encode(values), engine.encode(fh.Array(values))
    assert ((x + here)._residues() == (x + there)._residues()).all()
    assert x.batch_shape == (6,)
    scale = fh.jit(lambda x, w: (x * w).rescale())
    expected = (x * values).rescale()._residues()
    assert ((x * fh.Array(values)).rescale()._residues() == expected).all()
    for _ in range(4):
        assert (scale(x, fh.Array(values))._residues() == expected).all()
        assert (scale(x, values)._residues() == expected).all()
    assert is_replayed(scale)


def test_warm_calls_with_arrays_are_replayed(engine: fh.Engine, keys: fh.KeySet) -> None:
    """Arrays on the GPU are operands of what was recorded; those of the host are computed with and
    checked there, in each call, and go up before it. Both are said, with what runs where."""

    @fh.jit
    def score(x: Any, w: Any) -> Any:
        weights = w * 2 + 1
        return x * weights, weights.sum()

    x = engine.encrypt(0.5, keys.public)
    for seed in range(5):
        w = np.random.default_rng(seed).uniform(-1, 1, engine.slots)
        here, there = score(x, w), score(x, fh.Array(w))
        assert (here[0]._residues() == there[0]._residues()).all()
        assert here[1] == there[1].numpy()
        np.testing.assert_allclose(
            engine.decrypt(there[0], keys.secret), 0.5 * (2 * w + 1), atol=1e-6
        )
    on_host, on_gpu = score.specializations
    assert is_replayed(score)
    assert "before that" not in on_gpu.executable.replays
    found = on_host.executable.replays
    for part in ("3 operations on arrays in host memory: tensor.mul", "test_arrays.py", "1 array"):
        assert part in found
    assert "before that" in on_host.explain()

    def where(specialization: Any) -> dict[str, tuple[str, str]]:
        operations = specialization.manifest["operations"]
        return {o["operation"]: (o["implementation"], o["device"]) for o in operations}

    assert where(on_host)["tensor.sum"] == ("host", "cpu")
    assert where(on_gpu)["tensor.sum"] == ("cuda", "cuda:0")
    assert where(on_gpu)["ckks.encode"] == ("cuda", "cuda:0")


def test_views_elsewhere_in_memory_are_replayed_as_one(engine: fh.Engine) -> None:
    """What a slice is a part of is no part of the signature, nor of what was recorded."""
    rows = fh.jit(lambda a: (a[1], a[2]))
    add = fh.jit(lambda x, y: x + y)
    for seed in range(4):
        values = np.random.default_rng(seed).uniform(-1, 1, (3, 8))
        second, third = rows(fh.Array(values))
        np.testing.assert_array_equal(add(second, third).numpy(), values[1] + values[2])
        first = fh.Array(values[0])
        np.testing.assert_array_equal(add(third, first).numpy(), values[2] + values[0])
    assert (len(add.specializations), is_replayed(add)) == (1, True)


def test_values_on_the_gpu_are_refused_by_the_next_wait(engine: fh.Engine, keys: fh.KeySet) -> None:
    x = engine.encrypt(0.5, keys.public)
    scale = fh.jit(lambda x, w: x * w)
    good = np.ones(4)
    for _ in range(3):
        scale(x, fh.Array(good))
        scale(x, good)
    for bad, text in [(np.nan, "index 2 is NaN"), (-1e30, "value -1e30 at index 2 does not fit")]:
        values = np.array([1.0, 2.0, bad])
        values_on_gpu = fh.Array(np.append(values, 0.0))
        for call in (lambda w: x * w, lambda w: scale(x, w)):
            with pytest.raises(ValueError, match=text):
                call(np.append(values, 0.0))
            result = call(values_on_gpu)
            with pytest.raises(ValueError, match=f"array on a GPU.*{text}"):
                engine.decrypt(result, keys.secret)
            engine.synchronize()
    # What does not depend on the values is refused at once.
    with pytest.raises(ValueError, match="last axis has 513 values"):
        engine.encode(fh.Array(np.zeros(513)))


def test_captured_arrays_on_the_gpu_are_live(engine: fh.Engine, keys: fh.KeySet) -> None:
    """Each call reads what they hold by then; frozen ones are read once."""
    w, bias = Foreign(fh.Array(np.ones(8))), fh.Array(np.arange(8.0))

    def affine(x: Any) -> Any:
        return x * (w + 1.0) + np.add(bias, bias)

    live, frozen = fh.jit(affine), fh.compile.compile(affine, frozen_materials=True)
    x = engine.encrypt(np.full(8, 0.5), keys.public)

    def expected(w: Any) -> Any:
        return 0.5 * (w + 1) + 2 * np.arange(8)

    def decrypted(value: Any) -> Any:
        return engine.decrypt(value, keys.secret)[:8]

    first = decrypted(frozen(x))
    for step in range(5):
        w.array = fh.Array(np.full(8, 0.25 * step))
        np.testing.assert_allclose(decrypted(live(x)), expected(0.25 * step), atol=1e-6)
        np.testing.assert_array_equal(decrypted(frozen(x)), first)
    np.testing.assert_allclose(first, expected(1.0), atol=1e-6)
    assert is_replayed(live)
    assert is_replayed(frozen)
    assert set(live.specializations[0].manifest["materials"].values()) == {"live"}
    report = live.check(x, secret=keys.secret)
    assert report.passed
    w.array = fh.Array(np.ones(4))
    with pytest.raises(ValueError, match="the type may not"):
        live(x)


def test_functions_of_captured_arrays_alone_run_where_these_are() -> None:
    w = fh.Array(np.arange(4.0))
    shifted = fh.jit(lambda step: w * step)
    np.testing.assert_array_equal(shifted(2.0).numpy(), 2 * np.arange(4.0))
    compilation = shifted.specializations[0].compilation
    loaded = fh.loads(fh.dumps(compilation))
    (material,) = loaded.material_bindings.values()
    np.testing.assert_array_equal(material, np.arange(4.0))


class Lent:
    """An array of another library's, what can be done with it, and what that asks of the other."""

    def __init__(self, engine: fh.Engine, keys: fh.KeySet) -> None:
        self.values = np.arange(8.0) / 8
        self.foreign = Foreign(fh.Array(self.values))
        self.array = array = fh.Array.from_dlpack(self.foreign)
        (first,) = self.foreign.asked
        self.stream = first["stream"]
        x = engine.encrypt(np.ones(8), keys.public)
        double, scale = fh.jit(lambda a: a * 2.0), fh.jit(lambda x, a: x * a)
        captured, both = fh.jit(lambda x: x * array), fh.jit(lambda x: x * self.foreign)
        self.uses: dict[str, Callable[[], Any]] = {
            "numpy": array.numpy,
            "to": lambda: array.to("cpu"),
            "dlpack": array.__dlpack__,
            "on a stream": lambda: array.__dlpack__(stream=2, max_version=(1, 0)),
            "a copy": lambda: array.__dlpack__(stream=-1, copy=True),
            "called": lambda: double(array),
            "beside a ciphertext": lambda: scale(x, array),
            "captured": lambda: captured(x),
            "the other's captured": lambda: both(x),
            "eager": lambda: x * array,
            "the other's eager": lambda: x * self.foreign,
            "encoded": lambda: engine.encode(array),
        }
        for use in self.uses.values():
            use()

    def asked(self, use: Callable[[], Any]) -> list[Any]:
        """The streams that the other library is asked to put behind its work."""
        self.foreign.asked.clear()
        use()
        return [options["stream"] for options in self.foreign.asked]


@pytest.fixture
def lent(engine: fh.Engine, keys: fh.KeySet) -> Lent:
    return Lent(engine, keys)


def test_each_use_asks_the_lender_once(lent: Lent) -> None:
    """What the other library does after the import comes before each later use."""
    for _ in range(4):
        found = {name: lent.asked(use) for name, use in lent.uses.items()}
        assert found == {name: [lent.stream] for name in lent.uses}
    array = lent.array
    for unused in (
        lambda: (array.shape, array.dtype, repr(array)),
        lambda: array.to("cuda"),
        lambda: fh.Array.from_dlpack(array),
        lambda: array.__dlpack__(stream=-1),
    ):
        assert lent.asked(unused) == []


def test_a_lender_may_refuse_and_keeps_what_it_lent(lent: Lent) -> None:
    lent.foreign.refusal = BufferError("not now")
    for name, use in lent.uses.items():
        # What is captured is read by a call that has begun.
        expected = ArgumentError if "captured" in name else BufferError
        with pytest.raises(expected, match="not now"):
            use()
    lent.foreign.refusal = None
    lent.foreign.array = fh.Array(np.zeros(8))
    np.testing.assert_array_equal(lent.array.numpy(), lent.values)


def test_results_that_share_memory_ask_its_lender(lent: Lent) -> None:
    """Whether it came as an argument or by capture, from an array here or the other library's own,
    and whatever else is dropped; results with memory of their own ask nobody."""
    array, foreign = lent.array, lent.foreign
    rows = fh.jit(lambda a: (a[1:3], a * 1.0))
    of_array, of_foreign = fh.jit(lambda: array[1:3]), fh.jit(lambda: foreign[1:3])
    for _ in range(4):
        view, made = rows(fh.Array.from_dlpack(foreign))
        views = [view, fh.Array.from_dlpack(view), rows(foreign)[0]]
        views += [rows.specializations[0].executable.run(foreign)[0], of_array(), of_foreign()]
        gc.collect()
        for view in views:
            assert lent.asked(view.numpy) == [lent.stream]
            np.testing.assert_array_equal(view.numpy(), lent.values[1:3])
        assert lent.asked(rows(view)[0].numpy) == [lent.stream]
        assert lent.asked(made.numpy) == []


def test_lenders_that_keep_what_they_lent_are_collected() -> None:
    foreign = Foreign(fh.Array([1.0, 2.0]))
    foreign.view = view = fh.Array.from_dlpack(foreign)  # type: ignore[attr-defined]
    gone = weakref.ref(foreign)
    gc.collect()
    assert gone() is foreign
    np.testing.assert_array_equal(view.numpy(), [1.0, 2.0])
    del foreign, view
    gc.collect()
    assert gone() is None

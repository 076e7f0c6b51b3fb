"""Rules 13 to 34: calls, preparation and signatures."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import (
    CallSignature,
    OperationBackend,
    Pipeline,
    PythonPass,
    SpecializationMiss,
    compile,
    default_pipeline,
)
from fhelium.errors import CaptureError, LinkError, MissingKey


class Counted:
    """A compiled function that counts how often it is captured."""

    def __init__(self, **options: Any) -> None:
        self.captures = 0

        def body(x: Any, k: int = 1) -> Any:
            self.captures += 1
            return x * k + x

        self.compiled = compile(body, **options)


def test_rule_13_arguments_bind_as_in_python() -> None:
    counted = Counted()
    x = np.arange(4.0)
    for call in (
        lambda: counted.compiled(x),
        lambda: counted.compiled(x, 1),
        lambda: counted.compiled(x=x, k=1),
        lambda: counted.compiled(k=1, x=x),
    ):
        np.testing.assert_array_equal(call(), 2 * x)
    assert counted.captures == 1
    assert len(counted.compiled.specializations) == 1


def test_rule_14_any_prepared_variant_is_found() -> None:
    counted = Counted()
    shapes = [(4,), (5,), (2, 2)]
    for _ in range(2):
        for shape in shapes:
            counted.compiled(np.ones(shape))
    assert counted.captures == 3
    assert (counted.compiled.hits, counted.compiled.misses) == (3, 3)


def test_rule_15_a_hit_runs_with_any_contents(bench: Any) -> None:
    @compile
    def f(ciphertext: Any, plaintext: Any, array: Any, key: Any) -> Any:
        return ciphertext.rotate(1, key=key) + plaintext + array

    for seed in range(3):
        x, cx = bench.fresh(seed)
        y, z = bench.message(seed + 10), bench.message(seed + 20)
        out = f(cx, bench.engine.encode(y), z, bench.keys.rotations[1])
        assert np.abs(bench.decrypt(out) - (np.roll(x, -1) + y + z)).max() < 1e-6
    assert (f.hits, f.misses, len(f.specializations)) == (2, 1, 1)


def test_rule_16_a_miss_compiles_and_runs() -> None:
    compiled = Counted().compiled
    assert compiled.specializations == ()
    np.testing.assert_array_equal(compiled(np.ones(2), 3), np.full(2, 4.0))
    assert len(compiled.specializations) == 1


def test_rule_17_a_miss_under_error_raises_and_stores_nothing() -> None:
    counted = Counted(on_miss="error")
    with pytest.raises(SpecializationMiss, match="nothing is prepared"):
        counted.compiled(np.ones(2))
    assert isinstance(SpecializationMiss("x"), RuntimeError)
    assert counted.captures == 0
    assert counted.compiled.specializations == ()
    counted.compiled.prepare(np.ones(2))
    np.testing.assert_array_equal(counted.compiled(np.zeros(2)), np.zeros(2))
    with pytest.raises(SpecializationMiss, match=r"x: shape is \(3,\), prepared for \(2,\)"):
        counted.compiled(np.ones(3))
    with pytest.raises(SpecializationMiss, match=r"k: value is 2, prepared for 1"):
        counted.compiled(np.ones(2), 2)
    with pytest.raises(TypeError, match="argument x is a list"):
        counted.compiled([1.0, 2.0])


def test_rule_18_failures_propagate_and_are_tried_again(bench: Any) -> None:
    calls = []

    @compile
    def f(x: Any) -> Any:
        calls.append(1)
        if len(calls) < 3:
            raise ValueError("not yet")
        return x

    for _ in range(2):
        with pytest.raises(CaptureError, match="not yet"):
            f(np.ones(1))
        assert f.specializations == ()
    assert f(np.ones(1)) == 1
    assert len(calls) == 3

    def failing(compilation: Any) -> None:
        raise RuntimeError("this pass fails")

    broken = compile(lambda x: x + x, pipeline=Pipeline(PythonPass("broken", failing)))
    with pytest.raises(fh.errors.CompileError, match="pass broken: this pass fails"):
        broken(np.ones(1))
    assert broken.specializations == ()

    needs_key = compile(lambda x: x.rotate(7))
    _, ciphertext = bench.fresh()
    with pytest.raises(MissingKey, match="rotation 7"):
        needs_key(ciphertext)
    assert needs_key.specializations == ()


def test_rule_19_captures_in_threads_know_nothing_of_each_other() -> None:
    barrier = threading.Barrier(8)

    def work(number: int) -> Any:
        @compile
        def f(x: Any) -> Any:
            barrier.wait()
            result = x * number
            barrier.wait()
            return result + number

        return f(np.ones(3))

    with ThreadPoolExecutor(8) as pool:
        for number, result in enumerate(pool.map(work, range(8))):
            np.testing.assert_array_equal(result, np.full(3, 2.0 * number))


WEIGHT = np.ones(3)


def changes_its_module(x: Any) -> Any:
    global WEIGHT
    WEIGHT = x * 2
    return WEIGHT


def test_rule_19_capture_touches_no_module_state() -> None:
    before = WEIGHT
    np.testing.assert_array_equal(compile(changes_its_module)(np.ones(3)), np.full(3, 2.0))
    assert WEIGHT is before


def test_rule_20_a_limit_drops_the_variant_used_longest_ago() -> None:
    counted = Counted(max_specializations=2)
    for size in (1, 2, 1, 3):
        counted.compiled(np.ones(size))
    shapes = [
        specialization.signature.argument("x").get("shape")
        for specialization in counted.compiled.specializations
    ]
    assert shapes == ["(1,)", "(3,)"]
    unbounded = Counted()
    for size in range(1, 9):
        unbounded.compiled(np.ones(size))
    assert len(unbounded.compiled.specializations) == 8


def test_rule_21_threads_that_miss_together_compile_once() -> None:
    captures = []

    @compile
    def f(x: Any) -> Any:
        captures.append(1)
        time.sleep(0.05)
        return x + 1

    barrier = threading.Barrier(8)

    def work(_: int) -> Any:
        barrier.wait()
        return f(np.ones(2))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    assert len(captures) == 1
    assert len(f.specializations) == 1
    assert all((result == 2).all() for result in results)


def test_rule_21_a_hit_does_not_wait_for_anothers_preparation() -> None:
    entered, leave = threading.Event(), threading.Event()

    @compile
    def f(x: Any) -> Any:
        if x.shape == (2,):
            entered.set()
            leave.wait(10)
        return x + 1

    f(np.ones(1))
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(f, np.ones(2))
        assert entered.wait(10)
        assert f(np.ones(1)) == 2
        assert not slow.done()
        leave.set()
        assert (slow.result(10) == 2).all()


def test_rule_22_prepare_gives_the_specialization_of_later_calls() -> None:
    counted = Counted(on_miss="error")
    first = counted.compiled.prepare(np.ones(2))
    assert counted.compiled.prepare(np.zeros(2)) is first
    assert counted.compiled.specializations == (first,)
    assert first.cost["runs"] == 0
    counted.compiled(np.ones(2))
    assert first.cost["runs"] == 1
    assert counted.captures == 1


def test_rule_23_prepare_makes_no_keys(bench: Any) -> None:
    engine = fh.Engine(bench.engine.parameters)
    keys = engine.keygen(rotations=[1])
    ciphertext = engine.encrypt(1.0, keys.public)
    f = compile(lambda x: (x * x).relinearize().rotate(1))
    with pytest.raises(MissingKey, match=r"relinearization.*rotation 1"):
        f.prepare(ciphertext)
    engine.use(keys.evaluation())
    assert {kind for kind, _ in f.prepare(ciphertext).keys} == {"relinearization", "rotation 1"}


def test_rule_24_a_prepared_call_needs_no_more_compilation() -> None:
    f = compile(lambda x: x + 1)
    f.prepare(np.ones(2))
    before = f.misses
    f(np.ones(2))
    assert f.misses == before


def test_rule_25_specializations_are_in_the_order_of_preparation() -> None:
    counted = Counted()
    for size in (3, 1, 2):
        counted.compiled.prepare(np.ones(size))
    found = counted.compiled.specializations
    assert isinstance(found, tuple)
    assert [entry.signature.argument("x").get("shape") for entry in found] == [
        "(3,)",
        "(1,)",
        "(2,)",
    ]


def test_rule_26_another_backend_relinks_without_capture() -> None:
    counted = Counted()
    counted.compiled(np.ones(2))
    other = counted.compiled.with_backend(OperationBackend())
    assert other.specializations == ()
    assert other.reference is counted.compiled.reference
    np.testing.assert_array_equal(other(np.ones(2)), np.full(2, 2.0))
    assert counted.captures == 1
    assert len(other.specializations) == 1
    other(np.ones(3))
    assert counted.captures == 2
    assert len(counted.compiled.specializations) == 1

    strict = Counted(on_miss="error")
    strict.compiled.prepare(np.ones(2))
    relinked = strict.compiled.with_backend(OperationBackend())
    with pytest.raises(SpecializationMiss):
        relinked(np.ones(2))
    relinked.prepare(np.ones(2))
    relinked(np.ones(2))
    assert strict.captures == 1


def test_rule_27_a_relinked_variant_keeps_the_chosen_implementations() -> None:
    def slow_add(x: Any, y: Any) -> Any:
        return x + y

    mine = OperationBackend().with_implementation("tensor.add", "mine", slow_add)
    counted = Counted(backend=mine)
    counted.compiled(np.ones(2))
    other = counted.compiled.with_backend(OperationBackend())
    with pytest.raises(LinkError, match='"mine"'):
        other(np.ones(2))


def test_rule_28_clear_drops_all_variants_of_this_callable_only() -> None:
    counted = Counted()
    counted.compiled(np.ones(2))
    other = counted.compiled.with_backend(OperationBackend())
    counted.compiled.clear()
    assert counted.compiled.specializations == ()
    other(np.ones(2))
    assert counted.captures == 1
    counted.compiled(np.ones(2))
    assert counted.captures == 2


FACTOR = 2.0


def uses_a_constant(x: Any) -> Any:
    return x * FACTOR


def test_rule_29_a_changed_constant_is_unnoticed_until_clear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f = compile(uses_a_constant)
    assert f(np.ones(1)) == 2.0
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert f(np.ones(1)) == 2.0
    f.clear()
    assert f(np.ones(1)) == 3.0


def test_rule_30_a_signature_is_readable_and_hashable(bench: Any) -> None:
    f = compile(lambda x, w, k: x * w)
    _, x = bench.fresh(batch=(3,))
    signature = f.prepare(x, bench.message(), 2).signature
    assert isinstance(signature, CallSignature)
    assert [argument.name for argument in signature.arguments] == ["x", "w", "k"]
    assert [argument.kind for argument in signature.arguments] == ["ciphertext", "tensor", "static"]
    x_signature = signature.argument("x")
    assert x_signature.get("level") == "4"
    assert x_signature.get("batch_shape") == "(3,)"
    assert x_signature.get("unknown", "none") == "none"
    assert signature.argument("w").get("dtype") == "f64"
    assert signature.argument("y") is None
    again = f.prepare(x, bench.message(), 2).signature
    assert {signature: 1}[again] == 1


def test_rule_31_every_condition_parts_variants(bench: Any) -> None:
    f = compile(lambda x: x)
    _, x = bench.fresh()
    ciphertexts = [
        x,
        x.drop_levels(1),
        bench.encrypt(1.0, scale=2**30),
        x * x,
        bench.fresh(batch=(2,))[1],
    ]
    plaintexts = [
        bench.engine.encode(1.0),
        bench.engine.encode(1.0, level=1),
        bench.engine.encode(1.0, scale=2**30),
        bench.engine.encode(np.ones((2, 4))),
    ]
    arrays = [
        np.ones(2),
        np.ones(3),
        np.ones((2, 1)),
        np.ones(2, np.float32),
        np.ones(2, np.int64),
        np.ones((3, 2)),
        np.ones((2, 3)).T,
        np.ones((1, 3, 2)),
    ]
    statics = [None, True, 1, 1.0, 0.0, -0.0, 1 + 0j, "1", 2**70, float("2")]
    arguments = [*ciphertexts, *plaintexts, *arrays, *statics]
    for _ in range(2):
        for argument in arguments:
            f(argument)
    assert len(f.specializations) == len(arguments)
    with pytest.raises(TypeError, match=r"argument x is a dict; arguments are ciphertexts"):
        f({"a": x})
    for refused in (object(), b"bytes", {1}, [x]):
        with pytest.raises(TypeError, match="argument x"):
            f(refused)


def test_rule_31_key_conditions(bench: Any) -> None:
    f = compile(lambda x, key: x)
    _, x = bench.fresh()
    keys = [
        bench.keys.rotations[1],
        bench.keys.rotations[2],
        bench.keys.conjugation,
        bench.keys.relinearization,
    ]
    for key in keys:
        f(x, key)
    assert len(f.specializations) == 4


def test_rule_32_array_subclasses_are_arrays() -> None:
    """Ours has no subclass of a value; an array subclass is taken for its contents."""

    class Named(np.ndarray):
        pass

    f = compile(lambda x: x + x)
    f(np.ones(2))
    np.testing.assert_array_equal(f(np.ones(2).view(Named)), np.full(2, 2.0))
    assert len(f.specializations) == 1


def test_rule_33_contents_are_not_in_the_signature() -> None:
    f = compile(lambda x: x + x)
    for value in (0.0, 1.0, np.nan):
        f(np.full(3, value))
    assert (f.hits, f.misses) == (2, 1)


def test_rule_34_conditions_are_equalities() -> None:
    f = compile(lambda x: x + x)
    for size in range(1, 5):
        f(np.ones(size))
    assert len(f.specializations) == 4


def test_rule_66_a_pipeline_is_chosen_by_signature_once() -> None:
    seen = []

    def choose(signature: CallSignature) -> Pipeline:
        seen.append(signature.argument("x").get("shape"))
        return default_pipeline()

    f = compile(lambda x: x + x, pipeline=choose)
    for size in (1, 2, 1, 2):
        f(np.ones(size))
    assert seen == ["(1,)", "(2,)"]
    wrong = compile(lambda x: x, pipeline=lambda signature: "default")
    with pytest.raises(TypeError, match="must return a Pipeline, found str"):
        wrong(np.ones(1))


def test_rule_77_binding_errors_name_the_users_function() -> None:
    @compile
    def score(x: Any, weight: Any) -> Any:
        return x * weight

    one = np.ones(1)
    for call in (
        lambda: score(one),
        lambda: score(one, one, one),
        lambda: score(one, wait=one),
        lambda: score(one, one, weight=one),
    ):
        with pytest.raises(TypeError, match=r"score\(x: Any, weight: Any\)|score"):
            call()
    assert score.specializations == ()


def test_explain_says_what_a_call_would_do() -> None:
    f = compile(lambda x: x + x)
    assert "a call would compile" in f.explain(np.ones(2))
    f(np.ones(2))
    assert f.explain(np.ones(2)).startswith("hit")
    assert "shape is (3,), prepared for (2,)" in f.explain(np.ones(3))
    assert (f.hits, f.misses) == (0, 1)

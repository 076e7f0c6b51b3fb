"""Reports about error messages: wrong uses of every public method, and what is said about each.

TenSEAL 217: a product beyond the last level said "ValueError: std::exception".
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import (
    InputSpec,
    OperationBackend,
    Pipeline,
    Program,
    PythonPass,
    RotationHoisting,
    capture,
    compile,
    default_pipeline,
    encrypted,
    message,
    plaintext,
    requirements,
    static,
)
from fhelium.errors import (
    ArgumentError,
    CompileError,
    CompileInputError,
    DeviceError,
    FheliumError,
    KeyMismatch,
    LevelExhausted,
    LevelMismatch,
    MissingKey,
    ParameterError,
    PartsMismatch,
    ScaleMismatch,
    SecurityError,
    SerializationError,
    SpecializationMiss,
)


def plain_function(x: Any) -> Any:
    return x + 1


def two(x: Any, y: Any) -> Any:
    return x + y


TEXT = "program @f {\n  func (%x: !tensor<f64, [2]>) {\n    BODY\n    return %x\n  }\n}\n"

Use = Callable[[Any], Any]
USES: list[tuple[Use, type[Exception], list[str]]] = [
    # Operators.
    (lambda t: t.x + "text", TypeError, ["+", "Ciphertext", "str"]),
    (lambda t: t.x * None, TypeError, ["*", "Ciphertext", "NoneType"]),
    (lambda t: object() - t.x, TypeError, ["-", "Ciphertext", "object"]),
    (lambda t: t.x / 2, TypeError, ["ciphertext", "divided", "multiply by the inverse"]),
    (lambda t: t.x + [1.0] * (t.slots + 1), ArgumentError, ["513", "512"]),
    (lambda t: t.x + np.ones((2, 3), object), TypeError, ["object", "real or complex"]),
    (lambda t: t.x * np.array(["a"]), TypeError, ["<U1", "real or complex"]),
    (lambda t: t.x + np.nan, ArgumentError, ["NaN", "finite"]),
    (lambda t: t.x * [0.0, np.inf], ArgumentError, ["inf", "index 1", "finite"]),
    (lambda t: t.x * 1e300, ArgumentError, ["1e300", "index 0", "stay below"]),
    (lambda t: t.x * 2**70, ArgumentError, [str(2**70), "2^63"]),
    (lambda t: t.x**3, ArgumentError, ["3", "1 and 2"]),
    (lambda t: t.x**0.5, ArgumentError, ["0.5", "1 and 2"]),
    (lambda t: t.x**True, ArgumentError, ["True", "1 and 2"]),
    (lambda t: t.x < 1, TypeError, ["compared", "decrypt"]),
    (lambda t: t.x == 1.0, TypeError, ["==", "decrypt"]),
    (lambda t: bool(t.x), TypeError, ["bool()", "decrypt"]),
    (lambda t: np.exp(t.x), TypeError, ["numpy.exp", "there are"]),
    (lambda t: np.median(t.x), TypeError, ["numpy.median", "there are"]),
    (lambda t: np.maximum(t.x, 0), TypeError, ["maximum", "decrypt"]),
    (lambda t: np.roll(t.x, 0.5), TypeError, ["numpy.roll", "float", "integer"]),
    (lambda t: np.roll(t.x, 1, axis=0), TypeError, ["axis=0", "axis=-1"]),
    (lambda t: t.x + t.low, LevelMismatch, ["level 4", "level 0", "drop_levels(4)"]),
    (lambda t: t.low - t.x, LevelMismatch, ["level 0", "level 4", "right one"]),
    (lambda t: t.x + t.x * 0.5, ScaleMismatch, ["2^40", "2^80", "rescale"]),
    (lambda t: t.three * t.x, PartsMismatch, ["3 parts", "2", "relinearize"]),
    (lambda t: t.low * t.low, LevelExhausted, ["level 0 of 4", "depth=5"]),
    (lambda t: t.x + t.foreign, KeyMismatch, ["secret"]),
    (lambda t: t.x * t.theirs, KeyMismatch, ["parameters"]),
    (lambda t: t.x + t.stranger.encode(1.0), KeyMismatch, ["parameters"]),
    # Methods of ciphertexts.
    (lambda t: t.x.rotate(1.5), TypeError, ["float", "integer"]),
    (lambda t: t.x.rotate("1"), TypeError, ["str", "integer"]),
    (lambda t: t.x.rotate(6), MissingKey, ["rotation 6", "[1, 2, 3, 4, 8, 509, 511]"]),
    (lambda t: t.x.rotate(1, key=t.keys.rotations[2]), MissingKey, ["rotation 2", "rotation 1"]),
    (
        lambda t: t.x.rotate(1, key=t.keys.relinearization),
        MissingKey,
        ["relinearization", "rotation 1"],
    ),
    (lambda t: t.x.rotate(1, key=t.plain), TypeError, ["Plaintext", "evaluation key"]),
    (lambda t: t.x.rotate(1, key=3), TypeError, ["int", "evaluation key"]),
    (lambda t: t.x.rotate(1, key=t.other.keys.rotations[1]), KeyMismatch, ["secret"]),
    (lambda t: t.x.rotate(1, key=t.their_keys.rotations[1]), KeyMismatch, ["parameters"]),
    (
        lambda t: t.x.rotate(1, key=t.keys.rotations),
        TypeError,
        ["RotationKeys", "keys.rotations[1]"],
    ),
    (lambda t: t.three.rotate(1), PartsMismatch, ["3 parts", "2", "relinearize"]),
    (lambda t: t.three.conjugate(), PartsMismatch, ["3 parts", "2", "relinearize"]),
    (lambda t: t.x.relinearize(), PartsMismatch, ["2 parts", "3"]),
    (lambda t: t.three.relinearize().relinearize(), PartsMismatch, ["2 parts", "3"]),
    (lambda t: t.x.rescale(), ScaleMismatch, ["2^40", "2^20", "once"]),
    (lambda t: t.low.rescale(), LevelExhausted, ["level 0 of 4", "depth=5"]),
    (lambda t: t.x.drop_levels(-1), ArgumentError, ["-1", "0 or more"]),
    (lambda t: t.x.drop_levels(5), LevelExhausted, ["5", "level 4"]),
    (lambda t: t.x.drop_levels(0.5), TypeError, ["float", "integer"]),
    (lambda t: t.x.drop_levels(2**70), FheliumError, [str(2**70)]),
    (lambda t: t.x.to("tpu"), DeviceError, ["tpu", '"cpu"']),
    (lambda t: t.x.to(3), TypeError, ["int", "str"]),
    (lambda t: setattr(t.x, "level", 3), AttributeError, ["level"]),
    (lambda t: list(t.x), TypeError, ["Ciphertext", "itera"]),
    (lambda t: float(t.x), TypeError, ["Ciphertext"]),
    (lambda t: t.batch[3], ArgumentError, ["index 3", "size 2", "(2,)"]),
    (lambda t: t.batch["a"], Exception, ["str"]),
    (lambda t: t.batch[0, 0, 0], ArgumentError, ["too many", "3", "(2,)"]),
    (lambda t: t.batch.reshape(3), ArgumentError, ["[3]", "[2]"]),
    (lambda t: t.batch.sum_batch(1), Exception, ["1", "batch"]),
    (lambda t: t.x.sum_batch(), Exception, ["0", "batch"]),
    (lambda t: t.batch + np.ones((3, 1)), ArgumentError, ["2", "3"]),
    # Engines.
    (lambda t: fh.Engine(3), TypeError, ["int", "Parameters"]),
    (lambda t: fh.Engine(t.parameters, device="tpu"), DeviceError, ["tpu", '"cpu"']),
    (lambda t: fh.Engine(t.parameters, device="cuda:99"), DeviceError, ["device"]),
    (lambda t: fh.Engine(t.parameters, threads=0), ArgumentError, ["0", "positive"]),
    (lambda t: fh.Engine(t.parameters, threads=-1), Exception, ["-1"]),
    (lambda t: fh.Engine(t.parameters, seed="x"), TypeError, ["str"]),
    (lambda t: t.engine.keygen(rotations=1), TypeError, ["int", "in a list"]),
    (lambda t: t.engine.keygen(rotations=["a"]), TypeError, ["str", "integer"]),
    (lambda t: t.engine.keygen(rotations=[1.5]), TypeError, ["float", "integer"]),
    (lambda t: t.engine.encode("text"), TypeError, ["<U4", "real or complex"]),
    (lambda t: t.engine.encode(None), TypeError, ["object", "real or complex"]),
    (lambda t: t.engine.encode([]), ArgumentError, ["0", "1 to 512"]),
    (lambda t: t.engine.encode([1.0], level=9), ArgumentError, ["level 9", "0 to 4"]),
    (lambda t: t.engine.encode([1.0], level=-1), ArgumentError, ["-1", "0 or more"]),
    (lambda t: t.engine.encode([1.0], level=1.5), ArgumentError, ["1.5", "integer"]),
    (lambda t: t.engine.encode([1.0], scale=0), ArgumentError, ["0", "positive finite"]),
    (lambda t: t.engine.encode([1.0], scale=-2.0), ArgumentError, ["-2", "positive finite"]),
    (lambda t: t.engine.encode([1.0], scale=np.nan), ArgumentError, ["nan", "positive finite"]),
    (lambda t: t.engine.encode([1.0], scale="2^x"), ArgumentError, ["2^x", "expected"]),
    (lambda t: t.engine.encode([1.0], scale=2**500), ArgumentError, ["2^500", "209.5 bits"]),
    (lambda t: t.engine.encode([1e9], level=0), ArgumentError, ["1000000000", "level 0", "below"]),
    (lambda t: t.engine.decode(t.x), TypeError, ["Ciphertext", "Plaintext"]),
    (lambda t: t.engine.encrypt(1.0, t.keys), TypeError, ["KeySet", "PublicKey"]),
    (
        lambda t: t.engine.encrypt(1.0, t.keys.relinearization),
        TypeError,
        ["EvaluationKey", "PublicKey"],
    ),
    (lambda t: t.engine.encrypt(t.plain, t.keys.public, level=1), TypeError, ["level"]),
    (lambda t: t.engine.encrypt(t.x, t.keys.public), TypeError, ["encrypted value", "decrypt"]),
    (lambda t: t.engine.encrypt(1.0, t.their_keys.public), KeyMismatch, ["parameters"]),
    (lambda t: t.engine.decrypt(t.plain, t.keys.secret), TypeError, ["Plaintext", "Ciphertext"]),
    (lambda t: t.engine.decrypt(t.x, t.keys.public), TypeError, ["PublicKey", "secret"]),
    (lambda t: t.engine.decrypt(t.x, t.keys.evaluation()), TypeError, ["EvaluationKeys", "secret"]),
    (lambda t: t.engine.decrypt(t.x, t.other.keys.secret), KeyMismatch, ["secret"]),
    (lambda t: t.engine.decrypt(t.theirs, t.keys.secret), KeyMismatch, ["parameters"]),
    (lambda t: t.engine.decrypt(t.x, t.keys.secret, noise_flooding=-1.0), Exception, ["-1"]),
    (lambda t: t.engine.decrypt(t.x, t.keys.secret, noise_flooding=1e9), Exception, ["1000000000"]),
    (lambda t: t.engine.use(t.keys), TypeError, ["KeySet", "evaluation()"]),
    (lambda t: t.engine.use(3), TypeError, ["int", "EvaluationKeys"]),
    (lambda t: t.engine.use(t.their_keys.evaluation()), KeyMismatch, ["parameters"]),
    (lambda t: t.engine.add(1.0, 2.0), TypeError, ["float", "ciphertext"]),
    (lambda t: t.engine.multiply(t.plain, t.plain), TypeError, ["Plaintext", "ciphertext"]),
    (lambda t: t.engine.negate(t.plain), TypeError, ["Plaintext", "ciphertext"]),
    (lambda t: t.engine.square(3), TypeError, ["int", "ciphertext"]),
    (lambda t: t.engine.rotate(3, 1), TypeError, ["int", "ciphertext"]),
    (lambda t: t.engine.rotate_many(t.x, [1], key=3), TypeError, ["int", "keys.rotations"]),
    (lambda t: t.engine.rotate_many(t.x, 1), TypeError, ["int", "in a list"]),
    (lambda t: t.engine.rotate_many(t.x, [6]), MissingKey, ["rotation 6"]),
    (lambda t: t.engine.add(t.theirs, 1.0), KeyMismatch, ["parameters"]),
    (lambda t: t.engine.stack([]), ArgumentError, ["one ciphertext at least", "none"]),
    (lambda t: t.engine.stack([t.x, 3]), TypeError, ["int", "ciphertexts"]),
    (lambda t: t.engine.stack([t.x, t.low]), FheliumError, ["level 4", "level 0"]),
    (lambda t: t.engine.stack([t.x, t.plain]), Exception, ["plaintext"]),
    (lambda t: t.engine.sum_batch(3), TypeError, ["int", "ciphertext"]),
    # Files.
    (lambda t: fh.dumps(t.keys), SerializationError, ["allow_secret=True"]),
    (lambda t: fh.dumps(3), TypeError, ["int"]),
    (lambda t: fh.loads(b"nonsense"), SerializationError, ["found", "expected"]),
    (lambda t: fh.loads(b""), SerializationError, ["0 bytes"]),
    (lambda t: fh.loads(fh.dumps(t.x)[:-5]), SerializationError, ["bytes"]),
    (lambda t: fh.loads(fh.dumps(t.x), fh.KeySet), SerializationError, ["ciphertext", "key set"]),
    (lambda t: fh.loads(3), TypeError, ["int"]),
    (lambda t: fh.load("/nowhere/at/all"), OSError, ["/nowhere/at/all"]),
    (lambda t: fh.save(t.x, "/nowhere/at/all"), OSError, ["/nowhere/at/all"]),
    (lambda t: fh.inspect("/nowhere/at/all"), OSError, ["/nowhere/at/all"]),
    # Parameters, scales and keys.
    (lambda t: fh.Parameters(depth=300), ParameterError, ["300", "0..=200"]),
    (lambda t: fh.Parameters(depth=50, log_n=14), SecurityError, ["430", "log_n = "]),
    (lambda t: fh.Parameters.preset("N99"), Exception, ["N99", "N14Depth7Scale40"]),
    (lambda t: fh.Preset.N99, AttributeError, ["N99", "N14Depth7Scale40"]),
    (lambda t: fh.Scale(0), ArgumentError, ["0", "positive finite"]),
    (lambda t: fh.Scale("nonsense"), ArgumentError, ["nonsense", "expected"]),
    (lambda t: t.keys.rotations[5], MissingKey, ["step 5", "[1, 2, 3, 4, 8, 509, 511]"]),
    (lambda t: t.keys.rotations["1"], Exception, ["str"]),
    # Compiled functions.
    (lambda t: compile(3), TypeError, ["3", "int", "Python function"]),
    (lambda t: compile(len), TypeError, ["len", "Python function"]),
    (lambda t: compile(t.double), TypeError, ["compiled already"]),
    (
        lambda t: compile(plain_function, on_miss="never"),
        ValueError,
        ["never", '"compile" or "error"'],
    ),
    (lambda t: compile(plain_function, max_specializations=0), ValueError, ["0", "positive"]),
    (
        lambda t: compile(plain_function, inputs={"y": encrypted()}),
        CompileInputError,
        ["'x'", "'y'"],
    ),
    (lambda t: compile(plain_function, inputs={"x": 3}), TypeError, ["int", "InputSpec"]),
    (lambda t: compile(plain_function, colour="red"), TypeError, ["colour"]),
    (lambda t: t.double(), TypeError, ["missing", "'x'"]),
    (lambda t: t.double(t.x, t.x), TypeError, ["too many"]),
    (lambda t: t.double(y=t.x), TypeError, ["missing", "'x'"]),
    (lambda t: t.double(t.x, y=t.x), TypeError, ["unexpected", "'y'"]),
    (lambda t: t.double({1: 2}), TypeError, ["x", "dict", "arguments are"]),
    (lambda t: t.double(object()), TypeError, ["x", "object", "arguments are"]),
    (lambda t: t.double(t.double), TypeError, ["x", "CompiledCallable", "global"]),
    (lambda t: t.double(float("nan")), ValueError, ["'x'", "nan", "finite"]),
    (lambda t: t.double(np.array(["a"])), Exception, ["x", "<U1"]),
    (lambda t: t.missing(t.x), SpecializationMiss, ["nothing is prepared", "prepare("]),
    (lambda t: compile(two)(t.x, t.theirs), KeyMismatch, ["two parameter sets", "2^38", "2^40"]),
    (lambda t: compile(two)(t.x, t.foreign), KeyMismatch, ["secret"]),
    (lambda t: pickle.dumps(t.double), TypeError, ["pickle", "specialization"]),
    (lambda t: copy.deepcopy(t.double), TypeError, ["pickle", "specialization"]),
    (lambda t: compile(plain_function, pipeline=lambda s: 3)(t.x), TypeError, ["int", "Pipeline"]),
    (lambda t: capture(plain_function, inputs={}), CompileInputError, ["'x'", "none"]),
    (
        lambda t: capture(plain_function, inputs={"x": encrypted()}),
        CompileInputError,
        ["'x'", "parameters"],
    ),
    (
        lambda t: capture(plain_function, inputs={"x": encrypted(9)}, parameters=t.parameters),
        CompileInputError,
        ["'x'", "level 9", "0 to 4"],
    ),
    (lambda t: requirements(3), TypeError, ["int", "Program"]),
    (lambda t: InputSpec("secret"), ValueError, ["'secret'", "encrypted"]),
    (lambda t: encrypted(-1), ValueError, ["level", "-1"]),
    (lambda t: encrypted(parts=4), ValueError, ["parts", "4", "2 or 3"]),
    (lambda t: plaintext(scale=0), ValueError, ["scale", "0", "positive"]),
    (lambda t: message((2, -1)), ValueError, ["shape", "-1"]),
    (lambda t: static([1]), TypeError, ["list", "bool, int, float"]),
    (lambda t: static(float("inf")), ValueError, ["inf", "finite"]),
    # Programs, pipelines and backends.
    (lambda t: Program.parse(""), SerializationError, ["line 1", "end of the text"]),
    (lambda t: Program.parse("program @f {"), SerializationError, ["line 1, column 13"]),
    (
        lambda t: Program.parse(TEXT.replace("BODY", "%y = he.fly %x")),
        FheliumError,
        ["line 3", "he.fly"],
    ),
    (
        lambda t: Program.parse(TEXT.replace("BODY", "%y = he.neg %x")),
        FheliumError,
        ["line 3", "he.neg"],
    ),
    (
        lambda t: Program.parse(TEXT.replace("BODY", "%y = he.neg %z")),
        FheliumError,
        ["line 3", "%z"],
    ),
    (lambda t: Program.parse(3), TypeError, ["int", "str"]),
    (lambda t: Pipeline(3), TypeError, ["int", "Pass"]),
    (
        lambda t: default_pipeline().after("nothing", RotationHoisting()),
        Exception,
        ["nothing", "reuse"],
    ),
    (lambda t: default_pipeline().remove(99), Exception, ["99"]),
    (lambda t: RotationHoisting(max_group_size=0), Exception, ["0", "max_group_size"]),
    (lambda t: PythonPass("p", 3), TypeError, ["int", "function"]),
    (lambda t: OperationBackend().with_selection("he.fly", "host"), Exception, ["he.fly"]),
    (
        lambda t: OperationBackend().with_selection("ckks.add", "nothing"),
        Exception,
        ["nothing", "host"],
    ),
    (lambda t: OperationBackend().with_implementation("ckks.add", "mine", 3), TypeError, ["int"]),
]


def test_there_are_enough_wrong_uses() -> None:
    assert len(USES) >= 60


@pytest.mark.parametrize("place", range(len(USES)))
def test_a_wrong_use_says_what_was_found_and_what_is_expected(
    t: SimpleNamespace, check_text: Any, place: int
) -> None:
    """TenSEAL 217: ValueError: std::exception."""
    use, expected, words = USES[place]
    with pytest.raises(Exception) as caught:  # noqa: PT011
        use(t)
    # A panic of the core would be a BaseException that is no Exception.
    assert isinstance(caught.value, expected), repr(caught.value)
    check_text(caught.value, words)


def test_an_engine_is_usable_after_errors(t: SimpleNamespace) -> None:
    """TenSEAL 217: what raised must leave nothing behind."""
    for use, _, _ in USES[:60]:
        with pytest.raises(Exception):  # noqa: B017, PT011
            use(t)
    found = t.engine.decrypt((t.x * 2).rotate(1), t.keys.secret)
    exact = np.roll(2 * t.engine.decrypt(t.x, t.keys.secret), -1)
    assert np.abs(found - exact).max() <= 1e-6


def test_no_secret_is_printed(t: SimpleNamespace) -> None:
    """A message or a repr that shows a secret key would be worse than a short one."""
    for value in (t.keys, t.keys.secret, t.engine, t.x):
        assert len(repr(value)) < 300
    assert "secret" not in t.keys.evaluation().__dir__()
    assert SecurityError.__mro__[1] is FheliumError
    assert issubclass(CompileError, RuntimeError)

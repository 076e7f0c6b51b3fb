"""Rules 63 to 87: materials, pipelines, backends, outputs and what the peer's tests fix."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.compile import (
    DeadValues,
    LowerToCkks,
    OperationBackend,
    Output,
    Pipeline,
    Program,
    ProgramBuilder,
    PythonPass,
    RotationHoisting,
    Type,
    capture,
    compile,
    default_pipeline,
    encrypted,
    message,
    requirements,
    static,
)
from fhelium.errors import (
    ArgumentError,
    CaptureError,
    CompileError,
    FheliumError,
    LinkError,
    SerializationError,
    SpecializationMiss,
)

WEIGHTS = np.arange(3.0)
BIAS = np.ones(3)


def affine(x: Any) -> Any:
    return x * WEIGHTS + BIAS + np.full(3, 2.0)


def test_rule_63_materials_have_stable_names(bench: Any) -> None:
    named = capture(
        affine, inputs={"x": message((3,))}, material_names={"weights": WEIGHTS, "tensor1": BIAS}
    )
    assert list(named.program.materials) == ["weights", "tensor1", "tensor0"]
    unnamed = capture(affine, inputs={"x": message((3,))})
    assert list(unnamed.program.materials) == ["tensor0", "tensor1", "tensor2"]
    fixed = bench.encrypt(1.0)
    f = compile(lambda x: x + fixed, material_names={"bias": fixed})
    assert list(f.prepare(bench.encrypt(0.0)).source.program.materials) == ["bias"]
    with pytest.raises(TypeError, match="material_names"):
        compile(affine, material_names={"weights": "text"})


def test_rule_64_workspaces_are_copied(bench: Any) -> None:
    entry = [1]
    workspace = {"entry": entry}

    def note(compilation: Any) -> None:
        compilation.workspace["seen"] = compilation.workspace["entry"]

    pipeline = default_pipeline().then(PythonPass("note", note))
    f = compile(lambda x: x + 1, workspace=workspace, pipeline=pipeline)
    workspace["entry"] = [2]
    first, second = f.prepare(np.ones(1)), f.prepare(np.ones(2))
    assert first.compilation.workspace["seen"] is entry
    first.compilation.workspace["seen"] = None
    assert second.compilation.workspace["seen"] is entry
    assert "seen" not in workspace


def test_rule_65_a_linked_material_is_not_rebound() -> None:
    array = np.ones(3)
    f = compile(lambda x: x + array)
    specialization = f.prepare(np.zeros(3))
    specialization.compilation.material_bindings["tensor0"] = np.full(3, 9.0)
    np.testing.assert_array_equal(f(np.zeros(3)), np.ones(3))
    array[:] = 2
    np.testing.assert_array_equal(f(np.zeros(3)), np.full(3, 2.0))


def test_rule_66_a_pipeline_replaces_the_default_whole(bench: Any) -> None:
    x, cx = bench.fresh()
    f = compile(lambda x: x.rotate(1) + x.rotate(2), pipeline=Pipeline(LowerToCkks()))
    assert np.abs(bench.decrypt(f(cx)) - np.roll(x, -1) - np.roll(x, -2)).max() < 1e-6
    names = [operation.name for operation in f.specializations[0].program.walk()]
    assert names.count("ckks.rotate") == 2
    assert [report.name for report in f.specializations[0].compilation.reports] == ["lower-to-ckks"]


def test_rule_67_known_input_states_must_agree(bench: Any) -> None:
    parameters = bench.engine.parameters
    program = capture(lambda x: x + x, inputs={"x": encrypted(2)}, parameters=parameters).program
    f = compile(program)
    _, cx = bench.fresh()
    with pytest.raises(ValueError, match=r"input 'x'.*level 2, found 4"):
        f(cx)
    f(cx.drop_levels(2))
    text = program.to_text().replace(", level=2, scale=2^40, parts=2", "")
    open_program = Program.parse(text)
    assert open_program.inputs["x"].level is None
    g = compile(open_program)
    assert g(cx).level == 4
    assert g(cx.drop_levels(3)).level == 1


def test_rule_68_inputs_that_a_pipeline_adds_are_refused() -> None:
    def other_inputs(compilation: Any) -> Program:
        builder = ProgramBuilder("other")
        x = builder.input("x", Type.tensor("float64", (3,)))
        builder.input("extra", Type.tensor("float64", (3,)))
        return builder.finish(Output(x))

    f = compile(lambda x: x + x, pipeline=Pipeline(PythonPass("other-inputs", other_inputs)))
    with pytest.raises(ValueError, match=r"extra.*transform the Compilation first"):
        f(np.ones(3))


def test_rule_69_a_given_backend_is_used() -> None:
    calls = []

    def my_tanh(x: Any) -> Any:
        calls.append(x)
        return np.tanh(x)

    backend = OperationBackend().with_implementation("tensor.tanh", "mine", my_tanh)
    f = compile(lambda x: np.tanh(x) + 1, backend=backend)
    np.testing.assert_array_equal(f(np.zeros(2)), np.ones(2))
    assert len(calls) == 1
    manifest = f.specializations[0].manifest
    chosen = {entry["operation"]: entry["implementation"] for entry in manifest["operations"]}
    assert chosen["tensor.tanh"] == "mine"
    assert chosen["tensor.add"] == "host"
    assert f.specializations[0].backend.available("tensor.tanh") == ["host", "cuda", "mine"]
    assert isinstance(manifest, MappingProxyType)
    host = compile(lambda x: np.tanh(x), backend=backend.with_selection("tensor.tanh", "host"))
    host(np.zeros(2))
    assert len(calls) == 1
    with pytest.raises(LinkError, match='no implementation is named "none"; registered: host'):
        backend.with_selection("tensor.tanh", "none")
    with pytest.raises(ArgumentError, match="named"):
        backend.with_implementation("tensor.tanh", "mine", my_tanh)


def test_rule_69_an_implementation_is_held_to_its_promise(bench: Any) -> None:
    backend = OperationBackend().with_implementation("tensor.neg", "short", lambda x: x[:1])
    with pytest.raises(LinkError, match=r'"short" of tensor.neg gave .*expected'):
        compile(lambda x: -x, backend=backend)(np.ones(2))

    def fails(x: Any) -> Any:
        raise ZeroDivisionError("inside")

    broken = OperationBackend().with_implementation("tensor.neg", "broken", fails)
    with pytest.raises(LinkError, match="ZeroDivisionError: inside"):
        compile(lambda x: -x, backend=broken)(np.ones(2))
    x, cx = bench.fresh()
    rescaled = OperationBackend().with_implementation("ckks.neg", "mine", lambda x: x * -1)
    found = compile(lambda x: -x, backend=rescaled)(cx)
    assert np.abs(bench.decrypt(found) + x).max() < 1e-6


def test_rule_70_inputs_have_their_kinds(bench: Any) -> None:
    parameters = bench.engine.parameters
    f = compile(capture(lambda x: x + x, inputs={"x": encrypted()}, parameters=parameters).program)
    for argument in (np.ones(3), bench.engine.encode(1.0), 3):
        with pytest.raises(TypeError, match=r"input 'x' of .* must be a ciphertext, found"):
            f(argument)


def test_rule_71_outputs_are_rebuilt(bench: Any) -> None:
    @compile
    def f(x: Any, w: Any, k: int) -> Any:
        return {
            "list": [x, (w, k)],
            None: (),
            True: [],
            2: {"nested": -w, 1.5: 1j},
            "literal": "text",
            "fixed": BIAS,
        }

    _, cx = bench.fresh()
    out = f(cx, np.ones(2), 3)
    assert list(out) == ["list", None, True, 2, "literal", "fixed"]
    assert isinstance(out["list"][0], fh.Ciphertext)
    assert isinstance(out["list"], list)
    assert isinstance(out["list"][1], tuple)
    assert out["list"][1][1] == 3
    assert (out[None], out[True], out["literal"]) == ((), [], "text")
    np.testing.assert_array_equal(out[2]["nested"], -np.ones(2))
    assert out[2][1.5] == 1j
    np.testing.assert_array_equal(out["fixed"], BIAS)
    assert compile(lambda x: 3)(np.ones(1)) == 3
    assert compile(lambda x: None)(np.ones(1)) is None
    for refused in (
        lambda x: {x.shape},
        lambda x: (entry for entry in [x]),
        lambda x: fh.Parameters,
        lambda x: {(1, 2): x},
        lambda x: [object()],
        lambda x: namedtuple("Pair", "a b")(x, x),
        lambda x: [bench.keys.relinearization],
    ):
        with pytest.raises(CaptureError, match=r"the returned value"):
            compile(refused)(np.ones(1))


def test_rule_72_what_is_returned_twice_is_one_object(bench: Any) -> None:
    @compile
    def f(x: Any, c: Any) -> Any:
        y = x + 1
        z = c + c
        return y, [y], z, z

    _, cx = bench.fresh()
    first, (second,), third, fourth = f(np.ones(2), cx)
    assert first is second
    np.testing.assert_array_equal(third._residues(), fourth._residues())


def test_rule_73_containers_are_fresh(bench: Any) -> None:
    f = compile(lambda x: {"x": [x * x]})
    x, cx = bench.fresh()
    first, second = f(cx), f(cx)
    assert first is not second
    first["x"].clear()
    (product,) = f(cx)["x"]
    assert (product.level, product.parts) == (4, 3)
    assert product.scale == 2**80
    assert len(second["x"]) == 1
    assert np.abs(bench.decrypt(product) - x * x).max() < 1e-6


def test_rule_74_plaintext_results_keep_their_state(bench: Any) -> None:
    f = compile(lambda w: bench.engine.encode(w, level=2, scale=2**30))
    encoded = f(bench.message())
    assert isinstance(encoded, fh.Plaintext)
    assert (encoded.level, encoded.scale) == (2, 2**30)
    assert np.abs(bench.engine.decode(encoded) - bench.message()).max() < 1e-5


def test_rule_75_a_bare_program_returns_its_structure() -> None:
    builder = ProgramBuilder("pair")
    x = builder.input("x", Type.tensor("float64", (2,)))
    (y,) = builder.operation("tensor.neg", [x])
    one = compile(builder.finish(Output(y)))
    np.testing.assert_array_equal(one(np.ones(2)), -np.ones(2))
    builder = ProgramBuilder("pair")
    x = builder.input("x", Type.tensor("float64", (2,)))
    two = compile(builder.finish((Output(x), Output(x))))
    assert isinstance(two(np.ones(2)), tuple)


def test_rule_76_incomplete_states_fail_before_the_run(bench: Any) -> None:
    """A result state that nothing decides cannot be linked."""
    text = capture(
        lambda x: x + x, inputs={"x": encrypted()}, parameters=bench.engine.parameters
    ).program.to_text()
    program = Program.parse(text.replace(", level=4, scale=2^40, parts=2", ""))
    with pytest.raises(CompileError):
        default_pipeline().run(program)


def test_errors_are_under_one_root() -> None:
    for error in (CompileError, CaptureError, LinkError, SpecializationMiss, SerializationError):
        assert issubclass(error, FheliumError)
    assert issubclass(LinkError, CompileError)


def test_a_pipeline_is_edited_by_name_and_position() -> None:
    pipeline = default_pipeline()
    assert pipeline.names[0] == "dead-values"
    again = DeadValues().named("again")
    assert pipeline.then(again).names[-1] == "again"
    assert pipeline.before("reuse", again).names[:3] == ["dead-values", "again", "reuse"]
    assert pipeline.after(0, again).names[1] == "again"
    replaced = pipeline.replace("rotation-hoisting", RotationHoisting(max_group_size=2))
    assert replaced.names == pipeline.names
    assert "reuse" not in pipeline.remove("reuse").names
    assert len(pipeline.replace("reuse")) == len(pipeline) - 1
    with pytest.raises(ArgumentError, match='"dead-values" is already at position 0'):
        pipeline.then(DeadValues())
    with pytest.raises(ArgumentError, match='no pass is named "none"; the pipeline holds'):
        pipeline.remove("none")
    with pytest.raises(ArgumentError, match="position 99"):
        pipeline.remove(99)
    with pytest.raises(TypeError, match="a pipeline holds passes"):
        Pipeline("dead-values")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="max_group_size"):
        RotationHoisting(max_group_size=1)


def test_python_passes_rewrite_programs_and_are_verified(bench: Any) -> None:
    def without_negations(compilation: Any) -> Program:
        old = compilation.program
        builder = ProgramBuilder(old.name)
        values = {
            place: builder.input(name, kind)
            for place, (name, kind) in enumerate(old.inputs.items())
        }
        for operation in old.walk():
            operands = [values[operand] for operand in operation.operands]
            if operation.name == "tensor.neg":
                values[operation.results[0]] = operands[0]
                continue
            results = builder.operation(
                operation.name, operands, operation.attributes, operation.location
            )
            values.update(zip(operation.results, results, strict=True))
        return builder.finish(Output(values[max(values)]))

    pipeline = Pipeline(PythonPass("without-negations", without_negations)).then(
        *default_pipeline().passes
    )
    f = compile(lambda x: -x + 1, pipeline=pipeline)
    np.testing.assert_array_equal(f(np.ones(2)), np.full(2, 2.0))
    report = f.specializations[0].compilation.reports[0]
    assert report.name == "without-negations"
    assert report.stats["transformed"] == 1

    def wrong(compilation: Any) -> Any:
        return "text"

    with pytest.raises(CompileError, match=r"pass wrong: .*Program or None, found str") as caught:
        Pipeline(PythonPass("wrong", wrong)).run(f.specializations[0].source)
    assert isinstance(caught.value.__cause__, TypeError)


def test_programs_are_dumped_after_each_pass(tmp_path: Path) -> None:
    compilation = capture(lambda x: x + 1, inputs={"x": message((2,))})
    default_pipeline().run(compilation, dump=tmp_path)
    files = sorted(path.name for path in tmp_path.glob("*/*.fhe"))
    assert files[0] == "00-input.fhe"
    assert files[1] == "01-dead-values.fhe"
    assert len(files) == len(default_pipeline()) + 1
    for path in tmp_path.glob("*/*.fhe"):
        Program.parse(path.read_text())


def test_hand_written_text_compiles_and_runs() -> None:
    program = Program.parse(
        """
        program @affine {
          func (%x: !tensor<f64, [3]>) {
            %two = tensor.constant {value = 2.0, dtype = f64}
            %z = tensor.mul %x, %two
            %y = tensor.add %z, %x
            return %y
          }
        }
        """
    )
    np.testing.assert_array_equal(compile(program)(np.ones(3)), np.full(3, 3.0))
    assert Program.parse(program.to_text()) == program
    for text in ("", "program", program.to_text()[:-30], "program @x { nonsense }"):
        with pytest.raises(FheliumError, match=r"line \d+, column \d+"):
            Program.parse(text)


def test_requirements_are_known_before_any_key(bench: Any) -> None:
    def f(x: Any, w: Any) -> Any:
        y = (x * x).relinearize().rescale()
        return (y * w).rescale().rotate(-1) + (y * w).rescale().rotate(2).conjugate()

    needs = requirements(f, parameters=bench.engine.parameters, x=encrypted(), w=message())
    assert needs.rotation_steps == (2, bench.slots - 1)
    assert needs.relinearization
    assert needs.conjugation
    assert (needs.levels, needs.multiplicative_depth) == (2, 2)
    # Before an engine is chosen: the bytes of the host's form, which files hold too.
    host = fh.Engine(bench.engine.parameters)
    assert needs.key_bytes == host.predicted_key_bytes(rotations=[2, -1], conjugation=True)
    assert {kind for kind, lines in needs.keys if lines} == {kind for kind, _ in needs.keys}
    keys = host.keygen(rotations=[2, -1], conjugation=True)
    host.use(keys.evaluation())
    x = host.encrypt(bench.message(), keys.public)
    assert needs.peak_bytes == compile(f).prepare(x, bench.message()).manifest["bytes"]["peak"]
    assert needs.parameters == fh.Parameters(depth=2, scale_bits=40)
    clear = requirements(compile(lambda x: x + 1), x=message((1,)))
    assert not clear.relinearization
    assert clear.key_bytes is clear.parameters is None
    unrescaled = requirements(lambda x: x * x, parameters=bench.engine.parameters, x=encrypted())
    assert (unrescaled.levels, unrescaled.parameters.depth) == (0, 1)
    with pytest.raises(ArgumentError, match="found a Program"):
        requirements(Program.parse("program @p { func () { return () } }"), x=message())


# --- what the peer's tests fix -----------------------------------------------------------------


def test_rule_80_public_functions_equal_their_source() -> None:
    weights = np.random.default_rng(0).uniform(size=(3, 3))

    def f(x: Any, /, shift: int = 1, *, scale: Any, axis: int = 0) -> Any:
        return (np.roll(x, shift, axis=axis) @ weights).sum(axis=1) * scale

    x, scale = np.random.default_rng(1).uniform(size=(2, 3)), np.array([1.0, 2.0])
    compiled = compile(f)
    for options in ({"shift": 1}, {"shift": 2}):
        np.testing.assert_allclose(
            compiled(x, scale=scale, **options), f(x, scale=scale, **options), rtol=1e-15
        )
    assert len(compiled.specializations) == 2
    weights[:] = 0.5
    np.testing.assert_allclose(compiled(x, scale=scale), f(x, scale=scale), rtol=1e-15)
    assert len(compiled.specializations) == 2
    with pytest.raises(TypeError):
        compiled(x=x, scale=scale)
    with pytest.raises(TypeError):
        compiled(x, 1, scale)


def test_rule_81_alternating_a_static_flag_reuses_two_variants(bench: Any) -> None:
    def f(x: Any, p: Any, product: bool) -> Any:
        return x * p if product else x + p

    compiled = compile(f)
    _, cx = bench.fresh()
    plaintext = bench.engine.encode(bench.message(1))
    for flag in (True, False, True, False):
        found, eager = compiled(cx, plaintext, flag), f(cx, plaintext, flag)
        np.testing.assert_array_equal(found._residues(), eager._residues())
        assert (found.level, found.scale) == (eager.level, eager.scale)
    assert (compiled.hits, compiled.misses) == (2, 2)


@pytest.mark.parametrize("on_miss", ["compile", "error"])
def test_rule_82_clear_makes_changed_constants_take_effect(on_miss: str) -> None:
    factor = 2

    def make() -> Any:
        return compile(lambda x: x * factor, on_miss=on_miss)

    f = make()
    f.prepare(np.ones(1))
    assert f(np.ones(1)) == 2
    factor = 3
    assert f(np.ones(1)) == 2
    f.clear()
    if on_miss == "error":
        with pytest.raises(SpecializationMiss):
            f(np.ones(1))
        f.prepare(np.ones(1))
    assert f(np.ones(1)) == 3


def test_rule_83_keys_are_arguments(bench: Any) -> None:
    engine = bench.engine
    f = compile(lambda x, key: x.rotate(1, key=key))
    for _ in range(2):
        keys = engine.keygen(rotations=[1])
        ciphertext = engine.encrypt(bench.message(), keys.public)
        found = f(ciphertext, keys.rotations[1])
        eager = ciphertext.rotate(1, key=keys.rotations[1])
        np.testing.assert_array_equal(found._residues(), eager._residues())
    assert (f.hits, f.misses) == (1, 1)


def test_rule_84_closure_keys_and_batches(bench: Any) -> None:
    keys, weights = bench.keys.rotations, bench.message(4)

    def f(x: Any) -> Any:
        turned = [x.rotate(step, key=keys[step]) for step in (1, 2)]
        return sum((turn * weights for turn in turned[1:]), turned[0] * weights)

    _, cx = bench.fresh(batch=(3,))
    np.testing.assert_array_equal(compile(f)(cx)._residues(), f(cx)._residues())


def test_rule_86_interleaved_rotations_become_two_hoisted_groups(bench: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        total = x.rotate(1) + y.rotate(1)
        total = total + x.rotate(2) + y.rotate(2)
        return total + x.rotate(3) + y.rotate(3)

    compiled = compile(f)
    (_, cx), (_, cy) = bench.fresh(), bench.fresh(1)
    np.testing.assert_array_equal(compiled(cx, cy)._residues(), f(cx, cy)._residues())
    names = [operation.name for operation in compiled.specializations[0].program.walk()]
    assert names.count("ckks.rotate_hoisted") == 2
    assert "ckks.rotate" not in names
    assert len(compiled.specializations) == 1


def test_static_inputs_of_a_captured_compilation() -> None:
    compilation = capture(lambda x, k: x * k, inputs={"x": message((1,)), "k": static(4)})
    assert compile(compilation)(np.ones(1)) == 4

"""A process forked from one that used a GPU is told so, whatever it tries, and ends well."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import fhelium as fh

pytestmark = pytest.mark.gpu

if fh.build_info()["cuda"]["problem"] is not None:
    pytest.skip(fh.build_info()["cuda"]["problem"], allow_module_level=True)

USED = """
    import os, pickle, sys, types
    import fhelium as fh
    from fhelium.errors import DeviceError

    parameters = fh.Parameters(depth=3, scale_bits=40, log_n=10, allow_insecure=True)
    gpu = fh.Engine(parameters, device="cuda")
    keys = gpu.keygen(rotations=[1])
    gpu.use(keys.evaluation())
    x = gpu.encrypt([1.0, 2.0], keys.public)
    score = fh.jit(lambda a: (a * a).relinearize().rescale() + 1)
    for _ in range(4):
        y = score(x)
    array = fh.Array([1.0, 2.0])
    names = ("__dlpack__", "__dlpack_device__")
    lender = types.SimpleNamespace(**{name: getattr(array, name) for name in names})
    lent = fh.Array.from_dlpack(lender)

    def refused(call):
        try:
            call()
        except DeviceError as error:
            assert "forked" in str(error) and "spawn" in str(error), error
        else:
            raise AssertionError(f"{call} was not refused")

    def in_a_child(body):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            body()
            sys.exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def _run(body: str) -> None:
    """Runs a program, which a driver call in a forked process ends: the emulated driver's do."""
    program = textwrap.dedent(USED) + textwrap.dedent(body)
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_use_is_refused() -> None:
    _run("""
        def body():
            for call in [
                lambda: x + x,
                lambda: score(x),
                lambda: gpu.decrypt(x, keys.secret),
                lambda: gpu.encode(1.0),
                lambda: gpu.keygen(),
                lambda: gpu.synchronize(),
                lambda: gpu.on_stream(0, lambda: 1),
                lambda: x.to("cpu"),
                lambda: keys.to("cpu"),
                lambda: fh.dumps(x),
                lambda: pickle.dumps(x),
                lambda: array.numpy(),
                lambda: array.__dlpack__(),
                lambda: lent.numpy(),
                lambda: fh.Array([1.0]),
                lambda: fh.Engine(gpu.parameters, device="cuda"),
            ]:
                refused(call)
            assert "forked" in fh.build_info()["cuda"]["problem"]

        assert in_a_child(body) == 7
        assert abs(gpu.decrypt(score(x), keys.secret)[1] - 5.0) < 1e-6
    """)


def test_what_asks_for_no_device_works_on() -> None:
    """Values say what they are, and an engine on the CPU computes."""
    _run("""
        def body():
            assert "cuda:0" in repr(x) and x.device == "cuda:0"
            repr([gpu, keys, array, gpu.memory()])
            score.specializations[0].explain()
            cpu = fh.Engine(gpu.parameters)
            own = cpu.keygen()
            assert abs(cpu.decrypt(cpu.encrypt([3.0], own.public), own.secret)[0] - 3.0) < 1e-6

        assert in_a_child(body) == 7
    """)


def test_values_are_dropped_without_the_driver() -> None:
    """By name, by the interpreter's end, and by a child's child."""
    _run("""
        import gc

        def body():
            global gpu, keys, x, y, score, array, lender, lent
            fh.compile.clear_caches()
            del gpu, keys, x, y, score, array, lender, lent
            gc.collect()

        assert in_a_child(body) == 7
        assert in_a_child(lambda: None) == 7

        def nested():
            assert in_a_child(body) == 7

        assert in_a_child(nested) == 7
    """)


def test_a_fork_before_the_first_use_has_the_device() -> None:
    program = """
        import os, sys
        import fhelium as fh

        parameters = fh.Parameters(depth=1, scale_bits=40, log_n=10, allow_insecure=True)
        here = fh.Engine(parameters).encode(1.0)
        child = os.fork()
        if child == 0:
            engine = fh.Engine(parameters, device="cuda")
            assert engine.decode(engine.encode(1.0))[0] > 0.9
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert fh.Engine(parameters, device="cuda").device == "cuda:0"
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stdout + result.stderr

"""Engines on two GPUs of one process, side by side."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fhelium as fh
from fhelium.errors import DeviceError

pytestmark = pytest.mark.gpu

SMALL: dict[str, Any] = {"depth": 3, "scale_bits": 40, "log_n": 10, "allow_insecure": True}


@pytest.fixture(scope="module")
def two() -> tuple[fh.Engine, fh.Engine, fh.KeySet]:
    """Engines on cuda:0 and cuda:1, and the first one's keys, in use on both."""
    devices = fh.build_info()["devices"]
    if "cuda:1" not in devices:
        pytest.skip(f"needs two GPUs, and there are {devices[1:]}")
    first, second = (fh.Engine(fh.Parameters(**SMALL), device=name) for name in devices[1:3])
    keys = first.keygen(rotations=[1], conjugation=True)
    first.use(keys.evaluation())
    second.use(keys.evaluation().to("cuda:1"))
    return first, second, keys


Two = tuple[fh.Engine, fh.Engine, fh.KeySet]


def test_both_compute_the_same_in_turns(two: Two) -> None:
    first, second, keys = two
    x = first.encrypt(np.linspace(-1, 1, first.slots), keys.public)
    y = x.to("cuda:1")
    assert (x.device, y.device) == ("cuda:0", "cuda:1")
    assert y.to("cuda:1") is y
    assert "cuda:1" in repr(y)
    assert y._engine == second
    for _ in range(2):
        x = (x + x).rotate(1) - 0.25
        y = (y + y).rotate(1) - 0.25
        np.testing.assert_array_equal(x._residues(), y._residues())
    np.testing.assert_array_equal(y.to("cuda:0")._residues(), x._residues())
    secret = keys.secret.to("cuda:1")
    np.testing.assert_array_equal(second.decrypt(y, secret), first.decrypt(x, keys.secret))


def test_keys_are_made_and_moved_on_either(two: Two) -> None:
    first, second, _ = two
    keys = second.keygen(rotations=[2])
    for part in (keys, keys.secret, keys.public, keys.rotations[2], keys.evaluation()):
        assert part.device == "cuda:1"
        assert part.to("cuda:0").device == "cuda:0"
        assert first.to(part).device == "cuda:0"
    x = second.encrypt([1.0, 2.0, 3.0], keys.public)
    moved = keys.to("cuda:0")
    found = first.decrypt(x.to("cuda:0"), moved.secret)
    np.testing.assert_allclose(found[:3], [1.0, 2.0, 3.0], atol=1e-6)


def test_operands_on_two_devices_are_refused_naming_both(two: Two) -> None:
    first, second, keys = two
    x = first.encrypt([1.0], keys.public)
    y = x.to("cuda:1")
    for call in (
        lambda: x + y,
        lambda: y * x,
        lambda: x * second.encode(1.0),
        lambda: second.square(x),
        lambda: second.decrypt(x, keys.secret),
        lambda: second.decrypt(y, keys.secret),
        lambda: second.encrypt([1.0], keys.public),
        lambda: second.use(keys.evaluation()),
        lambda: fh.jit(lambda a, b: a + b)(x, y),
        lambda: fh.jit(lambda a: a + y)(x),
        lambda: fh.jit(lambda a, b: a + b)(fh.Array([1.0]), fh.Array([1.0], "cuda:1")),
    ):
        with pytest.raises(DeviceError) as caught:
            call()
        assert "cuda:0" in str(caught.value), caught.value
        assert "cuda:1" in str(caught.value), caught.value


def test_one_function_has_a_specialization_for_each(two: Two) -> None:
    first, _, keys = two
    weights = np.linspace(0, 1, first.slots)

    @fh.jit
    def score(a: Any) -> Any:
        return (a * a).relinearize().rescale() * weights

    for round_ in range(5):
        x = first.encrypt(np.full(first.slots, 0.1 * round_), keys.public)
        on_first, on_second = score(x), score(x.to("cuda:1"))
        assert (on_first.device, on_second.device) == ("cuda:0", "cuda:1")
        np.testing.assert_array_equal(on_first._residues(), on_second._residues())
    assert len(score.specializations) == 2
    found = [str(each.signature) for each in score.specializations]
    assert "device=cuda:0" in found[0]
    assert "device=cuda:1" in found[1]


def test_clear_arrays_stay_on_their_device(two: Two) -> None:
    values = np.arange(6.0).reshape(2, 3)
    there = fh.Array(values, "cuda:1")
    assert there.device == "cuda:1"
    assert there.__dlpack_device__() == (2, 1)
    back = there.to("cuda:0")
    assert back.device == "cuda:0"
    np.testing.assert_array_equal(back.numpy(), values)
    assert fh.Array.from_dlpack(there).device == "cuda:1"

    @fh.jit
    def total(a: Any) -> Any:
        return (a * a).sum(axis=0)

    for array in (there, back):
        result = total(array)
        assert result.device == array.device
        np.testing.assert_array_equal(result.numpy(), (values * values).sum(axis=0))


def test_threads_use_both_at_once(two: Two) -> None:
    """Each thread changes device with every value; results do not depend on the others."""
    first, _, keys = two
    score = fh.jit(lambda a: (a * a).relinearize().rescale().rotate(1))
    inputs = [first.encrypt([0.1 * i, 0.5], keys.public) for i in range(4)]
    expected = [(x * x).relinearize().rescale().rotate(1)._residues() for x in inputs]
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for turn in range(6):
                x = inputs[(thread + turn) % 4]
                y = score(x if (thread + turn) % 2 else x.to("cuda:1"))
                np.testing.assert_array_equal(y._residues(), expected[(thread + turn) % 4])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_memory_is_each_devices_own(two: Two) -> None:
    first, second, _ = two
    before = first.memory().used
    held = [second.encode(np.ones((8, 4))) for _ in range(4)]
    assert first.memory().used == before
    assert second.memory().used > before - first.memory().used
    del held


def test_files_load_onto_a_device(two: Two, tmp_path: Path) -> None:
    first, second, keys = two
    x = first.encrypt([1.0, 2.0], keys.public)
    fh.save(x.to("cuda:1"), tmp_path / "x.fhelium")
    for there in ({"engine": second}, {"device": "cuda:1"}):
        loaded = fh.load(tmp_path / "x.fhelium", **there)
        assert loaded.device == "cuda:1"
        assert loaded._engine == second
        np.testing.assert_array_equal(loaded._residues(), x._residues())
    evaluation = fh.loads(fh.dumps(keys.evaluation()), device="cuda:1")
    assert evaluation.device == evaluation.rotations[1].device == "cuda:1"


def test_an_index_beyond_the_last_says_how_many_there_are(two: Two) -> None:
    first, _, keys = two
    count = len(fh.build_info()["devices"]) - 1
    x = first.encrypt([1.0], keys.public)
    for call in (
        lambda: fh.Engine(first.parameters, device=f"cuda:{count}"),
        lambda: x.to(f"cuda:{count}"),
        lambda: fh.Array([1.0], f"cuda:{count}"),
    ):
        with pytest.raises(DeviceError, match=rf"cuda:{count}.*has {count}.*cuda:0 to"):
            call()

"""The digits demo: its packing against the clear network, and its figures under encryption."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    """examples/digits.py as a module; the name `digits` belongs to its data folder."""
    pytest.importorskip("rich", reason="the demo draws its table with rich")
    path = ROOT / "examples" / "digits.py"
    spec = importlib.util.spec_from_file_location("digits_demo", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@dataclasses.dataclass(frozen=True)
class ClearSlots:
    """Slots in the clear with a ciphertext's operators, levels and part count.

    It obeys the same rules (products need a rescale, squares a relinearization, at most `level`
    rescales), so the demo's own network function runs on it and proves the packing exactly.
    """

    values: np.ndarray[Any, Any]
    level: int
    parts: int = 2
    scale: int = 1
    steps: set[int] = dataclasses.field(default_factory=set)

    def _with(self, values: np.ndarray[Any, Any], **changes: int) -> ClearSlots:
        return dataclasses.replace(self, values=values, **changes)

    def rotate(self, step: int) -> ClearSlots:
        assert self.parts == 2, "rotated before relinearization"
        if step % self.values.shape[-1]:
            self.steps.add(step % self.values.shape[-1])
        return self._with(np.roll(self.values, -step, axis=-1))

    def __add__(self, other: ClearSlots | np.ndarray[Any, Any]) -> ClearSlots:
        if isinstance(other, ClearSlots):
            assert (self.level, self.scale) == (other.level, other.scale)
            other = other.values
        return self._with(self.values + other)

    def __mul__(self, other: ClearSlots | np.ndarray[Any, Any]) -> ClearSlots:
        assert self.scale == 1, "multiplied before rescale"
        if isinstance(other, ClearSlots):
            return self._with(self.values * other.values, scale=2, parts=3)
        return self._with(self.values * other, scale=2)

    def relinearize(self) -> ClearSlots:
        assert self.parts == 3
        return self._with(self.values, parts=2)

    def rescale(self) -> ClearSlots:
        assert (self.level > 0, self.scale) == (True, 2)
        return self._with(self.values, level=self.level - 1, scale=1)


@pytest.mark.parametrize("slots", [4096, 8192, 16384])
def test_packed_network_equals_clear_network(demo: ModuleType, slots: int) -> None:
    """Any slot count: the packed network gives the clear logits and uses exactly its keys."""
    digits = demo.Digits.load()
    network = demo.make_score(digits, slots).reference
    packed = ClearSlots(demo.pack_images(digits.images, slots), level=demo.DEPTH)
    scored = network(packed)
    assert (scored.level, scored.scale, scored.parts) == (0, 1, 2)
    logits = demo.unpack_logits(scored.values, len(digits.images))
    np.testing.assert_allclose(logits, digits.clear_logits(), rtol=0, atol=1e-12)
    assert sorted(packed.steps) == demo.rotation_steps(slots)


def test_data_is_what_the_documentation_says(demo: ModuleType) -> None:
    """360 images of every class, values in range, and no logit so close that noise may flip it."""
    digits = demo.Digits.load()
    assert digits.images.shape == (360, 64)
    assert (digits.images.min(), digits.images.max()) == (0.0, 1.0)
    assert set(np.bincount(digits.labels, minlength=10)) <= set(range(34, 39))
    logits = digits.clear_logits()
    assert (logits.argmax(axis=1) == digits.labels).mean() >= demo.ACCURACY_FLOOR
    hidden = digits.images @ digits.w1.T + digits.b1
    assert np.abs(hidden).max() < 4.0
    assert np.abs(logits).max() < 32.0
    second, first = np.sort(logits, axis=1)[:, -2:].T
    assert (first - second).min() > 2 * demo.LOGIT_ERROR_CEILING


def test_matrix_that_does_not_fit_is_refused(demo: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"\(10, 32\).*32 rows"):
        demo.pack_diagonals(np.zeros((10, 32)), 32, 4096)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"encrypted_accuracy": 0.5}, "accuracy 0.5"),
        ({"label_flips": 2}, "2 labels"),
        ({"largest_logit_error": 2e-3}, "2.00e-03"),
        ({"largest_logit_error": float("nan")}, "nan"),
        ({"specializations": 2}, "2 specializations"),
    ],
)
def test_each_missed_expectation_is_reported(
    demo: ModuleType, change: dict[str, Any], words: str
) -> None:
    """The demo's exit status means something: each expectation can fail it alone."""
    good = demo.Report(360, 0.98, 0.98, 0, 1e-6, 1.0, [1.0], 1, 5, 1, 10, "any")
    assert good.failures() == []
    (failure,) = dataclasses.replace(good, **change).failures()
    assert words in failure


def test_demo_figures(
    demo: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """The whole demo, as `make demo` runs it: status 0, the table, the picture and the text."""
    monkeypatch.setattr(sys, "argv", ["digits.py", "--output", str(tmp_path)])
    assert demo.main() == 0
    printed = capsys.readouterr().out
    for row in ("accuracy, encrypted", "label flips", "hits, misses", "log QP", "-bit"):
        assert row in printed
    assert (tmp_path / "digits.svg").read_text(encoding="utf-8").lstrip().startswith("<")
    assert "ckks.rotate_hoisted" in (tmp_path / "digits.fhelium.txt").read_text(encoding="utf-8")


def test_device_that_is_not_there_ends_the_demo_with_its_reason(
    demo: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """`make demo DEVICE=cuda` without a GPU: the error's text and status 2, no traceback."""
    monkeypatch.setattr(
        sys, "argv", ["digits.py", "--device", "abacus", "--output", str(tmp_path / "output")]
    )
    assert demo.main() == 2
    error = capsys.readouterr().err
    assert '"abacus"' in error
    assert '"cpu"' in error
    assert not (tmp_path / "output").exists()

"""Score handwritten digits under encryption, through one compiled function.

The 360 held-out images of the UCI handwritten digits are encrypted, a trained 64-32-10 network
with a square activation scores them without seeing them, and the decrypted logits are compared
with the same network in the clear. Run it with `make demo`, or, with fhelium[demo] installed,

    python examples/digits.py [--device cuda] [--threads N] [--output FOLDER]

It ends with a table, writes the compiled Program as a picture and as text, and exits with
status 1 if a figure misses what is expected of it.

How images lie in a ciphertext
------------------------------
Pixel p of image i sits in slot p * lanes + i, where lanes = slots / 64 images share a
ciphertext (128 with 8192 slots). Rotating by d * lanes therefore moves every image by d pixels
at once, and wraps around where the image does. The images beyond one ciphertext are its batch.

A matrix meets such a vector by its diagonals (Halevi and Shoup, "Algorithms in HElib", Crypto
2014): y[r] = sum over d of w[r, r + d] * x[r + d]. Three things make that cheap here:
the rotations of x by 0 ... 7 pixels share one key switch's decomposition, the other rotations
act on sums of eight products (baby steps and giant steps), and a matrix with half as many rows
as columns needs half of the diagonals, because its rows repeat: the two halves of each product
lie `rows` pixels apart and one rotation adds them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import fhelium as fh

DATA = Path(__file__).parent / "digits"
PIXELS = 64
PIXEL_RANGE = 16.0
CLASSES = 10
BABY_STEPS = 8

DEPTH = 3  # one level for each matrix, one for the square
SCALE_BITS = 40
LATER_CALLS = 5

ACCURACY_FLOOR = 0.97
LOGIT_ERROR_CEILING = 1e-3

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Digits:
    """The held-out images (n, 64) in 0..1, their labels (n,), and the trained weights."""

    images: Array
    labels: NDArray[np.int64]
    w1: Array
    b1: Array
    w2: Array
    b2: Array

    @classmethod
    def load(cls) -> Digits:
        with np.load(DATA / "heldout.npz") as heldout, np.load(DATA / "weights.npz") as weights:
            return cls(
                images=heldout["images"] / PIXEL_RANGE,
                labels=heldout["labels"].astype(np.int64),
                **{name: weights[name].astype(np.float64) for name in ("w1", "b1", "w2", "b2")},
            )

    def clear_logits(self) -> Array:
        """Logits (n, 10) of the network in float64."""
        return (self.images @ self.w1.T + self.b1) ** 2 @ self.w2.T + self.b2


# --- packing ---------------------------------------------------------------------------------


def pack_images(images: Array, slots: int) -> Array:
    """Images (n, 64) as messages (batch, slots): pixel p of image i in slot p * lanes + i."""
    lanes = slots // PIXELS
    batch = -(-len(images) // lanes)
    padded = np.zeros((batch * lanes, PIXELS))
    padded[: len(images)] = images
    return padded.reshape(batch, lanes, PIXELS).swapaxes(1, 2).reshape(batch, slots)


def unpack_logits(messages: Array, count: int) -> Array:
    """Logits (count, 10) out of messages (batch, slots): the inverse of `pack_images`."""
    batch, slots = messages.shape
    lanes = slots // PIXELS
    rows = messages.reshape(batch, PIXELS, lanes).swapaxes(1, 2).reshape(-1, PIXELS)
    return rows[:count, :CLASSES]


def pack_vector(vector: Array, period: int, slots: int) -> Array:
    """A vector, zero-padded to `period` and repeated over the 64 pixel places of all lanes."""
    padded = np.zeros(period)
    padded[: len(vector)] = vector
    values = np.repeat(np.tile(padded, PIXELS // period), slots // PIXELS)
    values.setflags(write=False)
    return values


def pack_diagonals(matrix: Array, rows: int, slots: int) -> Array:
    """Diagonals of a matrix whose columns are twice `rows`, as (giant, baby, slots) messages.

    The message at [g, b] is the diagonal d = 8 g + b, turned back by g giant steps, since
    `matvec` turns the sum of its products forward by as much.
    """
    columns = matrix.shape[1]
    if columns != 2 * rows or rows % BABY_STEPS or len(matrix) > rows:
        raise ValueError(f"a matrix of shape {matrix.shape} does not pack into {rows} rows")
    padded = np.zeros((rows, columns))
    padded[: len(matrix)] = matrix
    place = np.arange(PIXELS)
    diagonals = np.empty((rows // BABY_STEPS, BABY_STEPS, slots))
    for d in range(rows):
        giant, baby = divmod(d, BABY_STEPS)
        values = padded[place % rows, (place + d) % columns]
        values = np.roll(values, giant * BABY_STEPS)
        diagonals[giant, baby] = np.repeat(values, slots // PIXELS)
    # fhelium encodes a read-only constant once; a writable one it checks for changes at each call.
    diagonals.setflags(write=False)
    return diagonals


def rotation_steps(slots: int) -> list[int]:
    """Every rotation that the network makes, in slots: the keys that it needs."""
    lanes = slots // PIXELS
    pixels = [*range(1, BABY_STEPS), *range(BABY_STEPS, 32, BABY_STEPS), 16, 32]
    return sorted({step * lanes for step in pixels})


# --- the network -----------------------------------------------------------------------------


def matvec(x: fh.Ciphertext, diagonals: Array) -> fh.Ciphertext:
    """The packed matrix times x, at the product's scale (not yet rescaled)."""
    giants, babies, slots = diagonals.shape
    lanes = slots // PIXELS
    turned = [x.rotate(b * lanes) for b in range(babies)]
    sums = [
        reduce(add, (turned[b] * diagonals[g, b] for b in range(babies))).rotate(g * babies * lanes)
        for g in range(giants)
    ]
    half = reduce(add, sums)
    return half + half.rotate(giants * babies * lanes)


def make_score(digits: Digits, slots: int) -> fh.compile.CompiledCallable:
    """The network over packed images; its weights are captured constants."""
    w1 = pack_diagonals(digits.w1, 32, slots)
    b1 = pack_vector(digits.b1, 32, slots)
    w2 = pack_diagonals(digits.w2, 16, slots)
    b2 = pack_vector(digits.b2, 16, slots)

    @fh.jit
    def score(images: fh.Ciphertext) -> fh.Ciphertext:
        hidden = matvec(images, w1).rescale() + b1
        activated = (hidden * hidden).relinearize().rescale()
        return matvec(activated, w2).rescale() + b2

    return score


# --- the run and its report --------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """What a run measured; times in milliseconds."""

    images: int
    clear_accuracy: float
    encrypted_accuracy: float
    label_flips: int
    largest_logit_error: float
    first_call_ms: float
    later_calls_ms: Sequence[float]
    specializations: int
    hits: int
    misses: int
    key_bytes: int
    parameters: str

    def failures(self) -> list[str]:
        """The expectations that this run does not meet, in words."""
        checks = [
            (
                self.encrypted_accuracy >= ACCURACY_FLOOR,
                f"encrypted accuracy {self.encrypted_accuracy:.4f} is below {ACCURACY_FLOOR}",
            ),
            (self.label_flips == 0, f"{self.label_flips} labels differ from the clear network's"),
            (
                # A NaN among the logits fails this too.
                self.largest_logit_error <= LOGIT_ERROR_CEILING,
                f"logit error {self.largest_logit_error:.2e} is above {LOGIT_ERROR_CEILING:.0e}",
            ),
            (
                self.specializations == 1,
                f"{self.specializations} specializations were compiled instead of one",
            ),
        ]
        return [text for met, text in checks if not met]

    def table(self) -> Table:
        table = Table(title="Encrypted digits", show_header=False)
        table.add_column(style="bold")
        table.add_column(justify="right")
        later = sorted(self.later_calls_ms)
        for name, value in (
            ("images", f"{self.images}"),
            ("accuracy, clear", f"{self.clear_accuracy:.4f}"),
            ("accuracy, encrypted", f"{self.encrypted_accuracy:.4f}"),
            ("label flips", f"{self.label_flips}"),
            ("largest logit error", f"{self.largest_logit_error:.2e}"),
            ("first call (compiles)", f"{self.first_call_ms:.1f} ms"),
            ("later calls, median", f"{later[len(later) // 2]:.1f} ms"),
            ("later calls, range", f"{later[0]:.1f} to {later[-1]:.1f} ms"),
            ("specializations", f"{self.specializations}"),
            ("hits, misses", f"{self.hits}, {self.misses}"),
            ("key bytes", f"{self.key_bytes:,}"),
            ("parameters", self.parameters),
        ):
            table.add_row(name, value)
        return table


def describe(parameters: fh.Parameters) -> str:
    log_n = parameters.n.bit_length() - 1
    return (
        f"N = 2^{log_n}, depth {parameters.depth}, scale 2^{SCALE_BITS}, "
        f"log QP {parameters.log_qp:.0f}, {parameters.security_bits}-bit security"
    )


def run(progress: Progress, *, device: str, threads: int | None, output: Path) -> Report:
    """Encrypt, score, decrypt, compare; write the compiled Program under `output`."""
    stages = progress.add_task("loading", total=5 + LATER_CALLS)

    def done(next_stage: str) -> None:
        progress.update(stages, advance=1, description=next_stage)

    digits = Digits.load()
    parameters = fh.Parameters(depth=DEPTH, scale_bits=SCALE_BITS)
    engine = fh.Engine(parameters, device=device, threads=threads)
    score = make_score(digits, engine.slots)

    done("making keys")
    keys = engine.keygen(rotations=rotation_steps(engine.slots))
    engine.use(keys.evaluation())

    done("encrypting")
    encrypted = engine.encrypt(pack_images(digits.images, engine.slots), keys.public)

    def timed_call() -> tuple[Any, float]:
        begin = time.perf_counter()
        result = score(encrypted)
        engine.synchronize()  # on a GPU a call returns before its work is done
        return result, (time.perf_counter() - begin) * 1e3

    done("scoring, first call")
    scored, first_call_ms = timed_call()
    later_calls_ms = []
    for number in range(LATER_CALLS):
        done(f"scoring, later call {number + 1}")
        scored, elapsed = timed_call()
        later_calls_ms.append(elapsed)

    done("decrypting")
    decrypted = engine.decrypt(scored, keys.secret)
    logits = unpack_logits(decrypted, len(digits.images))
    clear = digits.clear_logits()

    output.mkdir(parents=True, exist_ok=True)
    specialization = score.specializations[0]
    (output / "digits.fhelium.txt").write_text(specialization.program.to_text(), encoding="utf-8")
    specialization.to_svg(output / "digits.svg")
    done("done")

    labels, clear_labels = logits.argmax(axis=1), clear.argmax(axis=1)
    return Report(
        images=len(digits.images),
        clear_accuracy=float((clear_labels == digits.labels).mean()),
        encrypted_accuracy=float((labels == digits.labels).mean()),
        label_flips=int((labels != clear_labels).sum()),
        largest_logit_error=float(np.abs(logits - clear).max()),
        first_call_ms=first_call_ms,
        later_calls_ms=later_calls_ms,
        specializations=len(score.specializations),
        hits=score.hits,
        misses=score.misses,
        key_bytes=keys.nbytes,
        parameters=describe(parameters),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Score handwritten digits under encryption.")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1, ...")
    parser.add_argument("--threads", type=int, default=None, help="threads (default: all cores)")
    parser.add_argument(
        "--output", type=Path, default=Path("output"), help="folder for the Program"
    )
    arguments = parser.parse_args()

    console = Console()
    try:
        with Progress(
            TextColumn("{task.description:<22}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        ) as progress:
            report = run(
                progress,
                device=arguments.device,
                threads=arguments.threads,
                output=arguments.output,
            )
    except fh.errors.DeviceError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    console.print(report.table())
    console.print(
        f"The compiled Program is in {arguments.output}/digits.svg and digits.fhelium.txt"
    )
    failures = report.failures()
    for failure in failures:
        console.print(f"[bold red]not as expected:[/] {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Train the network that `examples/digits.py` scores under encryption.

Writes two files beside this one, plain arrays without pickled objects:

    heldout.npz   images uint8 (360, 64) in 0..16, labels uint8 (360,),
                  index int16 (360,): their rows in `sklearn.datasets.load_digits()`
    weights.npz   w1 (32, 64), b1 (32,), w2 (10, 32), b2 (10,), float32

The network is logits = w2 @ (w1 @ x + b1)**2 + b2 with x = pixels / 16. The square is the
only activation that CKKS evaluates in one multiplication. Label smoothing (Szegedy et al. 2016) and
weight decay keep pre-activations and logits small: the square would otherwise widen the range
that the last level has to hold. Both help accuracy as well. The script refuses a result outside
the range that the demo relies on.

Everything is seeded, and the held-out images choose nothing: the settings below were set by
five-fold cross-validation on the training part (`--cross-validate`).
The sums inside a matrix product depend on the BLAS that numpy was built with, so another
machine may get weights that differ in the last digits; the files in the repository are the
ones that the demo and its tests use.

    pip install numpy scikit-learn
    python examples/digits/train.py
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, train_test_split

SEED = 20240
HELD_OUT = 360
HIDDEN = 32
EPOCHS = 100
BATCH = 64
LEARNING_RATE = 6e-3
WEIGHT_DECAY = 0.1
LABEL_SMOOTHING = 0.1
PIXEL_NOISE = 0.1
PIXEL_RANGE = 16.0

PRE_ACTIVATION_LIMIT = 4.0
LOGIT_LIMIT = 32.0
ACCURACY_FLOOR = 0.97

Array = np.ndarray[Any, Any]
Weights = dict[str, Array]


def forward(weights: Weights, x: Array) -> tuple[Array, Array]:
    """Pre-activations (n, 32) and logits (n, 10) of the images x (n, 64) in 0..1."""
    hidden = x @ weights["w1"].T + weights["b1"]
    return hidden, hidden**2 @ weights["w2"].T + weights["b2"]


def gradients(weights: Weights, x: Array, labels: Array) -> Weights:
    """Gradients of the mean cross-entropy of softmax(logits) against the smoothed labels."""
    hidden, logits = forward(weights, x)
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    target = np.full_like(logits, LABEL_SMOOTHING / 10)
    target[np.arange(len(x)), labels] += 1.0 - LABEL_SMOOTHING
    error = (shifted / shifted.sum(axis=1, keepdims=True) - target) / len(x)
    hidden_error = 2.0 * hidden * (error @ weights["w2"])
    return {
        "w1": hidden_error.T @ x,
        "b1": hidden_error.sum(axis=0),
        "w2": error.T @ hidden**2,
        "b2": error.sum(axis=0),
    }


def train(x: Array, labels: Array, seed: int) -> Weights:
    """Adam with decoupled weight decay and a cosine learning rate (Loshchilov, Hutter 2019)."""
    rng = np.random.default_rng(seed)
    weights = {
        "w1": rng.normal(0.0, 1.0 / 8.0, (HIDDEN, 64)),
        "b1": np.zeros(HIDDEN),
        "w2": rng.normal(0.0, 1.0 / np.sqrt(HIDDEN), (10, HIDDEN)),
        "b2": np.zeros(10),
    }
    first = {name: np.zeros_like(value) for name, value in weights.items()}
    second = {name: np.zeros_like(value) for name, value in weights.items()}
    batches = -(-len(x) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for batch in np.array_split(order, batches):
            step += 1
            rate = LEARNING_RATE * 0.5 * (1.0 + np.cos(np.pi * step / (EPOCHS * batches)))
            noise = rng.normal(0.0, PIXEL_NOISE, (len(batch), 64))
            grads = gradients(weights, x[batch] + noise, labels[batch])
            for name, grad in grads.items():
                first[name] = 0.9 * first[name] + 0.1 * grad
                second[name] = 0.999 * second[name] + 0.001 * grad**2
                mean = first[name] / (1.0 - 0.9**step)
                spread = np.sqrt(second[name] / (1.0 - 0.999**step))
                weights[name] = weights[name] - rate * mean / (spread + 1e-8)
                if name.startswith("w"):
                    weights[name] -= rate * WEIGHT_DECAY * weights[name]
    return weights


def accuracy(weights: Weights, x: Array, labels: Array) -> float:
    return float((forward(weights, x)[1].argmax(axis=1) == labels).mean())


def cross_validate(x: Array, labels: Array) -> None:
    """Print what five folds of the training part say about the settings above."""
    folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=SEED)
    for number, (kept, left) in enumerate(folds.split(x, labels)):
        weights = train(x[kept], labels[kept], SEED)
        hidden, logits = forward(weights, x[left])
        print(
            f"fold {number}: accuracy {accuracy(weights, x[left], labels[left]):.4f}, "
            f"largest |hidden| {np.abs(hidden).max():.2f}, |logit| {np.abs(logits).max():.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--cross-validate", action="store_true", help="only judge the settings, on training data"
    )
    arguments = parser.parse_args()

    pixels, labels = load_digits(return_X_y=True)
    kept, held = train_test_split(
        np.arange(len(pixels)), test_size=HELD_OUT, random_state=SEED, stratify=labels
    )
    x = pixels / PIXEL_RANGE
    if arguments.cross_validate:
        cross_validate(x[kept], labels[kept])
        return

    trained = train(x[kept], labels[kept], SEED)
    weights = {name: value.astype(np.float32) for name, value in trained.items()}
    hidden, logits = forward(weights, x[held])
    score = accuracy(weights, x[held], labels[held])
    print(f"held-out accuracy {score:.4f}")
    print(
        f"largest |pre-activation| {np.abs(hidden).max():.2f}, |logit| {np.abs(logits).max():.2f}"
    )
    if score < ACCURACY_FLOOR:
        raise SystemExit(f"accuracy {score:.4f} is below {ACCURACY_FLOOR}: nothing written")
    if np.abs(hidden).max() >= PRE_ACTIVATION_LIMIT or np.abs(logits).max() >= LOGIT_LIMIT:
        raise SystemExit("the values leave the range that the demo relies on: nothing written")

    folder = Path(__file__).parent
    np.savez(
        folder / "heldout.npz",
        images=pixels[held].astype(np.uint8),
        labels=labels[held].astype(np.uint8),
        index=held.astype(np.int16),
    )
    np.savez(folder / "weights.npz", **weights)
    print(f"wrote {folder / 'heldout.npz'} and {folder / 'weights.npz'}")


if __name__ == "__main__":
    main()

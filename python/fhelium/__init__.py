"""Computing on encrypted numbers: a compiler and runtime for CKKS homomorphic encryption."""

from collections.abc import Mapping

from . import compile, errors
from ._engine import Engine
from ._native import (
    Array,
    EvaluationKey,
    EvaluationKeys,
    KeySet,
    MemoryUse,
    NoiseEstimate,
    NoiseModel,
    Parameters,
    PublicKey,
    RotationKeys,
    Scale,
    SecretKey,
    __version__,
    build_info,
)
from ._presets import Preset
from ._saving import dumps, inspect, load, loads, save
from ._values import Ciphertext, Plaintext

jit = compile.compile

Mapping.register(RotationKeys)

__all__ = [
    "Array",
    "Ciphertext",
    "Engine",
    "EvaluationKey",
    "EvaluationKeys",
    "KeySet",
    "MemoryUse",
    "NoiseEstimate",
    "NoiseModel",
    "Parameters",
    "Plaintext",
    "Preset",
    "PublicKey",
    "RotationKeys",
    "Scale",
    "SecretKey",
    "__version__",
    "build_info",
    "compile",
    "dumps",
    "errors",
    "inspect",
    "jit",
    "load",
    "loads",
    "save",
]

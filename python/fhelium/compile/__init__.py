"""The compiler: capture, passes, and functions compiled for the arguments they meet."""

from typing import Any

from .._native import (
    ArgumentSignature,
    BufferPlanning,
    CallSignature,
    Compilation,
    ConstantEncodings,
    DeadValues,
    Executable,
    LinearFusion,
    LowerToCkks,
    Operation,
    OperationBackend,
    Output,
    Pass,
    PassReport,
    Pipeline,
    Program,
    ProgramBuilder,
    PythonPass,
    RescaleJoining,
    Reuse,
    RotationHoisting,
    RouteSelection,
    Specialization,
    Type,
    default_pipeline,
)
from ..errors import SpecializationMiss
from ._cache import cache_directory
from ._callable import CompiledCallable, compile
from ._capture import capture
from ._check import PrecisionReport, PrecisionRow
from ._inputs import InputSpec, encrypted, message, plaintext, static
from ._registry import clear_caches
from ._requirements import Requirements, requirements

CompileWorkspace = dict[str, Any]
"""Entries that passes and callers hand to each other."""

__all__ = [
    "ArgumentSignature",
    "BufferPlanning",
    "CallSignature",
    "Compilation",
    "CompileWorkspace",
    "CompiledCallable",
    "ConstantEncodings",
    "DeadValues",
    "Executable",
    "InputSpec",
    "LinearFusion",
    "LowerToCkks",
    "Operation",
    "OperationBackend",
    "Output",
    "Pass",
    "PassReport",
    "Pipeline",
    "PrecisionReport",
    "PrecisionRow",
    "Program",
    "ProgramBuilder",
    "PythonPass",
    "Requirements",
    "RescaleJoining",
    "Reuse",
    "RotationHoisting",
    "RouteSelection",
    "Specialization",
    "SpecializationMiss",
    "Type",
    "cache_directory",
    "capture",
    "clear_caches",
    "compile",
    "default_pipeline",
    "encrypted",
    "message",
    "plaintext",
    "requirements",
    "static",
]

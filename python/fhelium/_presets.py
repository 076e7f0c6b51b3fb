"""Named parameter sets."""

from __future__ import annotations

from collections.abc import Iterator

from ._native import Parameters

__all__ = ["Preset"]


class _Presets(type):
    """Makes the parameters of a name when they are first asked for."""

    def __getattr__(cls, name: str) -> Parameters:
        if name not in Parameters.preset_names():
            raise AttributeError(
                f"there is no preset {name!r}; there are {', '.join(Parameters.preset_names())}"
            )
        parameters = Parameters.preset(name)
        setattr(cls, name, parameters)
        return parameters

    def __iter__(cls) -> Iterator[str]:
        return iter(Parameters.preset_names())

    def __dir__(cls) -> list[str]:
        return [*super().__dir__(), *Parameters.preset_names()]


class Preset(metaclass=_Presets):
    """Named Parameters, all of 128-bit security: `Preset.N14Depth7Scale40`.

    A name says the binary logarithm of the ring degree, the depth and the bits of the scale.
    Iterating gives the names, smallest ring first.
    """

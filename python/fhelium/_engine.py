"""The engine: keys, encryption and every operation on encrypted values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _arithmetic, _batches, _native
from ._recording import active_recorder, refuse
from ._values import Ciphertext, Plaintext

__all__ = ["Engine"]


class Engine(_native.Engine):
    """Computes on encrypted values of one parameter set.

    Args:
        parameters: The parameters of every value and key.
        device: "cpu", "cuda" or "cuda:1". On a GPU the engine makes its values and keys there and
            computes there; only `to` moves them.
        threads: Threads of this engine; by default one for each core.
        memory_limit: The most bytes of the GPU's memory to use; by default all of it.
        seed: Makes all randomness of this engine repeat. For tests only: whoever knows the seed
            decrypts everything.

    Operations also take an explicit `key=`; without one they use the keys given to `use`.
    Inside a function under capture the operations are recorded instead of computed.
    """

    __slots__ = ()

    def keygen(self, *, rotations: Iterable[int] = (), conjugation: bool = False) -> _native.KeySet:
        """A new secret key with its public, relinearization and asked-for rotation keys.

        Args:
            rotations: Steps; each needs its own key, equal modulo the slots is one.
            conjugation: Whether to make the key for `conjugate`.
        """
        refuse("key generation")
        steps = _arithmetic.integers("keygen", "rotation step", rotations)
        return self._keygen(steps, bool(conjugation))

    def use(self, keys: _native.EvaluationKeys) -> None:
        """Registers keys for rotate, conjugate and relinearize."""
        refuse("registering keys")
        self._use(keys)

    def to(self, value: Any) -> Any:
        """A value or keys on this engine's device, as the engine's own."""
        refuse("moving values")
        return self._to(value)

    def on_stream(
        self, stream: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Calls `function(*args, **kwargs)` with this engine's work on another library's stream.

        The work comes after all that is in either stream, and before what comes next in either. If
        the stream is being captured, as within `torch.cuda.graph`, the work becomes part of that
        graph, which then reads the very operands and writes the very results at each of its
        replays; call the function twice before, so that nothing is compiled or encoded within.

        Args:
            stream: A stream of the engine's device that outlives the call: of torch
                (`torch.cuda.current_stream()`) or CuPy, or a `CUstream` as an integer; 0 is the
                legacy default stream.
            function: What to call; its operations on this engine's values are moved.
        """
        refuse("another stream")
        handle = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
        handle = _arithmetic.integer("on_stream", "a stream", handle)
        return self._on_stream(handle, function, args, kwargs)

    def encode(self, values: Any, *, level: int | None = None, scale: Any = None) -> Plaintext:
        """Encodes messages.

        Args:
            values: Shape (..., k) with k at most the slots, batch axes first, zero-padded to the
                slots; a scalar fills every slot.
            level: The level; by default the depth.
            scale: The scale; by default the parameters'.
        """
        given = self.parameters
        return _arithmetic.apply(  # type: ignore[no-any-return]
            "he.encode",
            [values if active_recorder() else _arithmetic.message_for(self, values)],
            {
                "level": given.depth if level is None else level,
                "scale": given.scale if scale is None else scale,
            },
            engine=self,
        )

    def decode(self, plaintext: Plaintext, *, real: bool = True) -> np.ndarray[Any, np.dtype[Any]]:
        """The messages (..., slots), float64 where `real`, else complex128."""
        refuse("decoding")
        if _arithmetic.kind_of(plaintext) != "plaintext":
            raise TypeError(
                f"decode: expected a Plaintext, found {type(plaintext).__name__}; a ciphertext is "
                "decrypted: Engine.decrypt(ciphertext, keys.secret)"
            )
        return self._decode(plaintext, real)  # type: ignore[no-any-return]

    def encrypt(
        self,
        values: Any,
        key: _native.PublicKey | _native.SecretKey,
        *,
        level: int | None = None,
        scale: Any = None,
    ) -> Ciphertext:
        """Encrypts messages, or an encoded plaintext, under a public or secret key."""
        refuse("encryption")
        if not isinstance(values, Plaintext):
            values = self.encode(values, level=level, scale=scale)
        elif level is not None or scale is not None:
            raise TypeError("encrypt: a plaintext has its level and scale already")
        return self._encrypt(values, key)  # type: ignore[no-any-return]

    def decrypt(
        self,
        ciphertext: Ciphertext,
        secret: _native.SecretKey,
        *,
        real: bool = True,
        noise_flooding: float | None = None,
    ) -> np.ndarray[Any, np.dtype[Any]]:
        """The messages (..., slots), float64 where `real`, else complex128.

        Args:
            ciphertext: What to decrypt; two or three parts.
            secret: The secret key under which it was encrypted.
            real: Whether to give the real parts only.
            noise_flooding: Bits of the standard deviation of noise that is added before
                decoding. Needed where decrypted values are shown to someone who chose the
                inputs (Li and Micciancio 2021).
        """
        refuse("decryption")
        return self._decrypt(  # type: ignore[no-any-return]
            ciphertext, secret, real, noise_flooding
        )

    def add(self, left: Any, right: Any) -> Ciphertext:
        """The sum; an array or number is encoded at the ciphertext's level and scale."""
        return _arithmetic.add(left, right, engine=self)  # type: ignore[no-any-return]

    def subtract(self, left: Any, right: Any) -> Ciphertext:
        """The difference; an array or number is encoded at the ciphertext's level and scale."""
        return _arithmetic.subtract(left, right, engine=self)  # type: ignore[no-any-return]

    def multiply(self, left: Any, right: Any) -> Ciphertext:
        """The product, at the product of the scales; of two ciphertexts it has three parts."""
        return _arithmetic.multiply(left, right, engine=self)  # type: ignore[no-any-return]

    def square(self, ciphertext: Any) -> Ciphertext:
        """The product of a ciphertext with itself."""
        return _arithmetic.square(ciphertext, engine=self)  # type: ignore[no-any-return]

    def negate(self, ciphertext: Any) -> Ciphertext:
        """The negated message."""
        return _arithmetic.negate(ciphertext, engine=self)  # type: ignore[no-any-return]

    def rotate(self, ciphertext: Any, step: int, *, key: Any = None) -> Ciphertext:
        """Slot i receives slot (i + step) modulo the slots; 0 is the identity and needs no key."""
        return _arithmetic.rotate(  # type: ignore[no-any-return]
            ciphertext, step, engine=self, key=key
        )

    def rotate_many(
        self, ciphertext: Any, steps: Iterable[int], *, key: Mapping[int, Any] | None = None
    ) -> list[Ciphertext]:
        """One rotation for each step, cheaper than one by one; `key` maps steps to keys."""
        return _arithmetic.rotate_many(ciphertext, steps, engine=self, key=key)

    def conjugate(self, ciphertext: Any, *, key: Any = None) -> Ciphertext:
        """The complex conjugate of every slot."""
        return _arithmetic.conjugate(  # type: ignore[no-any-return]
            ciphertext, engine=self, key=key
        )

    def relinearize(self, ciphertext: Any, *, key: Any = None) -> Ciphertext:
        """A three-part product brought back to two parts."""
        return _arithmetic.relinearize(  # type: ignore[no-any-return]
            ciphertext, engine=self, key=key
        )

    def rescale(self, ciphertext: Any) -> Ciphertext:
        """The scale divided by the level's prime, one level lower."""
        return _arithmetic.rescale(ciphertext, engine=self)  # type: ignore[no-any-return]

    def drop_levels(self, ciphertext: Any, count: int = 1) -> Ciphertext:
        """The same message and scale, `count` levels lower."""
        return _arithmetic.drop_levels(  # type: ignore[no-any-return]
            ciphertext, count, engine=self
        )

    def sum_slots(self, ciphertext: Any, count: int | None = None) -> Ciphertext:
        """Slot i receives the sum of slots i ... i + count - 1, modulo the slots.

        With all slots, the default, every slot holds the sum of the whole message. `count` is a
        power of two; rotation keys for count / 2, count / 4, ... 1 are needed.
        """
        return _arithmetic.sum_slots(  # type: ignore[no-any-return]
            ciphertext, count, engine=self
        )

    def sum_batch(self, ciphertext: Any, axis: int = 0) -> Ciphertext:
        """The sum of a batch along one of its axes, which goes; the level and scale stay.

        No key is needed. The slots are no axis: -1 is the last axis of the batch shape.
        """
        return _batches.sum_batch(ciphertext, axis, engine=self)  # type: ignore[no-any-return]

    def stack(self, values: Sequence[Any], axis: int = 0) -> Any:
        """Ciphertexts, or plaintexts, along a new batch axis.

        They have one batch shape, level and number of parts, and scales that a sum would take.
        """
        return _batches.stack(values, axis, engine=self)

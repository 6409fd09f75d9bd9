"""Uniform words and exponential draws that are the same on every machine.

numpy's Philox `random_raw` is fixed across numpy versions (its Generator's
distributions are not); the logarithm is made of correctly rounded operations
only, because a libm's last bit differs between machines.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

_SERIES_TERMS = 13
_SQRT_HALF = math.sqrt(0.5)
_LN2 = 0.6931471805599453


def stream(key: bytes, name: str) -> np.random.Philox:
    """The word stream `name` below `key`, at counter 0.

    Its Philox key is the first 16 bytes, little-endian, of
    SHA-256(key + name).
    """
    digest = hashlib.sha256(key + name.encode("utf-8")).digest()
    return np.random.Philox(key=int.from_bytes(digest[:16], "little"))


def words(key: bytes, name: str, count: int) -> NDArray[np.uint64]:
    """The first `count` 64-bit words of a stream, shape (count,)."""
    return np.asarray(stream(key, name).random_raw(count), dtype=np.uint64)


def top_53_bits(raw: NDArray[np.uint64]) -> NDArray[np.int64]:
    """`word >> 11` as integers in [0, 2^53)."""
    return (raw >> np.uint64(11)).astype(np.int64)


def uniform(raw: NDArray[np.uint64]) -> NDArray[np.float64]:
    """U = ((word >> 11) + 0.5) / 2^53, in (0, 1]; 1 by rounding, once in 2^53."""
    return (top_53_bits(raw).astype(np.float64) + 0.5) / 2.0**53


def natural_log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ln x for x > 0, by the atanh series on IEEE basic operations only.

    Within 2 units in the last place or so; what matters is that every machine
    gives the same bits.
    """
    mantissa, exponent = np.frexp(x)
    low = mantissa < _SQRT_HALF
    mantissa = np.where(low, mantissa * 2.0, mantissa)
    exponent = np.where(low, exponent - 1, exponent)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = np.zeros_like(square)
    for term in range(_SERIES_TERMS - 1, -1, -1):
        series = series * square + 1.0 / (2 * term + 1)
    return exponent.astype(np.float64) * _LN2 + 2.0 * ratio * series


def unit_exponential(raw: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Exponential draws of mean 1 by the inverse distribution function."""
    return -natural_log(uniform(raw))

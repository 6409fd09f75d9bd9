"""Uniform words and exponential draws that are the same on every machine.

numpy's Philox `random_raw` is fixed across numpy versions (its Generator's
distributions are not); the logarithm is made of correctly rounded operations
only, because a libm's last bit differs between machines.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_SERIES_TERMS = 13
_SQRT_HALF = math.sqrt(0.5)
_LN2 = 0.6931471805599453
_ROUNDS = 10
_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WEYL = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B))
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_STREAMS_AT_ONCE = 16_384

WORDS_A_BLOCK = 4
"""What one step of Philox4x64 makes."""


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


def many_words(key: bytes, names: Iterable[str], blocks: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The first 4 `blocks[i]` words of each stream `names[i]`, end to end.

    The same words as `words` gives, for many streams in one pass: Philox4x64
    of ten rounds (Salmon et al., SC 2011); numpy counts from 1.
    """
    digests = b"".join(hashlib.sha256(key + name.encode("utf-8")).digest()[:16] for name in names)
    keys = np.frombuffer(digests, dtype="<u8").reshape(-1, 2)
    made = np.empty((int(blocks.sum()), 4), dtype=np.uint64)
    ends = np.cumsum(blocks)
    for first in range(0, len(blocks), _STREAMS_AT_ONCE):
        part = blocks[first : first + _STREAMS_AT_ONCE]
        stream_ends = np.cumsum(part)
        total = int(stream_ends[-1])
        counters = np.arange(1, total + 1) - np.repeat(stream_ends - part, part)
        start = int(ends[first] - part[0])
        made[start : start + total] = _philox(
            np.repeat(keys[first : first + len(part)], part, axis=0), counters.astype(np.uint64)
        )
    return made.reshape(-1)


def _philox(keys: NDArray[np.uint64], counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One block of four words for each key (rows of two words) and counter."""
    key0, key1 = keys[:, 0].copy(), keys[:, 1].copy()
    x0, x1 = counters, np.zeros_like(counters)
    x2, x3 = np.zeros_like(counters), np.zeros_like(counters)
    for _ in range(_ROUNDS):
        high0, low0 = _product(_MULTIPLIERS[0], x0)
        high1, low1 = _product(_MULTIPLIERS[1], x2)
        x0, x1, x2, x3 = high1 ^ x1 ^ key0, low1, high0 ^ x3 ^ key1, low0
        key0 += _WEYL[0]
        key1 += _WEYL[1]
    return np.stack([x0, x1, x2, x3], axis=1)


def _product(constant: int, x: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """High and low words of the 128-bit products `constant` x."""
    c_high, c_low = np.uint64(constant >> 32), np.uint64(constant & 0xFFFFFFFF)
    x_high, x_low = x >> _HALF, x & _LOW_HALF
    middle = c_high * x_low + (c_low * x_low >> _HALF)
    other = c_low * x_high + (middle & _LOW_HALF)
    return c_high * x_high + (middle >> _HALF) + (other >> _HALF), x * np.uint64(constant)


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

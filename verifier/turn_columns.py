"""The turns of a run as numpy columns, and the spans they spend somewhere.

Column names and meanings are those of `artifacts.records.TURNS`; a null is
NaN. Times are seconds from the run's start.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from registry.design import Window
from verifier.exact_statistics import BoolArray, FloatArray, IntArray


def float_column(frame: pd.DataFrame, name: str) -> FloatArray:
    """Column `name` as float64, shape (rows,); null becomes NaN."""
    column: FloatArray = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return column


def text_column(frame: pd.DataFrame, name: str) -> npt.NDArray[Any]:
    """Column `name` as an array of Python objects, shape (rows,)."""
    column: npt.NDArray[Any] = frame[name].to_numpy(dtype=object)
    return column


def _integer_column(frame: pd.DataFrame, name: str) -> IntArray:
    column: IntArray = frame[name].to_numpy(dtype=np.int64)
    return column


def equal_to(column: npt.NDArray[Any], text: str) -> BoolArray:
    """Where an object column holds exactly `text`."""
    found: BoolArray = np.equal(column, np.array(text, dtype=object), dtype=np.bool_, casting="unsafe")
    return found


def inside(times: FloatArray, window: Window) -> BoolArray:
    """Where start_s <= time < end_s; a null time is nowhere."""
    return (times >= window.start_s) & (times < window.end_s)


@dataclass(frozen=True)
class TurnColumns:
    """One array a column, all of shape (turns,)."""

    session: npt.NDArray[Any]
    turn: IntArray
    outcome: npt.NDArray[Any]
    planned_s: FloatArray
    ready_s: FloatArray
    admitted_s: FloatArray
    submit_s: FloatArray
    start_s: FloatArray
    first_token_s: FloatArray
    done_s: FloatArray
    prompt_tokens: IntArray
    reusable_tokens: IntArray
    cached_tokens: FloatArray
    output_tokens: IntArray

    @classmethod
    def of(cls, frame: pd.DataFrame) -> TurnColumns:
        """From a frame with the columns of `artifacts.records.TURNS`."""
        integers = ("turn", "prompt_tokens", "reusable_tokens", "output_tokens")
        texts = ("session", "outcome")
        columns: dict[str, npt.NDArray[Any]] = {}
        for field in fields(cls):
            read = _integer_column if field.name in integers else float_column
            read = text_column if field.name in texts else read
            columns[field.name] = read(frame, field.name)
        return cls(**columns)

    def where(self, chosen: BoolArray) -> TurnColumns:
        """The rows at which `chosen` is true."""
        return TurnColumns(**{f.name: getattr(self, f.name)[chosen] for f in fields(self)})

    def finished(self, window: Window) -> TurnColumns:
        """The turns of outcome ok whose done_s lies in the window."""
        done = inside(self.done_s, window)
        finished = done.copy()
        finished[done] = equal_to(self.outcome[done], "ok")
        return self.where(finished)

    @cached_property
    def previous_done_s(self) -> FloatArray:
        """done_s of the session's turn before; NaN where there is no such row."""
        codes, _ = pd.factorize(self.session)
        order = np.lexsort((self.turn, codes))
        before, after = order[:-1], order[1:]
        follows = (codes[before] == codes[after]) & (self.turn[before] + 1 == self.turn[after])
        previous_s = np.full(self.turn.size, np.nan)
        previous_s[after[follows]] = self.done_s[before[follows]]
        return previous_s


@dataclass(frozen=True)
class Spans:
    """Half-open spans [begin_s, end_s); end_s is inf for one still open.

    `known` is False where some span has an end that the records do not tell.
    """

    begin_s: FloatArray
    end_s: FloatArray
    known: bool

    def present_at(self, times: FloatArray) -> FloatArray:
        """How many spans hold each of `times`."""
        begun = np.searchsorted(np.sort(self.begin_s), times, side="right")
        ended = np.searchsorted(np.sort(self.end_s), times, side="right")
        present: FloatArray = (begun - ended).astype(np.float64)
        return present

    def overlaps(self, start_s: float, end_s: float) -> FloatArray:
        """Seconds of each span within [start_s, end_s), 0 or more."""
        cut = np.minimum(self.end_s, end_s) - np.maximum(self.begin_s, start_s)
        within: FloatArray = np.maximum(cut, 0.0)
        return within


def engine_spans(turns: TurnColumns, before_s: float) -> Spans:
    """submit_s to done_s of every turn submitted before `before_s`."""
    sent = turns.submit_s < before_s
    return _spans(turns.outcome[sent], turns.submit_s[sent], turns.done_s[sent])


def due_turns(turns: TurnColumns, before_s: float) -> TurnColumns:
    """The turns that were ready before `before_s` and not refused at the door.

    A turn that the gate refused was never queued, so it waits for nothing.
    """
    refused = equal_to(turns.outcome, "refused") & np.isnan(turns.admitted_s)
    return turns.where((turns.ready_s < before_s) & ~refused)


def gate_spans(due: TurnColumns) -> Spans:
    """ready_s to admitted_s, one span a turn of `due_turns`, in its order."""
    return _spans(due.outcome, due.ready_s, due.admitted_s)


def _spans(outcome: npt.NDArray[Any], begin_s: FloatArray, end_s: FloatArray) -> Spans:
    endless = np.isnan(end_s)
    still_open = equal_to(outcome, "open at horizon")
    # An end before its beginning would count as minus one session.
    closed_s = np.maximum(np.where(endless, np.inf, end_s), begin_s)
    return Spans(begin_s, closed_s, not bool((endless & ~still_open).any()))

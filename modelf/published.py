"""The paper's printed figures, carried as data with their source.

`published.json` holds printed values of Valse & Jannesari, "Inside the Trap"
(arXiv 2611.08902, project page); reconstructed entries say so in the file.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any


@lru_cache
def published() -> dict[str, Any]:
    """The whole file."""
    text = (resources.files("modelf") / "published.json").read_text("utf-8")
    value: dict[str, Any] = json.loads(text)
    return value


def measured_ranges(cell: str, rate: float | None) -> dict[str, tuple[float, float]]:
    """Table 2's measured ranges of BURST runs, by reading; empty where the
    paper prints none for this cell and rate.

    `sojourn_slope` is the table's gap slope; completions are in multiples of
    lambda_ref.
    """
    for row in published()["table2"]:
        entry = dict(zip(published()["table2_columns"], row, strict=True))
        if (entry["cell"], entry["rate_over_lambda_ref"]) == (cell, rate):
            return {
                "mean_prompt_tokens": tuple(entry["mean_prompt_measured"]),
                "sojourn_slope": tuple(entry["gap_slope_measured"]),
                "completions_over_lambda_ref": tuple(entry["completions_over_lambda_ref_measured"]),
            }
    return {}


def time_scale_ranges() -> dict[str, tuple[float, float]]:
    """The paper's ranges of gap and pool turnover in trapped arms, seconds:
    over three cells together (Figure 3), not over one.
    """
    gap, turnover = published()["gap_s"], published()["pool_turnover_s"]
    return {"idle_s": tuple(gap["trapped"]), "turnover_s": tuple(turnover["trapped"])}

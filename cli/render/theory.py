"""Model F as text and pictures."""

from __future__ import annotations

from pathlib import Path

from cli.render.table import table
from cli.workflows.theory import Sweep
from modelf.conformance import Comparison
from registry.errors import TrapError

_LABELS = (
    ("rho", "load rho = lambda / lambda_miss", "{:.4f}"),
    ("growth", "growth R of the cycles", "{:.5f}"),
    ("mean_prompt_tokens", "mean prompt served, tokens", "{:,.0f}"),
    ("gap_slope", "gap between turns grows, s per s (1 - 1/R)", "{:.4f}"),
    ("completions_over_lambda_ref", "completions D / lambda_ref", "{:.3f}"),
    ("completions_over_lambda_miss", "completions D / lambda_miss", "{:.4f}"),
    ("backlog_slope_over_excess", "backlog slope / (lambda - lambda_miss)", "{:.4f}"),
    ("quasi_static_ratio", "quasi-static reading / model F", "{:.3f}"),
    ("turn_count_factor", "turn-count factor H", "{:.4f}"),
    ("cost_growth_factor", "cost-growth factor Gamma", "{:.4f}"),
)


def sweep_text(result: Sweep) -> str:
    """One column a load up to six; a row a load beyond."""
    lines = [f"model F, cell {result.cell}, workload {result.workload}: asymptotic, every turn misses",
             f"costs: {result.origin}"]  # fmt: skip
    if len(result.loads) <= 6:
        rows = [["at this multiple of lambda_ref", *(f"{load:g}" for load in result.loads)]]
        rows += [[label, *(form.format(row[key]) for row in result.rows)] for key, label, form in _LABELS]
    else:
        rows = [["load", *(key for key, _, _ in _LABELS)]]
        rows += [
            [f"{load:g}", *(form.format(row[key]) for key, _, form in _LABELS)]
            for load, row in zip(result.loads, result.rows, strict=True)
        ]
    return "\n".join([*lines, table(rows)])


def conformance_text(rows: list[Comparison]) -> str:
    """Every printed number beside ours; the last line counts them."""
    cells = [["where", "quantity", "printed", "ours", "allowed", "agrees"]]
    for row in rows:
        cells.append([row.place, row.quantity, f"{row.printed:g}", f"{row.ours:.6g}", f"{row.allowed:.4g}",
                      "yes" if row.agrees else "NO"])  # fmt: skip
    agreed = sum(row.agrees for row in rows)
    return f"{table(cells)}\n{agreed} of {len(rows)} printed numbers agree"


def draw_sweep(result: Sweep, file: Path) -> None:
    """Mean prompt, completions, backlog and gap growth against the load."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    if file.suffix not in (".svg", ".png"):
        raise TrapError("unknown kind of picture", where=str(file), remedy="name it .svg or .png")
    panels = (
        ("mean_prompt_tokens", "mean prompt served, tokens"),
        ("completions_over_lambda_miss", "completions / lambda_miss"),
        ("backlog_slope_over_excess", "backlog slope / excess load"),
        ("gap_slope", "gap growth, 1 - 1/R"),
    )
    loads = [row["rho"] for row in result.rows]
    with matplotlib.rc_context({"svg.hashsalt": "trapkit", "svg.fonttype": "none"}):
        figure, axes = pyplot.subplots(2, 2, figsize=(9, 6), layout="constrained", sharex=True)
        for axis, (key, label) in zip(axes.flat, panels, strict=True):
            axis.plot(loads, [row[key] for row in result.rows], marker=".", color="#1f4e9c")
            axis.set(ylabel=label)
            axis.grid(alpha=0.3)
        for axis in axes[1]:
            axis.set(xlabel="load rho")
        figure.suptitle(f"Model F, cell {result.cell}, workload {result.workload} (a model, no measurement)")
        pyplot.close(figure)
        metadata = {"Date": None} if file.suffix == ".svg" else {}
        figure.savefig(file, metadata=metadata)

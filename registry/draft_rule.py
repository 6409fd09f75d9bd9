"""The rules of a rule file, compiled in the scope that its design gives them."""

from __future__ import annotations

from modelf.cells import Cell
from registry.design import Arm, Design, ReleaseWindow, cell_under
from registry.predictor import Predictor
from registry.rule import Beside, RateRule, Rule, RunRule, compile_rate_rule, compile_run_rule
from registry.rule_constancy import check_run_rule
from registry.rule_work import Work
from registry.strict_yaml import Document

NOMINAL_LAMBDA_REF_PER_S = 0.072


def rule_of(document: Document, design: Design, cell: Cell, predictors: tuple[Predictor, ...]) -> Rule:
    """The rules of a document whose design stands, each tried for constancy;
    RuleError where one does not hold, CapExceeded where they take too much
    work to try.
    """
    source = document.value["rule"]
    arms = {arm.name: arm for arm in design.arms}
    work = Work()
    for section in ("runs", "reported"):
        for arm, verdicts in source.get(section, {}).items():
            for name, text in verdicts.items():
                work.read(text, document.where(("rule", section, arm, name)))

    def run_rules(section: str) -> tuple[RunRule, ...]:
        return tuple(
            compile_run_rule(
                arm,
                name,
                text,
                _windows(design, arms[arm]),
                arms[arm],
                document.where(("rule", section, arm, name)),
                _beside(design, arms[arm], predictors),
            )
            for arm, verdicts in source.get(section, {}).items()
            for name, text in verdicts.items()
        )

    runs, reported = run_rules("runs"), run_rules("reported")
    session_tokens = design.workload.expected_session_prompt_tokens()
    references = {
        arm: _nominal_references(cell, design, arms[arm], session_tokens) for arm in {r.arm for r in (*runs, *reported)}
    }
    for rule in (*runs, *reported):
        for reference in references[rule.arm]:
            check_run_rule(rule, reference, work)
    lists = {f"{rule.arm}.{rule.name}" for rule in runs}
    rate: RateRule = compile_rate_rule(
        source["rate"], lists, len(design.seeds.values), document.where(("rule", "rate")), work
    )
    return Rule(runs, reported, rate)


def _windows(design: Design, arm: Arm) -> list[str]:
    """The windows of an arm, inside its runs: no rate, no release at that rate."""
    inside = [w for w in design.windows if w.end_s <= design.horizon_of(arm)]
    return [w.name for w in inside if arm.population is None or not isinstance(w, ReleaseWindow)]


def _beside(design: Design, arm: Arm, predictors: tuple[Predictor, ...]) -> Beside:
    """What the rules of an arm may name beside its own run. A closed
    population runs once for all rates, so it is paired with its like only.
    """
    paired = [other for other in design.arms if other != arm and (arm.population is None or other.population)]
    rates = design.judged_rates if arm.population is None else (None,)
    predicted = {
        p.rule_name: p.reading
        for p in predictors
        if p.computed and p.reading and p.arm == arm.name and (p.rate is None or (p.rate,) == rates)
    }
    return Beside({other.name: _windows(design, other) for other in paired}, predicted)


def _nominal_references(cell: Cell, design: Design, arm: Arm, session_tokens: float) -> list[dict[str, float]]:
    """Reference values of the right size, a set a rate.

    The measured ones are not known yet; whether a rule is constant does not
    hang on their exact size.
    """
    common: dict[str, float] = {
        "lambda_ref_per_s": NOMINAL_LAMBDA_REF_PER_S,
        "all_miss_prefill_tokens_per_s": NOMINAL_LAMBDA_REF_PER_S * session_tokens,
        "pool_tokens": float(cell_under(arm, cell).pool_tokens),
        "session_prompt_tokens": session_tokens,
        "cap": float(arm.gate.cap or 0) if arm.gate else 0.0,
    }
    return [
        {**common, "lambda_per_s": rate * NOMINAL_LAMBDA_REF_PER_S}
        for rate in (design.rates if arm.population is None else (0.0,))
    ]

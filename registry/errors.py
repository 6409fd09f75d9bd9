"""The one family of errors that people meet.

An error says what happened, where, which value was met and what to do; the
command line prints `diagnostics()` and exits with `exit_code`.
"""

from __future__ import annotations

from collections.abc import Iterable


class TrapError(Exception):
    """Something a person can put right; never shown as a traceback.

    `what` is one sentence; `where` names the file (with line or field),
    `value` the offending value, `remedy` what would be right.
    """

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        value: object = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.value = value
        self.remedy = remedy

    def diagnostics(self) -> str:
        """Several plain lines for a person: what, where, value, remedy."""
        lines = [f"error: {self.what}"]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.value is not None:
            lines.append(f"  value: {self.value!r}")
        if self.remedy:
            lines.append(f"  to do: {self.remedy}")
        return "\n".join(lines)


class DraftError(TrapError):
    """A rule file, study file or schema that cannot be accepted."""


class RuleError(DraftError):
    """A rule text outside the rule language, or one that decides nothing."""


class StudyError(TrapError):
    """No study, no git, a detached head, a dirty rule file."""


class RegistrationError(TrapError):
    """A registration that is missing, unpushed, undrawn or rejected."""


class WitnessError(TrapError):
    """A witness that did not answer, or answered with something unusable."""


class RecordError(TrapError):
    """Records of a run that are missing, malformed or not what they claim."""


class EngineError(TrapError):
    """An engine that does not start, answer, or answer as its adapter knows."""


class CapExceeded(TrapError):
    """Hostile or broken input that is larger or deeper than its cap."""


class ManyErrors(TrapError):
    """Several findings about one file, all shown at once."""

    def __init__(self, errors: Iterable[TrapError]) -> None:
        self.errors = tuple(errors)
        super().__init__(f"{len(self.errors)} problems")

    def diagnostics(self) -> str:
        """The diagnostics of every finding, in order."""
        return "\n".join(error.diagnostics() for error in self.errors)

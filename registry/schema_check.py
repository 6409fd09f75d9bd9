"""JSON Schema (draft 2020-12) findings as messages for people."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from typing import Any

from registry.errors import DraftError, ManyErrors
from registry.strict_yaml import Document, Path

_MAX_FINDINGS = 20
_LIMITS = {
    "const": "write {}",
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "pattern": "it must match {}",
}


@lru_cache
def schema(name: str) -> dict[str, Any]:
    """A shipped schema, `draft` or `study`."""
    path = resources.files("registry") / "schema" / f"{name}.schema.json"
    loaded: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return loaded


def check(document: Document, schema_name: str) -> None:
    """Raise ManyErrors with one DraftError a finding, in file order."""
    validator = _validator_class()(schema(schema_name))
    findings = list(validator.iter_errors(document.value))
    if not findings:
        return
    found = [error for finding in findings for error in _explain(document, finding)]
    errors = list({error.diagnostics(): error for error in found}.values())
    errors.sort(key=lambda error: _line(error.where or ""))
    raise ManyErrors(errors[:_MAX_FINDINGS])


@lru_cache
def _validator_class() -> Any:
    """JSON Schema, with patterns on whole texts (`$` alone lets a last newline
    pass) and integers written as integers (15.0 is none).
    """
    import jsonschema

    base = jsonschema.Draft202012Validator
    kinds = base.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    rules = {"pattern": _whole_pattern}
    return jsonschema.validators.extend(base, rules, type_checker=kinds)  # type: ignore[no-untyped-call]


def _whole_pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(value, str) and not re.fullmatch(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern}")


def _line(where: str) -> int:
    tail = where.partition(", line ")[2]
    return int(tail.split(",")[0]) if tail else 0


def _explain(document: Document, finding: Any) -> Iterator[DraftError]:
    path: Path = tuple(finding.absolute_path)
    if finding.validator == "required":
        for name in finding.validator_value:
            if name not in finding.instance:
                about = finding.schema.get("properties", {}).get(name, {}).get("description", "")
                yield DraftError(f"the field {name} is missing", where=document.where(path), remedy=f"add it: {about}")
    elif finding.validator == "additionalProperties":
        allowed = list(finding.schema.get("properties", {}))
        for name in sorted(set(finding.instance) - set(allowed)):
            yield _unknown_field(document, (*path, name), name, allowed)
    else:
        yield DraftError(
            _what(finding), where=document.where(path), value=_short(finding.instance), remedy=_remedy(finding)
        )


def _unknown_field(document: Document, path: Path, name: str, allowed: list[str]) -> DraftError:
    near = difflib.get_close_matches(name, allowed, 1)
    hint = f"did you mean {near[0]}?" if near else f"allowed here: {', '.join(allowed)}"
    return DraftError(f"unknown field {name}", where=document.where(path), remedy=hint)


def _short(value: Any) -> Any:
    return value if len(repr(value)) < 80 else repr(value)[:77] + "..."


def _what(finding: Any) -> str:
    limit = finding.validator_value
    words = {
        "type": "a value of the wrong kind",
        "enum": "not one of the allowed values",
        "const": "not the expected value",
        "minimum": "the number is too small",
        "exclusiveMinimum": "the number is too small",
        "maximum": "the number is too large",
        "pattern": "the text has the wrong form",
        "uniqueItems": "an entry is listed twice",
        "minItems": "the list is too short",
        "minProperties": "nothing is given here",
        "minLength": "the text is empty",
        "maxLength": "the text is too long",
        "maxProperties": "too much is given here",
    }
    return words.get(finding.validator, f"does not satisfy {finding.validator} {limit}")


def _remedy(finding: Any) -> str:
    limit = finding.validator_value
    match finding.validator:
        case "type":
            said = f"write {_kinds(limit)}"
        case "enum":
            said = f"one of: {', '.join(map(str, limit))}"
        case "uniqueItems":
            said = "keep each entry once"
        case name:
            said = _LIMITS.get(name, f"{name}: {{}}").format(limit)
    about = finding.schema.get("description") if isinstance(finding.schema, dict) else None
    return f"{said} ({about})" if about else said


def _kinds(kind: str | list[str]) -> str:
    names = {
        "object": "a mapping",
        "array": "a list",
        "string": "text",
        "number": "a number",
        "integer": "a whole number",
        "boolean": "true or false",
        "null": "null",
    }
    return " or ".join(names[k] for k in ([kind] if isinstance(kind, str) else kind))

"""GitHub's published description of its API, to hold stubs and servers against.

`tests/github_schema.sh` fetches it (npm `@octokit/openapi`) into build/. Where
it is missing a test skips and says so; with TRAP_GITHUB_SCHEMA=required, as in
CI, it fails.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

DESCRIPTION = Path(__file__).parents[1] / "build/octokit-openapi/api.github.com.json"
_COMPONENTS = "#/components/schemas/"


def validate(path_template: str, method: str, status: int, body: Any, *, description: Path = DESCRIPTION) -> None:
    """Hold one answer against the description; jsonschema's ValidationError where it does not fit.

    `path_template` as GitHub writes it, `/repos/{owner}/{repo}/activity`;
    `body` is the parsed JSON. A status that is not described is a KeyError.
    """
    _validator(path_template, method.lower(), str(status), _described(description)).validate(body)


def _described(description: Path) -> Path:
    if not description.is_file():
        missing = f"no description of GitHub's API in {description}: sh tests/github_schema.sh fetches it with npm"
        if os.environ.get("TRAP_GITHUB_SCHEMA") == "required":
            pytest.fail(missing)
        pytest.skip(missing)
    return description


@functools.cache
def _load(description: Path) -> Any:
    return json.loads(description.read_bytes())


@functools.cache
def _validator(path_template: str, method: str, status: str, description: Path) -> jsonschema.Draft4Validator:
    whole = _load(description)
    answer = whole["paths"][path_template][method]["responses"][status]
    if "$ref" in answer:
        answer = whole["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    found: dict[str, Any] = {}
    schema = _draft4(answer["content"]["application/json"]["schema"], whole["components"]["schemas"], found)
    return jsonschema.Draft4Validator({"allOf": [schema], "definitions": found})


def _draft4(schema: Any, components: dict[str, Any], found: dict[str, Any]) -> Any:
    """OpenAPI 3.0's dialect as JSON Schema draft 4, the components it needs gathered in `found`."""
    if isinstance(schema, list):
        return [_draft4(item, components, found) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_COMPONENTS)
        if name not in found:
            found[name] = {}
            found[name] = _draft4(components[name], components, found)
        return {"$ref": f"#/definitions/{name}"}
    words = {key: value for key, value in schema.items() if key not in ("nullable", "example", "examples", "default")}
    result = {
        key: {name: _draft4(item, components, found) for name, item in value.items()}
        if key == "properties"
        else value
        if key == "enum"
        else _draft4(value, components, found)
        for key, value in words.items()
    }
    return {"anyOf": [{"type": "null"}, result]} if schema.get("nullable") is True else result

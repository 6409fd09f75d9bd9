"""A page as one HTML file that may load nothing: styles, scripts and data stand in it.

Its policy (Content Security Policy, level 3) allows these very styles and scripts,
by their SHA-256, and no others: no style attribute, no event attribute, no request.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from registry.canonical import canonical_bytes

BASE_STYLE = "base.css"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("ledger.page", "."),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(template: str, values: Mapping[str, Any], *, styles: Sequence[str] = (), scripts: Sequence[str] = ()) -> str:
    """The template, which extends base.html, with `values`; everything in them is
    escaped that is not Markup. `styles` and `scripts` name files of this package.
    """
    style = Markup("\n".join(_text(name) for name in (BASE_STYLE, *styles)))  # noqa: S704 (our own files)
    script = Markup("\n".join(_text(name) for name in scripts))  # noqa: S704 (our own files)
    policy = policy_of(style, script)
    return _environment().get_template(template).render({**values, "style": style, "script": script, "policy": policy})


def policy_of(style: str, script: str) -> str:
    """The policy of a page with this one style and one script (none if empty)."""
    parts = ["default-src 'none'", f"style-src {_source(style)}"]
    if script:
        parts.append(f"script-src {_source(script)}")
    return "; ".join([*parts, "base-uri 'none'", "form-action 'none'"])


def data_block(name: str, value: Any) -> Markup:
    """JSON that scripts read by its id: canonical, and no character of it can end
    the element or begin another.
    """
    text = canonical_bytes(value).decode()
    for character, escaped in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(character, escaped)
    return Markup('<script type="application/json" id="{}">{}</script>').format(name, Markup(text))  # noqa: S704


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@lru_cache(maxsize=32)
def _text(name: str) -> str:
    return (resources.files("ledger.page") / name).read_text(encoding="utf-8")

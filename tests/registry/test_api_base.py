"""Which URLs lie below an API's base."""

from __future__ import annotations

import pytest

from registry.errors import WitnessError
from registry.witness.api_base import parse_api_base

GITHUB = parse_api_base("https://api.github.com")
OWN = parse_api_base("https://github.example.org:8443/api/v3/")
LOOPBACK = parse_api_base("http://[::1]:8080")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (
            "https://api.github.com/repos/o/r/activity?after=x%3D%3D&per_page=100",
            "/repos/o/r/activity?after=x%3D%3D&per_page=100",
        ),
        ("https://api.github.com:443/repositories/5", "/repositories/5"),
        ("https://API.github.com/repositories/5", "/repositories/5"),
    ],
)
def test_what_lies_below(url: str, path: str) -> None:
    assert GITHUB.relative(url) == path


def test_what_lies_below_a_prefix_or_on_this_machine() -> None:
    assert OWN.relative("https://github.example.org:8443/api/v3/repos/o/r") == "/repos/o/r"
    assert OWN.url("/repos/o/r") == "https://github.example.org:8443/api/v3/repos/o/r"
    assert LOOPBACK.relative("http://[::1]:8080/x") == "/x"
    assert LOOPBACK.url("/x") == "http://[::1]:8080/x" and LOOPBACK.loopback


@pytest.mark.parametrize(
    "url",
    [
        "http://api.github.com/x",
        "http://api.github.com:443/x",
        "https://api.github.com:8443/x",
        "https://api.github.com.example.org/x",
        "https://example.org/api.github.com/x",
        "https://api.github.com@example.org/x",
        "https://user@api.github.com/x",
        "https://api.github.com/x#y",
        "https://api.github.com/a/../x",
        "https://api.github.com/a/%2e%2E/x",
        "https://api.github.com/a/./x",
        "https://api.github.com\\@example.org/x",
        "https://api.github.com/\\x",
        "https://api.github.com/a b",
        "https://api.github.com/ä",
        "https://api.github.com/x\n",
        "https://api.github.com:99999/x",
        "https://[::1/x",
        "https://api.github.com",
        "//api.github.com/x",
        "/x",
        "",
        "https://api.github.com/" + "x" * 9000,
    ],
)
def test_what_does_not(url: str) -> None:
    assert GITHUB.relative(url) is None


@pytest.mark.parametrize("url", ["https://github.example.org:8443/x", "https://github.example.org:8443/api/v3x/y"])
def test_what_lies_beside_a_prefix(url: str) -> None:
    assert OWN.relative(url) is None


@pytest.mark.parametrize("text", ["https://x/?a=b", "https://x#y", "http://10.0.0.1", "https:///x", "https://x\\y"])
def test_what_is_no_base(text: str) -> None:
    with pytest.raises(WitnessError):
        parse_api_base(text)

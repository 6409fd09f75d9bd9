"""What the client makes of GitHub's answers, good, slow, broken and hostile."""

from __future__ import annotations

import gzip
import json
import logging
import time
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

import pytest

from registry.errors import WitnessError
from registry.witness.github import GitHubClient, token_from_environment
from registry.witness.github_archive import archive_bytes, read_archive
from registry.witness.github_refusals import Limits
from tests.registry import github_forms as forms
from tests.registry.github_stub import GitHubStub, raw, reply

A, B, C, ZERO = "a" * 40, "b" * 40, "c" * 40, "0" * 40
TOKEN = "ghp_PLANTED0123456789"
Fault = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def stub() -> Iterator[GitHubStub]:
    with GitHubStub() as running:
        running.push(A, "2026-01-01T00:00:00Z", kind="branch_creation")
        running.push(B, "2026-01-01T00:00:01+02:00", before=A)
        running.ancestor = lambda commit, head: None if C in (commit, head) else commit <= head
        yield running


class Waits:
    """A sleep that takes no time, and a clock."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.now_s = 1_767_225_600.0

    def sleep(self, wait_s: float) -> None:
        self.waited.append(wait_s)


def client(stub: GitHubStub, token: str | None = None, waits: Waits | None = None, **limits: Any) -> GitHubClient:
    waits = waits or Waits()
    bounds = Limits(**limits)
    return GitHubClient(stub.api, stub.repository, token, limits=bounds, sleep=waits.sleep, clock=lambda: waits.now_s)


def failure(stub: GitHubStub, *faults: Fault, waits: Waits | None = None, **limits: Any) -> WitnessError:
    """The error of asking for the activity while the stub answers with faults; nothing is kept."""
    stub.faults.extend(faults)
    asking = client(stub, waits=waits, **limits)
    with pytest.raises(WitnessError) as caught:
        asking.activity()
    assert asking.answers == []
    return caught.value


def test_rows_are_read_and_raw_answers_kept(stub: GitHubStub) -> None:
    asking = client(stub)
    assert asking.repository_id() == 1296269
    rows = asking.activity()
    assert [(row.after, row.timestamp, row.activity_type) for row in rows] == [
        (B, "2025-12-31T22:00:01.000000Z", "push"),
        (A, "2026-01-01T00:00:00Z", "branch_creation"),
    ]
    assert [answer.path for answer in asking.answers] == [
        "/repos/octo/study",
        "/repos/octo/study/activity?per_page=100",
    ]
    assert json.loads(asking.answers[1].body) == stub.rows


def test_an_empty_log_is_no_error(stub: GitHubStub) -> None:
    stub.rows.clear()
    assert client(stub).activity() == []


@pytest.mark.parametrize("prefix", ["", "/api/v3"])
def test_all_pages_are_followed(prefix: str) -> None:
    with GitHubStub(prefix=prefix) as stub:
        for number in range(250):
            stub.push(f"{number:040x}", "2026-01-02T00:00:00Z")
        asking = client(stub)
        rows = asking.activity()
    assert [row.id for row in rows] == [row["id"] for row in stub.rows]
    sent = [(path, parse_qs(query)) for path, _, query in (each[1].partition("?") for each in stub.asked)]
    kept = [
        (prefix + path, parse_qs(query)) for path, _, query in (each.path.partition("?") for each in asking.answers)
    ]
    assert sent == kept
    assert len(asking.answers) == 3


@pytest.mark.parametrize("target", ["/repositories/1296269/activity?after=1", "/api/v3/../x", "/api/v33/x"])
def test_nothing_outside_the_prefix_is_asked(target: str) -> None:
    with GitHubStub(prefix="/api/v3") as stub:
        origin = stub.api.removesuffix("/api/v3")
        failure(stub, reply(302, "", Location=origin + target))
        failure(stub, reply(200, [], Link=f'<{origin + target}>; rel="next"'))
    assert len(stub.asked) == 2


def test_ancestry(stub: GitHubStub) -> None:
    asking = client(stub)
    assert asking.contains(A, A) is True
    assert stub.asked == []
    assert asking.contains(A, B) is True
    assert asking.contains(B, A) is False
    assert asking.contains(C, A) is None


def test_a_status_is_posted_and_found_again(stub: GitHubStub) -> None:
    waits = Waits()
    asking = client(stub, TOKEN, waits)
    posted = asking.post_status(A, "trap", "x" * 200)
    assert posted is not None and (posted.sha, posted.description) == (A, "x" * 140)
    assert asking.statuses(A) == [posted]
    assert asking.statuses(B) == []
    asking.post_status(B, "trap", "y")
    assert waits.waited == [1.0]


def test_a_status_that_is_not_allowed_is_none(stub: GitHubStub) -> None:
    assert client(stub).post_status(A, "trap", "x") is None
    assert stub.asked == []
    stub.read_only = True
    assert client(stub, TOKEN).post_status(A, "trap", "x") is None
    stub.faults.append(reply(404, forms.error("Not Found")))
    assert client(stub, TOKEN).post_status(A, "trap", "x") is None


def test_a_rate_limit_on_a_status_is_not_a_lack_of_permission(stub: GitHubStub) -> None:
    stub.faults.append(reply(403, forms.error("You have exceeded a secondary rate limit")))
    waits = Waits()
    assert client(stub, TOKEN, waits).post_status(A, "trap", "x") is not None
    assert waits.waited == [60.0]


def test_attestations(stub: GitHubStub) -> None:
    stub.bundles[f"sha1:{A}"] = [{"mediaType": "x"}]
    assert client(stub).attestations(f"sha1:{A}") == [{"mediaType": "x"}]
    assert client(stub).attestations(f"sha1:{B}") == []


def test_a_renamed_repository_is_followed_on_the_same_host(stub: GitHubStub) -> None:
    stub.faults.append(
        reply(301, forms.error("Moved"), Location=f"{stub.api}/repositories/{stub.number}/activity?per_page=100")
    )
    assert len(client(stub, TOKEN).activity()) == 2


@pytest.mark.parametrize("verb", ["activity", "post"])
@pytest.mark.parametrize(
    "location",
    [
        "http://localhost:1/repos/octo/study",
        "https://127.0.0.1/repos/octo/study",
        "//example.org/x",
        "http://user:word@{host}/x",
        "file:///etc/passwd",
        "",
        "/v3/%2e%2E/x",
        "/v3\\x",
        "http://{host}@example.org/",
    ],
)
def test_a_redirect_that_leaves_the_api_is_refused(stub: GitHubStub, verb: str, location: str) -> None:
    host = stub.api.removeprefix("http://")
    for _ in range(2):
        stub.faults.append(reply(307, forms.error("Moved"), Location=location.format(host=host)))
    asking = client(stub, TOKEN)
    with pytest.raises(WitnessError, match="redirects away"):
        asking.activity() if verb == "activity" else asking.post_status(A, "trap", "x")
    assert len(stub.asked) == 1


def test_redirects_in_a_circle_end(stub: GitHubStub) -> None:
    stub.faults.extend([reply(301, "", Location="/x")] * 9)
    assert "redirects in circles" in failure(stub).what


def test_a_post_is_not_turned_into_another_request(stub: GitHubStub) -> None:
    stub.faults.append(reply(301, forms.error("Moved"), Location="/repositories/1296269/statuses"))
    with pytest.raises(WitnessError, match="redirects with status 301"):
        client(stub, TOKEN).post_status(A, "trap", "x")


@pytest.mark.parametrize(
    "target",
    [
        "http://localhost:1/repos/octo/study/activity?after=1",
        "https://api.github.com/repositories/1296269/activity?after=1",
        "{api}/repositories/1296269?after=1",
        "{api}/user",
        "{api}/repos/octo/study/../../activity",
    ],
)
def test_a_next_page_elsewhere_is_refused(stub: GitHubStub, target: str) -> None:
    error = failure(stub, reply(200, stub.rows, Link=f'<{target.format(api=stub.api)}>; rel="next"'))
    assert "next page" in error.what
    assert len(stub.asked) == 1


def test_pages_in_a_circle_end(stub: GitHubStub) -> None:
    there = f'<{stub.api}/repositories/1296269/activity?after=1>; rel="next"'
    error = failure(stub, *[reply(200, stub.rows, Link=there)] * 3)
    assert "circles" in error.what
    assert len(stub.asked) == 2


def test_pages_without_end_end(stub: GitHubStub) -> None:
    def page(number: int) -> Fault:
        return reply(200, [], Link=f'<{stub.api}/repositories/1296269/activity?after={number}>; rel="next"')

    assert "more than 3 pages" in failure(stub, *map(page, range(9)), pages=3).what


def test_a_row_served_twice_is_one_row(stub: GitHubStub) -> None:
    there = f'<{stub.api}/repositories/1296269/activity?after=1>; rel="next"'
    stub.faults.append(reply(200, stub.rows[:1], Link=there))
    stub.faults.append(reply(200, stub.rows))
    assert [row.id for row in client(stub).activity()] == [2, 1]


def test_one_id_with_two_contents_is_refused(stub: GitHubStub) -> None:
    error = failure(stub, reply(200, [stub.rows[0], {**stub.rows[0], "after": C}]))
    assert "two different rows" in error.what


LATER = str(1_767_225_600 + 3600)
LIMITED = {"x_ratelimit_remaining": "0", "x_ratelimit_reset": LATER}


@pytest.mark.parametrize(
    ("fault", "expected_waits"),
    [
        (reply(429, forms.error("Too many")), [60.0]),
        (reply(429, forms.error("Too many"), Retry_After="7"), [7.0, 7.0, 7.0]),
        (reply(429, "<html>", Retry_After="soon"), [60.0]),
        (reply(403, forms.error("Slow down"), Retry_After="20"), [20.0, 20.0, 20.0]),
        (reply(403, forms.error("API rate limit exceeded"), **LIMITED), []),
        (reply(429, forms.error("x"), **{**LIMITED, "x_ratelimit_reset": "9" * 400}), [60.0]),
        (reply(429, forms.error("x"), Retry_After="86400"), []),
        (reply(403, forms.error("You have exceeded a secondary rate limit.")), [60.0]),
        (reply(500, forms.error("Server Error")), [1.0, 2.0, 4.0]),
        (reply(502, "<html>Bad gateway</html>"), [1.0, 2.0, 4.0]),
        (reply(503, ""), [1.0, 2.0, 4.0]),
        (reply(504, forms.error("x")), [1.0, 2.0, 4.0]),
        (reply(202, {}), [1.0, 2.0, 4.0]),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[]"), [1.0, 2.0, 4.0]),
        (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n"), [1.0, 2.0, 4.0]),
        (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n"), [1.0, 2.0, 4.0]),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"), [1.0, 2.0, 4.0]),
        (raw(b""), [1.0, 2.0, 4.0]),
    ],
)
def test_waits_are_bounded(stub: GitHubStub, fault: Fault, expected_waits: list[float]) -> None:
    waits = Waits()
    error = failure(stub, *[fault] * 9, waits=waits)
    assert waits.waited == expected_waits
    assert "gives no answer" in error.what and "ask again" in str(error.remedy)


@pytest.mark.parametrize("status", [429, 500, 202])
def test_a_passing_trouble_passes(stub: GitHubStub, status: int) -> None:
    stub.faults.append(reply(status, "", Retry_After="1"))
    asking = client(stub)
    assert len(asking.activity()) == 2
    assert [answer.status for answer in asking.answers] == [200]


def test_the_end_of_a_rate_limit_is_named(stub: GitHubStub) -> None:
    error = failure(stub, reply(403, forms.error("API rate limit exceeded"), **LIMITED))
    assert "2026-01-01T01:00:00.000000Z" in str(error.remedy)


def test_waiting_is_one_budget_for_the_whole_client(stub: GitHubStub) -> None:
    waits = Waits()
    asking = client(stub, waits=waits)
    for _ in range(2):
        stub.faults.append(reply(429, forms.error("x"), Retry_After="25"))
        asking.activity()
    stub.faults.append(reply(429, forms.error("x"), Retry_After="25"))
    with pytest.raises(WitnessError):
        asking.activity()
    assert waits.waited == [25.0, 25.0]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (reply(401, forms.error("Bad credentials")), "does not accept the token: Bad credentials"),
        (reply(403, forms.error("Resource not accessible")), "does not allow this: Resource not accessible"),
        (reply(404, forms.error("Not Found")), "does not show it"),
        (reply(410, forms.error("Gone")), "gone"),
        (reply(422, forms.error("Validation Failed")), "Validation Failed"),
        (reply(418, "\x1b[31m<b>"), "answers 418"),
        (reply(200, "<!DOCTYPE html><title>Log in</title>"), "web page"),
        (reply(200, ""), "not usable JSON"),
        (reply(200, "[{"), "not usable JSON"),
        (reply(200, "[NaN]"), "not usable JSON"),
        (reply(200, '[{"id":1,"id":2}]'), "not usable JSON"),
        (reply(200, "[" * 100_000), "not usable JSON"),
        (reply(200, "[" * 100 + "]" * 100), "not usable JSON"),
        (reply(200, b"\xff\xfe"), "not UTF-8"),
        (reply(200, {}), "not a list"),
        (reply(200, "[1]"), "malformed"),
        (reply(200, "[]", Content_Encoding="br"), "encoded"),
        (reply(200, "[]", Content_Encoding="gzip, gzip"), "encoded"),
        (raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"), "redirects with status 304"),
    ],
)
def test_final_refusals_say_what_happened(stub: GitHubStub, fault: Fault, words: str) -> None:
    waits = Waits()
    error = failure(stub, fault, waits=waits)
    assert words in error.what
    assert "\x1b" not in error.diagnostics()
    assert waits.waited == [] and len(stub.asked) == 1


def test_a_private_repository_asks_for_a_token(stub: GitHubStub) -> None:
    assert "TRAP_GITHUB_TOKEN" in str(failure(stub, reply(404, forms.error("Not Found"))).remedy)


@pytest.mark.parametrize(
    "junk",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n[]",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-RateLimit-Reset: nan\r\nX-RateLimit-Remaining: 1e999\r\nX-RateLimit-Limit: x\r\n\r\n{}",
        b"\0" * 1000,
    ],
)
def test_junk_on_the_wire_is_an_error_for_people(stub: GitHubStub, junk: bytes) -> None:
    failure(stub, *[raw(junk)] * 9)


def test_a_body_over_the_cap_is_not_read_on(stub: GitHubStub) -> None:
    sent = []

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        try:
            while len(sent) < 4096:
                handler.wfile.write(b" " * 65536)
                sent.append(1)
        except OSError:
            return

    assert "larger than 1000000 bytes" in failure(stub, endless, body_bytes=1_000_000).what
    assert len(sent) < 1000


@pytest.mark.parametrize("chunked", [False, True])
def test_a_compressed_bomb_stops_at_the_cap(stub: GitHubStub, chunked: bool) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = packer.compress(b" ") + packer.flush(zlib.Z_FULL_FLUSH)
    block = zlib.compressobj(9, zlib.DEFLATED, -15)
    mebibyte = block.compress(b" " * 1_048_576) + block.flush(zlib.Z_FULL_FLUSH)
    data += mebibyte * 4096  # 4 GiB when unpacked
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
    if chunked:
        bomb = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(data) + data + b"\r\n0\r\n\r\n"
    else:
        bomb = head + b"Content-Length: %d\r\n\r\n" % len(data) + data

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        try:
            handler.wfile.write(bomb)
        except OSError:
            return

    started = time.monotonic()
    assert "larger than 1000000 bytes" in failure(stub, send, body_bytes=1_000_000).what
    assert time.monotonic() - started < 2


def test_compressed_answers_are_read(stub: GitHubStub) -> None:
    stub.faults.append(reply(200, gzip.compress(json.dumps(stub.rows).encode()), Content_Encoding="gzip"))
    assert len(client(stub).activity()) == 2


def test_all_answers_together_are_capped(stub: GitHubStub) -> None:
    asking = client(stub, total_bytes=4000)
    with pytest.raises(WitnessError, match="too large to archive"):
        for _ in range(9):
            asking.activity()


@pytest.mark.parametrize("part", [b"HTTP/1.1 200 OK\r\nX", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_drip_of_bytes_does_not_hold_the_client(stub: GitHubStub, part: bytes) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.wfile.write(part)
        try:
            for _ in range(100):
                handler.wfile.write(b" ")
                time.sleep(0.01)
        except OSError:
            return

    started = time.monotonic()
    assert "not complete after 0.1 seconds" in failure(stub, drip, answer_s=0.1).what
    assert time.monotonic() - started < 0.5


def test_a_silent_server_is_given_up(stub: GitHubStub) -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.2)
        handler.close_connection = True

    waits = Waits()
    assert "does not answer in time" in failure(stub, *[silent] * 4, waits=waits, read_s=0.05, tries=2).what
    assert waits.waited == [1.0]


def test_nobody_there() -> None:
    with GitHubStub() as stub:
        pass
    waits = Waits()
    with pytest.raises(WitnessError, match="cannot be reached"):
        client(stub, waits=waits).activity()
    assert waits.waited == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "api",
    [
        "http://api.github.com",
        "ftp://x",
        "https://",
        "https://a b",
        "https://user:word@api.github.com",
        "",
        "https://x:99999",
    ],
)
def test_an_api_that_would_get_the_token_in_the_clear_is_refused(api: str) -> None:
    with pytest.raises(WitnessError) as caught:
        GitHubClient(api, "octo/study", TOKEN)
    assert "word" not in caught.value.diagnostics()


@pytest.mark.parametrize("name", ["octo", "octo/..", "octo/a/b", "../x", "octo/x?y", "", "octo/ä"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(WitnessError, match="repository's name"):
        GitHubClient("https://api.github.com", name, None)


@pytest.mark.parametrize("commit", ["main", "", "A" * 40, "a" * 39, f"{A}\n"])
def test_only_object_ids_are_asked_for(stub: GitHubStub, commit: str) -> None:
    asking = client(stub, TOKEN)
    for ask in (asking.statuses, lambda sha: asking.contains(sha, A), lambda sha: asking.post_status(sha, "x", "y")):
        with pytest.raises(WitnessError, match="object id"):
            ask(commit)
    assert stub.asked == []


def test_the_token_goes_to_the_api_and_stands_nowhere_else(
    stub: GitHubStub, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "github.Requester")
    stub.token = TOKEN
    asking = client(stub, TOKEN)
    number = asking.repository_id()
    asking.activity()
    asking.contains(A, B)
    asking.post_status(A, "trap", "x")
    shown = [repr(asking), str(vars(asking)), str(asking.answers)]
    for fault in (
        reply(401, forms.error("Bad credentials")),
        reply(404, forms.error("Not Found")),
        reply(200, forms.error(f"you sent {TOKEN}")),
        reply(403, forms.error(TOKEN)),
        reply(307, "", Location=f"{stub.api}/{TOKEN}"),
        reply(200, [], Link=f'<{stub.api}/repositories/1296269/activity?t={TOKEN}>; rel="next"'),
        raw(f"HTTP/1.1 200 OK\r\nX: {TOKEN}\r\n\r\n[]".encode()),
    ):
        stub.faults.append(fault)
        with pytest.raises(WitnessError) as caught:
            asking.activity()
        shown += [caught.value.diagnostics(), repr(caught.value), repr(caught.value.__dict__)]
    archive = archive_bytes(stub.api, stub.repository, number, asking.answers)
    assert read_archive(archive, "a").repository_id == number
    out, err = capfd.readouterr()
    everything = "\n".join([*shown, archive.decode(), caplog.text, out, err, *(path for _, path, _ in stub.asked)])
    assert "Authorization" in caplog.text  # PyGithub did log its requests
    assert TOKEN not in everything
    assert {sent for _, _, sent in stub.asked} == {f"token {TOKEN}"}


def test_a_token_with_a_line_break_is_refused_unseen() -> None:
    with pytest.raises(WitnessError) as caught:
        GitHubClient("https://api.github.com", "octo/study", f"{TOKEN}\nX: y")
    assert TOKEN not in caught.value.diagnostics()


def test_the_token_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRAP_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert token_from_environment() is None
    monkeypatch.setenv("GH_TOKEN", "third\n")
    assert token_from_environment() == "third"
    monkeypatch.setenv("GITHUB_TOKEN", "second")
    monkeypatch.setenv("TRAP_GITHUB_TOKEN", "first")
    assert token_from_environment() == "first"
    monkeypatch.setenv("TRAP_GITHUB_TOKEN", "fi rst")
    with pytest.raises(WitnessError) as caught:
        token_from_environment()
    assert "fi rst" not in caught.value.diagnostics()

"""The witness server's answers over HTTP: GitHub's forms, tokens, hostile requests."""

from __future__ import annotations

import http.client
import io
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests

from registry.errors import WitnessError
from registry.witness.github import GitHubClient
from registry.witness.http import StatusError
from registry.witness.log import parse_log
from registry.witness.rows import PushRow
from registry.witness.served import fetch_log
from registry.witness.server.activity import activity_page
from registry.witness.server.answers import Refused
from registry.witness.server.authentication import Gate
from registry.witness.server.git_backend import serve_git
from registry.witness.server.serving import check_exposure
from tests.github_schema import validate
from tests.support import git
from tests.witness_server import WitnessServer

NAME = "lab/study"
TOKEN = "a-token-of-the-lab-0123456789"
ACTIVITY = "/repos/{owner}/{repo}/activity"
PUSHES = 7


def working_tree(root: Path) -> Path:
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@example.org")
    return root


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WitnessServer]:
    """A server whose repository has seven rows of branches and one of a tag."""
    root = working_tree(tmp_path_factory.mktemp("work") / "study")
    with WitnessServer(tmp_path_factory.mktemp("witness"), NAME, "lab/empty", max_body_bytes=300_000) as running:
        for number in range(PUSHES):
            git(root, "commit", "-q", "--allow-empty", "-m", f"{number}")
            branch = "side" if number == 3 else "main"
            git(root, "push", "-q", running.remote(NAME), f"HEAD:refs/heads/{branch}")
        git(root, "push", "-q", running.remote(NAME), "HEAD:refs/tags/t")
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WitnessServer]:
    with WitnessServer(tmp_path_factory.mktemp("guarded"), NAME, token=TOKEN) as running:
        yield running


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WitnessServer]:
    with WitnessServer(tmp_path_factory.mktemp("private"), NAME, token=TOKEN, private=True) as running:
        yield running


def api(server: WitnessServer, rest: str = "", **query: object) -> requests.Response:
    return requests.get(f"{server.url}/api/v3/repos/{NAME}{rest}", params=query, timeout=10)  # type: ignore[arg-type]


# --- GitHub's forms -----------------------------------------------------------


def test_activity_is_what_github_describes(server: WitnessServer) -> None:
    answer = api(server, "/activity")
    validate(ACTIVITY, "get", 200, answer.json())
    assert [row["id"] for row in answer.json()] == list(range(PUSHES, 0, -1))
    assert {row["ref"] for row in answer.json()} == {"refs/heads/main", "refs/heads/side"}
    assert "Link" not in answer.headers


def test_the_repository_is_what_github_describes(server: WitnessServer) -> None:
    value = api(server).json()
    validate("/repos/{owner}/{repo}", "get", 200, value)
    assert value["id"] == server.repository(NAME).id
    assert (value["full_name"], value["private"], value["clone_url"]) == (NAME, False, server.remote(NAME))
    assert value["pushed_at"] == parse_log(fetch_log(server.url, NAME)[0], NAME)[-1].timestamp
    empty = requests.get(f"{server.url}/api/v3/repos/lab/empty", timeout=10).json()
    validate("/repos/{owner}/{repo}", "get", 200, empty)
    assert empty["pushed_at"] == empty["created_at"]


def test_errors_are_what_github_describes(server: WitnessServer) -> None:
    missing = requests.get(f"{server.url}/api/v3/repos/lab/none", timeout=10)
    assert missing.status_code == 404
    validate("/repos/{owner}/{repo}", "get", 404, missing.json())
    wrong = api(server, "/activity", activity_type="party")
    assert wrong.status_code == 422
    validate(ACTIVITY, "get", 422, wrong.json())


def test_github_s_client_reads_the_server(server: WitnessServer) -> None:
    client = GitHubClient(f"{server.url}/api/v3", NAME, None)
    assert client.repository_id() == server.repository(NAME).id
    logged = parse_log(fetch_log(server.url, NAME)[0], NAME)
    branches = [row for row in logged if row.ref.startswith("refs/heads/")]
    seen = list(reversed(client.activity()))
    assert [(row.id, row.ref, row.before, row.after, row.activity_type) for row in seen] == [
        (row.id, row.ref, row.before, row.after, row.activity_type) for row in branches
    ]
    assert [row.timestamp for row in seen] == [row.timestamp for row in branches]
    with pytest.raises(WitnessError):
        GitHubClient(f"{server.url}/api/v3", "lab/none", None).activity()


def test_pages_follow_each_other_forth_and_back(server: WitnessServer) -> None:
    first = api(server, "/activity", per_page=3)
    second = requests.get(first.links["next"]["url"], timeout=10)
    third = requests.get(second.links["next"]["url"], timeout=10)
    pages = [[row["id"] for row in page.json()] for page in (first, second, third)]
    assert pages == [[7, 6, 5], [4, 3, 2], [1]]
    assert "prev" not in first.links and "next" not in third.links
    assert requests.get(third.links["prev"]["url"], timeout=10).json() == second.json()
    assert requests.get(second.links["prev"]["url"], timeout=10).json() == first.json()


def test_a_query_of_too_many_words_is_refused(server: WitnessServer) -> None:
    assert raw(server, "GET", f"/api/v3/repos/{NAME}/activity?{'x=1&' * 30}").status == 422


def row(number: int, ref: str = "refs/heads/main", kind: str = "push", day: int = 1) -> PushRow:
    return PushRow(number, f"2026-03-{day:02d}T12:00:00.000000Z", ref, "a" * 40, "b" * 40, kind)


NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
ROWS = [
    row(1, kind="branch_creation", day=1),
    row(2, "refs/tags/t", "tag_creation", day=2),
    row(3, "refs/heads/side/a", "branch_creation", day=20),
    row(4, day=28),
    row(5, "refs/heads/side/a", day=31),
]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({}, [5, 4, 3, 1]),
        ({"direction": "asc"}, [1, 3, 4, 5]),
        ({"ref": "main"}, [4, 1]),
        ({"ref": "refs/heads/side/a"}, [5, 3]),
        ({"ref": "refs/tags/t"}, []),
        ({"activity_type": "branch_creation"}, [3, 1]),
        ({"activity_type": "force_push"}, []),
        ({"time_period": "day"}, [5]),
        ({"time_period": "week"}, [5, 4]),
        ({"time_period": "month"}, [5, 4, 3, 1]),
        ({"actor": "ada"}, []),
        ({"per_page": "2"}, [5, 4]),
        ({"per_page": "0"}, [5, 4, 3, 1]),
        ({"per_page": "many"}, [5, 4, 3, 1]),
        ({"unknown": "1"}, [5, 4, 3, 1]),
    ],
)
def test_activity_is_filtered_as_github_does(query: dict[str, str], ids: list[int]) -> None:
    assert [row["id"] for row in activity_page(ROWS, 1, query, NOW).rows] == ids


@pytest.mark.parametrize(
    "query",
    [
        {"direction": "up"},
        {"activity_type": "tag_creation"},
        {"time_period": "hour"},
        {"after": "!"},
        {"before": "cm93OjE"},
        {"after": "cm93Oi0x"},
    ],
)
def test_words_that_github_refuses_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        activity_page(ROWS, 1, query, NOW)
    assert refused.value.status == 422


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_a_cursor_stays_good_while_rows_are_added(direction: str) -> None:
    rows = [row(number) for number in range(1, 8)]
    first = activity_page(rows, 1, {"per_page": "3", "direction": direction}, NOW)
    later = [*rows, row(8), row(9)]
    second = activity_page(later, 1, dict(parse_qsl(first.links["next"])), NOW)
    expected = {"asc": [4, 5, 6], "desc": [4, 3, 2]}
    assert [each["id"] for each in second.rows] == expected[direction]


def test_at_most_a_hundred_rows_are_a_page() -> None:
    page = activity_page([row(number) for number in range(1, 151)], 1, {"per_page": "500"}, NOW)
    assert len(page.rows) == 100 and set(page.links) == {"next"}


# --- tokens -------------------------------------------------------------------


def pushed(server: WitnessServer, root: Path, authorization: str | None) -> subprocess.CompletedProcess[str]:
    header = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: {authorization}",
    }
    plain = {"PATH": os.environ["PATH"], "GIT_TERMINAL_PROMPT": "0", "HOME": str(root)}
    return subprocess.run(
        ["git", "push", server.remote(NAME), "HEAD:main"],
        cwd=root,
        capture_output=True,
        text=True,
        env=plain | (header if authorization else {}),
    )


def test_a_push_needs_the_token_and_nobody_else_sees_it(guarded: WitnessServer, tmp_path: Path) -> None:
    root = working_tree(tmp_path / "study")
    git(root, "commit", "-q", "--allow-empty", "-m", "one")
    bare = guarded.repository(NAME).path
    (bare / "hooks/post-receive").write_text('#!/bin/sh\nenv >"$GIT_DIR/seen"\nps -A -o args >>"$GIT_DIR/seen"\n')
    assert pushed(guarded, root, None).returncode != 0
    wrong = pushed(guarded, root, "Bearer another-token-0123456789")
    assert wrong.returncode != 0
    assert git(bare, "for-each-ref") == ""
    right = pushed(guarded, root, f"Bearer {TOKEN}")
    assert right.returncode == 0, right.stderr
    seen = (bare / "seen").read_text() + repr(guarded.told) + repr(vars(guarded)) + wrong.stderr
    assert "PATH=" in seen and "git" in seen and TOKEN not in seen
    assert api(guarded, "/activity").json()[0]["ref"] == "refs/heads/main"


@pytest.mark.parametrize("path", ["info/refs?service=git-receive-pack", "git-receive-pack"])
def test_both_halves_of_a_push_are_guarded(guarded: WitnessServer, path: str) -> None:
    url = f"{guarded.remote(NAME)}/{path}"
    ask = requests.get if "?" in path else requests.post
    assert ask(url, timeout=10).status_code == 401
    assert ask(url, timeout=10).headers["WWW-Authenticate"].startswith("Basic realm=")
    assert ask(url, headers={"Authorization": "Basic !"}, timeout=10).status_code == 401
    assert ask(url, auth=("ada", "wrong"), timeout=10).status_code == 401
    assert ask(url, auth=("ada", TOKEN), timeout=10).status_code in (200, 415)


def test_a_private_server_asks_readers_too(private: WitnessServer) -> None:
    for path in (f"/api/v3/repos/{NAME}", f"/witness/{NAME}/log", f"/{NAME}.git/info/refs?service=git-upload-pack"):
        assert requests.get(private.url + path, timeout=10).status_code == 401
        assert requests.get(private.url + path, auth=(TOKEN, ""), timeout=10).status_code == 200
    assert requests.get(f"{private.url}/api/v3/repos/lab/none", timeout=10).status_code in (401, 404)
    assert requests.get(f"{private.url}/witness/key", timeout=10).text.strip() == private.key
    with pytest.raises(StatusError, match="the server refused") as refused:
        fetch_log(private.url, NAME)
    assert TOKEN not in refused.value.diagnostics()
    assert fetch_log(private.url, NAME, token=TOKEN)[0] == b""
    assert GitHubClient(f"{private.url}/api/v3", NAME, TOKEN).repository_id() == private.repository(NAME).id


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "with a line\nbreak 0123456789", "töken-0123456789-0123"])
def test_a_token_that_cannot_serve_is_refused(token: str) -> None:
    with pytest.raises(WitnessError, match="16 or more printable ASCII") as refused:
        Gate(token)
    assert not token or token not in refused.value.diagnostics()


def test_strangers_push_only_where_it_was_said() -> None:
    check_exposure("127.0.0.1", token=False, open_to_all=False)
    check_exposure("::1", token=False, open_to_all=False)
    check_exposure("192.0.2.1", token=True, open_to_all=False)
    check_exposure("0.0.0.0", token=False, open_to_all=True)
    for host, url in (("0.0.0.0", None), ("witness", None), ("::", None), ("127.0.0.1", "https://witness.example")):
        with pytest.raises(WitnessError, match="could push"):
            check_exposure(host, token=False, open_to_all=False, url=url)
    with pytest.raises(WitnessError, match="needs a token"):
        Gate(None, private=True)


# --- hostile requests ---------------------------------------------------------


def raw(server: WitnessServer, method: str, path: str, body: bytes = b"", **headers: str) -> http.client.HTTPResponse:
    """A request whose path goes out as it stands."""
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in ({"Content-Length": str(len(body))} | headers).items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders(body)
    answer = connection.getresponse()
    answer.text = answer.read().decode()  # type: ignore[attr-defined]
    connection.close()
    return answer


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/witness/../../key",
        "/witness/..%2f..%2fkey/x/log",
        "/witness/lab/..%2f..%2f..%2fkey%00/log",
        "/witness/lab/.git/log",
        "/witness/-lab/study/log",
        "/witness//study/log",
        "/lab/../lab/study.git/info/refs?service=git-upload-pack",
        "/lab/study.git/../../../key",
        "/lab/study.git/HEAD",
        "/lab/study.git/config",
        "/lab/study.git/objects/info/packs",
        "/lab/study.git/trap-witness/push-log.jsonl",
        "/lab/study.git/info/refs",
        "/lab/study.git/info/refs?service=git-upload-archive",
        "/lab/study.git/info/refs?service=git-upload-pack&x=1",
        "/lab/study/info/refs?service=git-upload-pack",
        "/lab/link.git/info/refs?service=git-upload-pack",
        "/linked/study.git/info/refs?service=git-upload-pack",
        "/api/v3/repos/lab/study/compare/a...b",
        "/key",
        "/repositories/lab/study.git/info/refs?service=git-upload-pack",
    ],
)
def test_no_path_leads_out_of_the_repositories(server: WitnessServer, path: str, tmp_path: Path) -> None:
    folder = server.folder.repositories
    for link, target in ((folder / "lab/link.git", folder / "lab/study.git"), (folder / "linked", folder / "lab")):
        if not link.is_symlink():
            link.symlink_to(target)
    answer = raw(server, "GET", path)
    assert answer.status == 404
    assert "PRIVATE" not in answer.text and str(folder) not in answer.text  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/"),
        ("DELETE", f"/witness/{NAME}/log"),
        ("PUT", f"/api/v3/repos/{NAME}"),
        ("GET", f"/{NAME}.git/git-receive-pack"),
        ("POST", f"/{NAME}.git/info/refs?service=git-upload-pack"),
    ],
)
def test_other_methods_are_refused(server: WitnessServer, method: str, path: str) -> None:
    assert raw(server, method, path).status == 405


def test_head_has_no_body(server: WitnessServer) -> None:
    answer = raw(server, "HEAD", f"/witness/{NAME}/log")
    assert (answer.status, answer.text) == (200, "")  # type: ignore[attr-defined]
    assert int(answer.headers["Content-Length"]) == len(fetch_log(server.url, NAME)[0])


def test_a_hostile_host_stands_in_no_link(server: WitnessServer) -> None:
    answer = raw(server, "GET", f"/api/v3/repos/{NAME}/activity?per_page=1", Host='x"><script>')
    assert answer.status == 200 and "script" not in answer.headers["Link"]


def test_what_is_too_large_is_refused(server: WitnessServer, tmp_path: Path) -> None:
    large = b"0" * 300_001
    assert raw(server, "POST", f"/{NAME}.git/git-receive-pack", large).status == 413
    piecemeal = requests.post(f"{server.remote(NAME)}/git-receive-pack", data=iter([large]), timeout=10)
    assert piecemeal.status_code == 413
    assert raw(server, "GET", "/", X_Large="x" * 70_000).status == 431
    root = working_tree(tmp_path / "study")
    (root / "large").write_bytes(bytes(range(256)) * 2000)
    git(root, "add", "large")
    git(root, "commit", "-q", "-m", "large")
    command = ["git", "-c", "core.compression=0", "push", "-q", server.remote(NAME), "HEAD:large"]
    before = server.repository(NAME).log_path.read_bytes()
    assert subprocess.run(command, cwd=root, capture_output=True).returncode != 0
    assert server.repository(NAME).log_path.read_bytes() == before


def test_a_large_question_for_a_clone_is_refused(server: WitnessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.witness.server.git_backend.MAX_FETCH_REQUEST_BYTES", 3)
    assert raw(server, "POST", f"/{NAME}.git/git-upload-pack", b"0000").status == 413


def test_a_push_compressed_once_more_is_refused(server: WitnessServer) -> None:
    assert raw(server, "POST", f"/{NAME}.git/git-receive-pack", Content_Encoding="gzip").status == 415


def test_rubbish_for_a_push_changes_nothing(server: WitnessServer) -> None:
    before = server.repository(NAME).log_path.read_bytes()
    for body in (b"", b"0000", b"rubbish", b"ffff" + b"x" * 1000, b"0" * 250_000):
        assert raw(server, "POST", f"/{NAME}.git/git-receive-pack", body).status in (200, 400, 415, 500)
        assert raw(server, "POST", f"/{NAME}.git/git-upload-pack", body).status in (200, 400, 415, 500)
    assert server.repository(NAME).log_path.read_bytes() == before
    assert api(server).status_code == 200


def test_a_push_broken_off_leaves_nothing(server: WitnessServer) -> None:
    bare = server.repository(NAME).path
    before = sorted(bare.rglob("*"))
    parts = urlsplit(server.url)
    for head in ("Content-Length: 100000", "Transfer-Encoding: chunked"):
        with socket.create_connection((str(parts.hostname), parts.port or 0)) as connection:
            request = f"POST /{NAME}.git/git-receive-pack HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n"
            connection.sendall(request.encode() + b"ffff\r\n" + b"x" * 5000)
    assert api(server).status_code == 200
    assert sorted(bare.rglob("*")) == before


def test_a_client_that_leaves_ends_its_git(
    server: WitnessServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "git"
    slow.write_text(f"#!/bin/sh\nprintf 'Status: 200 OK\\r\\n\\r\\nPACK'\necho $$ >{tmp_path}/pid\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setattr("registry.witness.server.git_backend.shutil.which", lambda *_, **__: str(slow))
    environ = {"REQUEST_METHOD": "POST", "wsgi.input": io.BytesIO(b"0000"), "CONTENT_LENGTH": "4"}
    answer = serve_git(server.repository(NAME), server.folder.repositories, "git-upload-pack", environ)
    while not (tmp_path / "pid").exists() or not (pid := (tmp_path / "pid").read_text().strip()):
        time.sleep(0.001)
    assert answer.status == 200
    answer.body.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_a_failure_tells_the_client_one_sentence(server: WitnessServer) -> None:
    server.folder.create("lab/broken")
    log = server.repository("lab/broken").log_path
    log.unlink()
    for path in ("/witness/lab/broken/log", "/api/v3/repos/lab/broken/activity"):
        answer = raw(server, "GET", path)
        assert answer.status == 500
        text: Any = answer.text  # type: ignore[attr-defined]
        assert "the witness failed" in text and "Traceback" not in text and str(log) not in text
    log.write_bytes(b"rubbish\n")
    assert raw(server, "GET", "/api/v3/repos/lab/broken/activity").status == 503
    assert any("lab/broken" in line for line in server.told)


def test_the_time_of_a_row_is_the_server_s(server: WitnessServer) -> None:
    last = parse_log(fetch_log(server.url, NAME)[0], NAME)[-1]
    assert timedelta(0) <= datetime.now(UTC) - datetime.fromisoformat(last.timestamp) < timedelta(minutes=5)

"""How long `trapkit verify` takes offline on a study of 500 registrations.

`python benchmarks/verify_offline.py [--registrations 500] [--rows 10000] [--json]`.
The study is made in a temporary folder, by `git fast-import`: registrations of
e2 under ids of their own, with signed tags, rounds of a drand chain of the
script's own, and GitHub's answers, whose activity rows are the pushes of the
study's commits. It has no runs, so exit code 3 is right. `--keep DIR` leaves
the study there, and one that is there already is verified again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pyblst import BlstP2Element

from artifacts.records import RECORDS_VERSION
from registry.beacon import BeaconPromise
from registry.canonical import sha256_hex
from registry.draft import load_draft
from registry.reading_catalogue import READINGS_VERSION
from registry.registration import Calibration, freeze
from registry.ssh_signature import public_text, sign
from registry.study_settings import STUDY_FILE, BeaconChoice, GitHubRepository, StudySettings, settings_text
from registry.tags import tag_payload
from registry.timestamps import timestamp_of
from registry.witness import drand_signature
from registry.witness.archive import beacon_path, github_answers_path, tag_stem
from registry.witness.drand import chain_hash, future_round
from registry.witness.github_answers import Answer
from registry.witness.github_archive import archive_bytes
from registry.witness.policy import DrandChain
from verifier.golden import golden_digest

WANTED_S = 10.0
GENESIS_S = 1_700_000_000
EVERY_S = 3600
SECRET = 0x1234_5678_9ABC_DEF0
TAGGER = "Bench <bench@localhost>"
GITHUB = GitHubRepository("octo/study", 1296269)
GROUP = "00" * 32


def make_chain() -> DrandChain:
    """A chain whose secret key is known here."""
    key = BlstP2Element.uncompress(bytes.fromhex(drand_signature.GENERATOR)).scalar_mul(SECRET).compress().hex()
    bare = DrandChain("", key, 3, GENESIS_S, ())
    return replace(bare, chain_hash=chain_hash(bare, GROUP, "bench"))


def round_answer(number: int) -> bytes:
    """What the chain's servers would answer for a round."""
    signature = drand_signature.message_point(number).scalar_mul(SECRET).compress().hex()
    randomness = hashlib.sha256(bytes.fromhex(signature)).hexdigest()
    return json.dumps({"round": number, "randomness": randomness, "signature": signature}).encode()


class Importer:
    """`git fast-import` on one branch, asked for each commit's id."""

    def __init__(self, root: Path) -> None:
        command = ["git", "fast-import", "--quiet", "--done"]
        self._process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._commits = 0

    def commit(self, time_s: int, files: dict[str, bytes]) -> str:
        """Commit files on `main`; the commit's id."""
        self._commits += 1
        parts = [f"commit refs/heads/main\nmark :{self._commits}\ncommitter {TAGGER} {time_s} +0000\n".encode()]
        parts.append(b"data 6\nchange")
        for path, data in files.items():
            parts.append(f"\nM 100644 inline {path}\ndata {len(data)}\n".encode() + data)
        self._write(*parts, f"\nget-mark :{self._commits}\n".encode())
        assert self._process.stdout
        return self._process.stdout.readline().decode().strip()

    def tag(self, name: str, commit: str, time_s: int, message: bytes) -> None:
        """An annotated tag with a message that is signed already."""
        head = f"tag {name}\nfrom {commit}\ntagger {TAGGER} {time_s} +0000\ndata {len(message)}\n"
        self._write(head.encode(), message, b"\n")

    def _write(self, *parts: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(b"".join(parts))
        self._process.stdin.flush()

    def done(self) -> None:
        """End the import; exits where git refused it."""
        self._write(b"done\n")
        if self._process.wait():
            sys.exit("git fast-import failed")


@dataclass(frozen=True)
class Push:
    """One row of GitHub's activity to be."""

    number: int
    time_s: int
    before: str
    after: str

    def row(self) -> dict[str, object]:
        """As GitHub serves it, with the fields that are read."""
        return {
            "id": self.number,
            "node_id": f"PSH_{self.number}",
            "before": self.before,
            "after": self.after,
            "ref": "refs/heads/main",
            "timestamp": timestamp_of(self.time_s),
            "activity_type": "push",
            "actor": {"login": "octo", "id": 1, "type": "User", "site_admin": False},
        }


def answers(pushes: list[Push]) -> bytes:
    """GitHub's answers as a study archives them."""
    numbered = json.dumps({"id": GITHUB.repository_id, "full_name": GITHUB.repository, "private": False})
    rows = json.dumps([push.row() for push in reversed(pushes)])
    base = f"/repos/{GITHUB.repository}"
    asked = [Answer(base, 200, numbered), Answer(f"{base}/activity?per_page=100", 200, rows)]
    return archive_bytes(GITHUB.api, GITHUB.repository, int(GITHUB.repository_id or 0), asked)


def frozen(number: int, promise: BeaconPromise, calibration: str) -> bytes:
    """Registration `number`: number 0 is the calibration, the others are e2's,
    each with an id of its own; they quote `calibration`, its digest.
    """
    rules = Path(__file__).resolve().parent.parent / "rules"
    name = "all-miss-sglang-300k" if number == 0 else "e2"
    text = (rules / f"{name}.yaml").read_bytes()
    if number:
        text = text.replace(b"\nid: e2\n", f"\nid: e2-{number}\n".encode())
    quoted = Calibration("all-miss-sglang-300k", 1, calibration, 17_000.0, 0.05, {})
    return freeze(
        load_draft(text, name),
        1,
        beacon=promise,
        calibration=quoted if number else None,
        rehearsal=None,
        readings={"version": READINGS_VERSION, "golden_sha256": golden_digest()},
        records_version=RECORDS_VERSION,
        claim="pre-registered",
        supersedes=None,
    )


def make_study(root: Path, registrations: int, rows: int) -> None:
    """The study, and `policy.yaml` beside it."""
    chain, key = make_chain(), Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"bench").digest())
    settings = StudySettings(
        "study", "origin", "main", ("github",), public_text(key), False, BeaconChoice(chain.name, 300.0), GITHUB
    )
    root.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, check=True)
    importer, pushes = Importer(root), [Push(0, GENESIS_S, "0" * 40, "0" * 40)]

    def push(time_s: int, files: dict[str, bytes]) -> str:
        commit = importer.commit(time_s, files)
        pushes.append(Push(len(pushes), time_s, pushes[-1].after, commit))
        return commit

    push(GENESIS_S, {STUDY_FILE: settings_text(settings).encode()})
    each, archived, calibration = rows // registrations, 1, ""
    for number in range(registrations):
        now_s = GENESIS_S + (number + 1) * EVERY_S
        promise = BeaconPromise(chain.name, future_round(chain, now_s, 300.0))
        data = frozen(number, promise, calibration)
        calibration = calibration or sha256_hex(data)
        identity = json.loads(data)["id"]
        commit, tag = push(now_s, {f"registrations/{identity}.v1.json": data}), f"reg/{identity}/v1"
        payload = tag_payload(commit, tag, f"{TAGGER} {now_s} +0000", "a registration", sha256_hex(data))
        importer.tag(tag, commit, now_s, payload.partition(b"\n\n")[2] + sign(key, payload))
        for note in range(each - 2):
            push(now_s + 1 + note, {f"notes/{number}.txt": f"{note}\n".encode()})
        new, archived = pushes[archived:], len(pushes)
        evidence = {
            beacon_path(chain.chain_hash, promise.round): round_answer(promise.round),
            github_answers_path(tag_stem(tag)): answers(new),
        }
        push(now_s + 600, evidence)
    importer.done()
    (root / STUDY_FILE).write_text(settings_text(settings))
    pinned = {name: getattr(chain, name) for name in ("chain_hash", "public_key", "period_s", "genesis_s")}
    policy = {"schema": "trap-policy-1", "drand_chains": [pinned | {"urls": ["https://localhost"]}]}
    root.with_name("policy.yaml").write_text(json.dumps(policy))


def measure(root: Path) -> dict[str, float | int | str]:
    """One `trapkit verify --json`, as a user runs it."""
    program = str(Path(sys.executable).with_name("trapkit").resolve())
    command = [program, "verify", "--json", "--policy", str(root.with_name("policy.yaml"))]
    before, start = _children_s(), time.perf_counter()
    done = subprocess.run(command, cwd=root, capture_output=True)
    wall_s = time.perf_counter() - start
    if done.returncode != 3:
        sys.exit(f"exit code {done.returncode}: {done.stderr.decode()[-2000:] or done.stdout.decode()[-2000:]}")
    report = json.loads(done.stdout)
    return {
        "wall_s": wall_s,
        "cpu_s": _children_s() - before,
        "peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
        "proofs": report["proof_count"],
        "failures": report["failure_count"],
        "report_sha256": hashlib.sha256(done.stdout).hexdigest(),
    }


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print every round and the best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--registrations", type=int, default=500)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = (asked.keep or Path(temporary)).resolve() / "study"
        start = time.perf_counter()
        if not root.exists():
            make_study(root, asked.registrations, asked.rows)
        made_s = time.perf_counter() - start
        rounds = [measure(root) for _ in range(asked.rounds)]
    best = min(rounds, key=lambda took: took["wall_s"])
    if asked.json:
        load = os.getloadavg()[0]
        print(json.dumps({**best, "made_s": made_s, "load_1m": load, "rounds": rounds}, indent=2))
        return
    print(f"trapkit verify offline, {best['proofs']} registrations without runs, made in {made_s:.1f} s:")
    print(f"best {best['wall_s']:.2f} s of {', '.join(format(took['wall_s'], '.2f') for took in rounds)}")
    print(f"{best['cpu_s']:.2f} s of CPU, peak {best['peak_mb']:.0f} MB; at most {WANTED_S:g} s is wanted")


if __name__ == "__main__":
    main()

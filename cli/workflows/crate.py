"""Exports one registration of a study as a research object."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from pathlib import Path
from tempfile import TemporaryDirectory

from artifacts.attempt import RUN_FILE, attempt_folder, sha256_file
from artifacts.reader import RunRecord, read_run_record
from cli.workflows.verify import verify
from ledger.crate import CrateContents, CrateFile, CrateRun, write_crate
from registry.bundle import scripts_path
from registry.canonical import sha256_hex
from registry.errors import RecordError, RegistrationError
from registry.plain_text import markdown, plain
from registry.predictions import file_of
from registry.study import find_root
from registry.timestamps import parse_timestamp
from verifier.check import Outcome
from verifier.evidence import StudyEvidence, TagEvidence
from verifier.report import Proof, StudyReport, dumps, report_json
from verifier.run_report import RunReport

NO_LICENSE = "No license is stated."


@dataclass(frozen=True)
class Exported:
    """The crate's metadata file, how many runs it holds, the refuted ones that
    it leaves out, and the verification.
    """

    metadata: Path
    runs: int
    refuted: tuple[str, ...]
    report: StudyReport


def export_crate(
    start: Path, identity: str, out: Path, *, runs: Path | None = None, license_text: str = NO_LICENSE
) -> Exported:
    """Verify the latest version of a registration and write it, its predictions,
    the runs that decided and the verification to a new folder.

    RecordError where the folder holds something, RegistrationError for an
    unknown id or one whose frozen file cannot be read.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RecordError("the folder holds something already", where=str(out), remedy="name a new one")
    report, evidence = verify(start, identity, runs, live=False)
    found = [proof for proof in report.proofs if proof.kind == "registration" and proof.tag.split("/")[1] == identity]
    proof = found[-1]
    source = runs.resolve() if runs else find_root(start) / "runs"
    with TemporaryDirectory() as folder:
        contents = _contents(proof, report, evidence, source, Path(folder), license_text)
        return Exported(write_crate(contents, out), len(contents.runs), _refuted(proof), report)


def _refuted(proof: Proof) -> tuple[str, ...]:
    """Complete runs whose files are not what was pushed, or that show something else than was promised."""
    return tuple(r.run.path for r in proof.runs if r.check and r.check.outcome is Outcome.REFUTED)


def _contents(
    proof: Proof, report: StudyReport, evidence: StudyEvidence, runs: Path, folder: Path, license_text: str
) -> CrateContents:
    registration = proof.registration
    frozen = _frozen(evidence.tags, proof.tag)
    if registration is None or frozen is None:
        raise RegistrationError("the frozen registration cannot be read", where=proof.tag)
    predicted = _frozen(evidence.predictions, proof.tag.replace("reg/", "pred/", 1))
    scripts = next((tag.scripts for tag in evidence.tags if tag.name == proof.tag), None)
    refuted = _refuted(proof)
    complete = [run for run in proof.runs if run.state == "complete" and run.run.path not in refuted]
    made = [_run(run, registration.folder, runs) for run in complete]
    times = [run.ended_at for run in made]
    words = f"Verdict: {plain(proof.verdict.words)}. {report.last_line}, by trapkit verify."
    if refuted:
        words += f" {len(refuted)} refuted runs are left out."
    verification = dumps(report_json(report)).encode() + b"\n"
    return CrateContents(
        study=plain(report.study),
        title=plain(registration.draft.title),
        question=plain(registration.draft.question),
        words=words,
        published_at=proof.push.time if proof.push else max(times, default="1970-01-01T00:00:00Z"),
        license=license_text,
        trapkit_version=installed_version("trapkit"),
        version=registration.version,
        readme=_kept(folder, "README.md", _readme(proof, words).encode()),
        registration=_kept(folder, registration.file, frozen),
        scripts=_kept(folder, scripts_path(sha256_hex(scripts)), scripts) if scripts else None,
        predictions=_kept(folder, file_of(registration), predicted) if predicted else None,
        verification=_kept(folder, "verification.json", verification),
        runs=made,
    )


def _readme(proof: Proof, words: str) -> str:
    draft = proof.registration.draft if proof.registration else None
    title, question = (markdown(draft.title), markdown(draft.question)) if draft else ("", "")
    return f"""# {title}

{question}

{markdown(words)}

`ro-crate-metadata.json` describes every file here (Workflow Run RO-Crate). The registration `{proof.tag}` was frozen
before its runs; that it was is proven by its repository, in a clone of your own: `trapkit verify`. What lies here was
verified when it was exported, and is a copy.
"""


def _frozen(tags: tuple[TagEvidence, ...], name: str) -> bytes | None:
    return next((tag.frozen for tag in tags if tag.name == name), None)


def _kept(folder: Path, path: str, data: bytes) -> CrateFile:
    """These bytes as a file of the crate, whatever lies in the study's working tree."""
    source = folder / path
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_bytes(data)
    return CrateFile(path, source, hashlib.sha256(data).hexdigest(), len(data))


def _run(report: RunReport, registration: str, runs: Path) -> CrateRun:
    assert report.attempt is not None
    folder = attempt_folder(runs, registration, report.run.path, report.attempt)
    record = read_run_record(folder)
    return CrateRun(
        path=report.run.path,
        arm=report.run.arm,
        rate=report.run.rate,
        seed=report.run.seed,
        simulated=report.simulated is True,
        engine=plain(report.engine or "an engine that is not named"),
        started_at=_time(record, "started_at", folder),
        ended_at=_time(record, "ended_at", folder),
        files=_files(record, folder, f"runs/{registration}/{report.run.path}/attempt-{report.attempt}"),
    )


def _time(record: RunRecord, name: str, folder: Path) -> str:
    value = record.fields.get(name)
    if not isinstance(value, str) or not parse_timestamp(value):
        raise RecordError(f"run.json has no {name}", where=str(folder / RUN_FILE))
    return value


def _files(record: RunRecord, folder: Path, path: str) -> list[CrateFile]:
    """run.json and the tables; RecordError where one is not what was verified."""
    digests = {RUN_FILE: record.sha256, **record.files}
    found = []
    for name, sha256 in digests.items():
        file = folder / name
        if file.is_symlink() or sha256_file(file) != sha256:
            raise RecordError("a file changed while it was exported", where=str(file))
        found.append(CrateFile(f"{path}/{name}", file, sha256, file.stat().st_size))
    return found

"""A registration, its runs and their verification as a research object.

Workflow Run RO-Crate 0.5 over RO-Crate 1.1: the frozen registration is the workflow,
each run that decided is an action with what it made, and the verification is an
action of this program. The same files give the same bytes: no wall clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts.records import SCHEMAS
from registry.timestamps import moment

if TYPE_CHECKING:
    from rocrate.model.entity import Entity
    from rocrate.rocrate import ROCrate

CRATE_VERSION = "1.1"
PROFILES = (
    ("https://w3id.org/ro/wfrun/process/0.5", "Process Run Crate", "0.5"),
    ("https://w3id.org/ro/wfrun/workflow/0.5", "Workflow Run Crate", "0.5"),
    ("https://w3id.org/workflowhub/workflow-ro-crate/1.0", "Workflow RO-Crate", "1.0"),
)
TERMS = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
"""Beside RO-Crate's own, named here so that nobody has to fetch another context."""

_MEDIA = {".json": "application/json", ".parquet": "application/vnd.apache.parquet", ".md": "text/markdown"}
_BIOSCHEMAS = "https://bioschemas.org/profiles/{}/1.0-RELEASE"
_INPUTS = {"arm": "Text", "rate": "Number", "seed": "Integer"}
_TABLES = {
    "turns": "one row a turn that became due",
    "sessions": "one row a session that arrived",
    "gate": "the gate's log",
    "engine": "the engine's own gauges and counters",
}
assert set(_TABLES) == set(SCHEMAS)


@dataclass(frozen=True)
class CrateFile:
    """A file of the crate: its place there, where it lies now, its SHA-256 and size in bytes."""

    path: str
    source: Path
    sha256: str
    size: int


@dataclass(frozen=True)
class CrateRun:
    """A run that decided: when it ran by its own clock, and its files, run.json first."""

    path: str
    arm: str
    rate: float | None
    seed: int
    simulated: bool
    engine: str
    started_at: str
    ended_at: str
    files: Sequence[CrateFile]


@dataclass(frozen=True)
class CrateContents:
    """What a crate holds; `published_at` is when a witness saw the registration
    pushed, else when its last run ended. `words` say what came out; `version` is the registration's.
    """

    study: str
    title: str
    question: str
    words: str
    published_at: str
    license: str
    trapkit_version: str
    version: int
    readme: CrateFile
    registration: CrateFile
    scripts: CrateFile | None
    predictions: CrateFile | None
    verification: CrateFile
    runs: Sequence[CrateRun]


def write_crate(contents: CrateContents, folder: Path) -> Path:
    """Write the crate to a folder; its metadata file."""
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version=CRATE_VERSION)
    crate.metadata.extra_terms.update(TERMS)
    profiles = [_entity(crate, name, "CreativeWork", name=words, version=version) for name, words, version in PROFILES]
    simulated = any(run.simulated for run in contents.runs)
    crate.name = f"{contents.study}: {contents.title}"
    crate.description = f"{contents.question} {contents.words}" + (" Simulated runs." if simulated else "")
    crate.datePublished = _to_milliseconds(contents.published_at)
    crate.license = _license(crate, contents.license)
    crate.root_dataset["conformsTo"] = profiles
    readme = _file(crate, contents.readme, "what this is, and how to check it")
    readme["about"] = crate.root_dataset
    program = _entity(
        crate, "#trapkit", "SoftwareApplication", name="trapkit",
        softwareVersion=contents.trapkit_version,
    )  # fmt: skip
    workflow = _workflow(crate, contents)
    inputs = {name: _parameter(crate, name, kind) for name, kind in _INPUTS.items()}
    outputs = {name: _parameter(crate, name, "File", words) for name, words in _TABLES.items()}
    workflow["input"], workflow["output"] = list(inputs.values()), list(outputs.values())
    actions = [_run_action(crate, workflow, run, inputs, outputs) for run in contents.runs]
    actions.append(_verification(crate, program, workflow, contents))
    crate.root_dataset["mentions"] = actions
    crate.write(folder)
    return folder / "ro-crate-metadata.json"


def _to_milliseconds(time: str) -> str:
    """RO-Crate times have milliseconds at most, and Process Run Crate's an offset in digits."""
    return moment(time).isoformat(timespec="milliseconds")


def _license(crate: ROCrate, text: str) -> Any:
    """A licence by its address is an entity; any other text stands as it is."""
    if not text.startswith("https://"):
        return text
    return _entity(crate, text, "CreativeWork", name=text.rpartition("/")[2] or text)


def _entity(crate: ROCrate, identifier: str, kind: str, **properties: Any) -> Entity:
    from rocrate.model.contextentity import ContextEntity

    return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))


def _file(crate: ROCrate, file: CrateFile, name: str, **properties: Any) -> Entity:
    known = {
        "name": name,
        "sha256": file.sha256,
        "contentSize": str(file.size),
        "encodingFormat": _MEDIA[Path(file.path).suffix],
    }
    return crate.add_file(str(file.source), file.path, properties={**known, **properties})


def _workflow(crate: ROCrate, contents: CrateContents) -> Entity:
    from rocrate.model.computerlanguage import ComputerLanguage

    language = ComputerLanguage(
        crate,
        "#registration",
        properties={"name": "trapkit registration, rules in CEL", "url": {"@id": "https://cel.dev"}},
    )
    crate.add(language)
    file = contents.registration
    properties = {
        "name": f"registration: {contents.title}",
        "description": contents.question,
        "version": str(contents.version),
        "conformsTo": {"@id": _BIOSCHEMAS.format("ComputationalWorkflow")},
        "sha256": file.sha256,
        "contentSize": str(file.size),
        "encodingFormat": _MEDIA[".json"],
    }
    workflow = crate.add_workflow(str(file.source), file.path, properties=properties, main=True, lang=language)
    crate.metadata["conformsTo"] = [{"@id": f"https://w3id.org/ro/crate/{CRATE_VERSION}"}, {"@id": PROFILES[2][0]}]
    return workflow


def _parameter(crate: ROCrate, name: str, kind: str, words: str = "") -> Entity:
    properties = {"name": name, "additionalType": kind, "valueRequired": kind == "File" or name != "rate"}
    if words:
        properties |= {"description": words, "encodingFormat": _MEDIA[".parquet"]}
    return _entity(
        crate,
        f"#parameter-{name}",
        "FormalParameter",
        conformsTo={"@id": _BIOSCHEMAS.format("FormalParameter")},
        **properties,
    )


def _run_action(
    crate: ROCrate, workflow: Entity, run: CrateRun, inputs: dict[str, Entity], outputs: dict[str, Entity]
) -> Entity:
    values = []
    for name, parameter in inputs.items():
        value = getattr(run, name)
        if value is not None:
            values.append(
                _entity(
                    crate, f"#{run.path}/{name}", "PropertyValue", name=name, value=value, exampleOfWork=parameter
                )
            )  # fmt: skip
    record, *tables = run.files
    results = [_file(crate, record, f"record of the run {run.path}")]
    for table in tables:
        kind = Path(table.path).stem
        results.append(_file(crate, table, f"{kind} of the run {run.path}", exampleOfWork=outputs[kind]))
    words = f"{'simulated ' if run.simulated else ''}run {run.path}"
    return crate.add_action(
        workflow,
        identifier=f"#run-{run.path}",
        object=values,
        result=results,
        properties={
            "name": words,
            "description": f"Made on {run.engine}; times are by the run's own clock.",
            "startTime": _to_milliseconds(run.started_at),
            "endTime": _to_milliseconds(run.ended_at),
            "actionStatus": "http://schema.org/CompletedActionStatus",
        },
    )


def _verification(crate: ROCrate, program: Entity, workflow: Entity, contents: CrateContents) -> Entity:
    judged = [workflow]
    if contents.scripts:
        judged.append(_file(crate, contents.scripts, "session scripts: the registration's workload, from a trace"))
    if contents.predictions:
        judged.append(_file(crate, contents.predictions, "predictions, frozen before the runs"))
    judged += [crate.dereference(file.path) for run in contents.runs for file in run.files]
    report = _file(crate, contents.verification, f"verification: {contents.words}")
    return crate.add_action(
        program,
        identifier="#verification",
        object=judged,
        result=report,
        properties={
            "name": "verification of the registration and its runs",
            "description": contents.words,
            "actionStatus": "http://schema.org/CompletedActionStatus",
        },
    )

"""study.yaml: what a study says of itself, never what an auditor trusts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from registry.engine_setup import EngineSetup, setup_of
from registry.errors import DraftError
from registry.executors import Executors, executors_of
from registry.schema_check import check
from registry.strict_yaml import Document, load

STUDY_FILE = "study.yaml"
GITHUB_API = "https://api.github.com"
DEFAULT_MARGIN_S = 300.0


@dataclass(frozen=True)
class BeaconChoice:
    """The chain that plans are drawn from, and how far ahead its rounds lie."""

    chain: str
    margin_s: float = DEFAULT_MARGIN_S


@dataclass(frozen=True)
class GitHubRepository:
    """The study's repository on GitHub; `repository_id` survives a rename."""

    repository: str
    repository_id: int | None = None
    api: str = GITHUB_API


@dataclass(frozen=True)
class ServedRepository:
    """The study's repository on a witness server, whose `key` signs its log."""

    url: str
    repository: str
    key: str


@dataclass(frozen=True)
class StudySettings:
    """What study.yaml says; field names are its keys."""

    name: str
    remote: str
    branch: str
    witnesses: tuple[str, ...]
    signing_key: str
    commit_runs: bool
    beacon: BeaconChoice = field(default=BeaconChoice("local"))
    github: GitHubRepository | None = None
    server: ServedRepository | None = None
    timestamp_authorities: tuple[str, ...] = ()
    engines: dict[str, EngineSetup] = field(default_factory=dict)
    executors: Executors = field(default_factory=Executors)


def parse_settings(text: bytes, name: str = STUDY_FILE) -> StudySettings:
    """Read study.yaml strictly; raises DraftError or ManyErrors."""
    document = load(text, name)
    check(document, "study")
    value = {key: entry for key, entry in document.value.items() if key != "schema"}
    _check_sections(document, value)
    beacon = value.pop("beacon", {"chain": default_chain(value["witnesses"])})
    engines = value.pop("engines", {})
    executors = executors_of(value.pop("executors", {}), document.where(("executors", "local")))
    github, server = value.pop("github", None), value.pop("server", None)
    return StudySettings(
        **{
            **value,
            "witnesses": tuple(value["witnesses"]),
            "timestamp_authorities": tuple(value.get("timestamp_authorities", ())),
        },
        beacon=BeaconChoice(**beacon),
        github=GitHubRepository(**github) if github else None,
        server=ServedRepository(**server) if server else None,
        engines={name: setup_of(entry, document.where(("engines", name))) for name, entry in engines.items()},
        executors=executors,
    )


def default_chain(witnesses: list[str]) -> str:
    """The strongest draw that the witnesses allow without a network, or drand."""
    if "local" in witnesses:
        return "local"
    return "server" if "server" in witnesses else "quicknet"


def _check_sections(document: Document, value: dict[str, Any]) -> None:
    """Every witness that is named has its section."""
    sections = {"github": "github", "server": "server", "timestamps": "timestamp_authorities"}
    for witness in value["witnesses"]:
        section = sections.get(witness)
        if section and not value.get(section):
            raise DraftError(
                f"the witness {witness} needs the section {section}",
                where=document.where(("witnesses",)),
                remedy=f"add {section}: ..., see docs/provenance.md",
            )
    chain = value.get("beacon", {}).get("chain")
    if chain in ("local", "server") and chain not in value["witnesses"]:
        raise DraftError(
            f"the beacon is the {chain} witness's, which is not among the witnesses",
            where=document.where(("beacon", "chain")),
            remedy="name the witness, or another chain",
        )


def settings_text(settings: StudySettings) -> str:
    """study.yaml for these settings."""
    lines = [
        "# A trap study. What an auditor trusts never comes from this file.",
        "schema: trap-study-1",
        f"name: {settings.name}",
        f"remote: {settings.remote}",
        f"branch: {settings.branch}",
        f"witnesses: [{', '.join(settings.witnesses)}]",
    ]
    if settings.beacon.chain != default_chain(list(settings.witnesses)) or settings.beacon.margin_s != DEFAULT_MARGIN_S:
        lines += ["beacon:", f'  chain: "{settings.beacon.chain}"', f"  margin_s: {settings.beacon.margin_s:g}"]
    if settings.github:
        lines += ["github:", f'  repository: "{settings.github.repository}"']
        if settings.github.repository_id is not None:
            lines.append(f"  repository_id: {settings.github.repository_id}")
        if settings.github.api != GITHUB_API:
            lines.append(f'  api: "{settings.github.api}"')
    if settings.server:
        lines += ["server:", f'  url: "{settings.server.url}"', f'  repository: "{settings.server.repository}"']
        lines.append(f'  key: "{settings.server.key}"')
    if settings.timestamp_authorities:
        lines.append("timestamp_authorities:")
        lines += [f'  - "{url}"' for url in settings.timestamp_authorities]
    lines += [f'signing_key: "{settings.signing_key}"', f"commit_runs: {str(settings.commit_runs).lower()}"]
    return "\n".join(lines) + "\n"

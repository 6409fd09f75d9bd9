"""The auditor's policy file: read, checked, and laid over what is built in."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from registry.errors import StudyError
from registry.schema_check import check
from registry.strict_yaml import Document, load
from registry.witness.github_roots import MAX_BYTES, TrustedRoot, read_trusted_root
from registry.witness.policy import BUILT_IN, DrandChain, Policy, TrustedServer
from registry.witness.timestamp_roots import built_in_roots

POLICY_VARIABLE = "TRAP_POLICY"
_MAX_PEM_BYTES = 1_048_576
T = TypeVar("T")


def default_path() -> Path | None:
    """`$TRAP_POLICY`, else `trap/policy.yaml` in the user's config folder if
    it is there.
    """
    if named := os.environ.get(POLICY_VARIABLE):
        return Path(named).expanduser()
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    path = Path(base).expanduser() / "trap" / "policy.yaml"
    return path if path.is_file() else None


def built_in() -> Policy:
    """What is trusted where no policy file says otherwise."""
    return replace(BUILT_IN, timestamp_roots=built_in_roots())


def load_policy(path: Path | None = None, study: Path | None = None) -> Policy:
    """The auditor's policy: the file named, else the default one, else what
    is built in.

    StudyError where it cannot be read, or lies inside the `study` that it is
    to judge; DraftError or ManyErrors for a malformed file.
    """
    path = path or default_path()
    if path is None:
        return built_in()
    if study and study.resolve() in path.resolve().parents:
        raise StudyError(
            "the policy lies inside the study that it is to judge",
            where=str(path),
            remedy="a policy is the auditor's own: keep it elsewhere, and name it with --policy",
        )
    try:
        text = path.read_bytes()
    except OSError as error:
        raise StudyError(
            f"the policy cannot be read: {error.strerror}", where=str(path), remedy="--policy FILE, or TRAP_POLICY"
        ) from None
    document = load(text, str(path))
    check(document, "policy")
    return _policy(document, path)


def _policy(document: Document, path: Path) -> Policy:
    value = document.value
    github = _github_root(path.parent / value["github_trusted_root"]) if "github_trusted_root" in value else None
    base = built_in() if value.get("built_in", True) else Policy((), (), sources=())
    return Policy(
        github_apis=_joined(base.github_apis, value.get("github_apis", [])),
        drand_chains=_joined(base.drand_chains, [_chain(entry) for entry in value.get("drand_chains", [])]),
        witness_servers=_joined(base.witness_servers, [TrustedServer(**s) for s in value.get("witness_servers", [])]),
        timestamp_roots=_joined(
            base.timestamp_roots,
            [_pem(text, path, document.where(("timestamp_roots",))) for text in value.get("timestamp_roots", [])],
        ),
        release_signers=github.signers if github else base.release_signers,
        release_timestamps=github.timestamps if github else base.release_timestamps,
        signing_keys=_joined(base.signing_keys, value.get("signing_keys", [])),
        gh_archive=value.get("gh_archive", base.gh_archive),
        run_clock_allowance_s=float(value.get("run_clock_allowance_s", base.run_clock_allowance_s)),
        sources=(*base.sources, str(path)),
    )


def _github_root(file: Path) -> TrustedRoot:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise StudyError("the trusted root is too large", where=str(file))
        return read_trusted_root(file.read_bytes(), str(file))
    except OSError as error:
        raise StudyError(
            f"GitHub's trusted root cannot be read: {error.strerror}",
            where=str(file),
            remedy="gh attestation trusted-root > FILE, beside the policy",
        ) from None


def _chain(entry: dict[str, object]) -> DrandChain:
    urls = entry["urls"]
    assert isinstance(urls, list)
    return DrandChain(**{**entry, "urls": tuple(urls)})  # type: ignore[arg-type]


def _joined(base: tuple[T, ...], more: list[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*base, *more)))


def _pem(text: str, policy: Path, where: str) -> str:
    """PEM text, from the file beside the policy where it is a name."""
    if "-----BEGIN CERTIFICATE-----" not in text:
        file = policy.parent / text
        try:
            if file.stat().st_size > _MAX_PEM_BYTES:
                raise StudyError("the certificate file is too large", where=str(file))
            text = file.read_text("ascii")
        except (OSError, ValueError):
            raise StudyError(
                "the root certificate cannot be read", where=where, value=text, remedy="a PEM file beside the policy"
            ) from None
    return _checked(text, where)


def _checked(text: str, where: str) -> str:
    from cryptography import x509

    try:
        x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        raise StudyError("not a PEM certificate", where=where, remedy="-----BEGIN CERTIFICATE----- ...") from None
    return text

"""The author's view of what is registered: tags, files, the remote."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import git

from registry.bundle import bundled, scripts_beside
from registry.errors import RegistrationError
from registry.plain_text import without_credentials
from registry.registration import Registration, read_registration
from registry.study import Study
from registry.tags import parse_tag_name


@dataclass(frozen=True)
class Registered:
    """A registration with its tag: the object id, and the frozen bytes; `scripts`
    are those of its sessions where its workload is a trace.
    """

    registration: Registration
    tag_object: str
    data: bytes
    scripts: bytes | None = None

    @property
    def bundle(self) -> bytes:
        """What a process needs to run it."""
        return bundled(self.data, self.scripts)


def versions(repository: git.Repo, identity: str) -> list[Registered]:
    """The registered versions of an id in the local repository, ascending."""
    lines = repository.git.for_each_ref(
        f"refs/tags/reg/{identity}/", "--format=%(refname:strip=2) %(objectname) %(objecttype)"
    )
    found = []
    for line in lines.splitlines():
        name, oid, kind = line.split(" ")
        parsed = parse_tag_name(name)
        if parsed and parsed[0] == identity and kind == "tag":
            path = f"registrations/{identity}.v{parsed[1]}.json"
            data = _bytes(repository, f"{oid}^{{commit}}:{path}")
            commit = f"{oid}^{{commit}}"
            scripts = scripts_beside(data, partial(_file, repository, commit))
            found.append(Registered(read_registration(bundled(data, scripts), path), oid, data, scripts))
    return sorted(found, key=lambda r: r.registration.version)


def _file(repository: git.Repo, commit: str, path: str) -> bytes:
    return _bytes(repository, f"{commit}:{path}")


def _bytes(repository: git.Repo, name: str) -> bytes:
    try:
        oid = repository.git.rev_parse("--verify", "--quiet", name)
    except git.GitCommandError:
        raise RegistrationError("a registration tag without its file, or its session scripts", where=name) from None
    data: bytes = repository.odb.stream(bytes.fromhex(oid)).read()
    return data


def identities(repository: git.Repo) -> list[str]:
    """Every id that has a registration tag, sorted."""
    names = repository.git.for_each_ref("refs/tags/reg/", "--format=%(refname:strip=2)").splitlines()
    return sorted({parsed[0] for name in names if (parsed := parse_tag_name(name))})


def latest(repository: git.Repo, identity: str) -> Registered:
    """The latest version of an id; RegistrationError where there is none."""
    found = versions(repository, identity)
    if not found:
        known = ", ".join(identities(repository)) or "none yet"
        raise RegistrationError(
            "not registered",
            value=identity,
            remedy=f"registered here: {known}; register a rule file first: trapkit register rules/{identity}.yaml",
        )
    return found[-1]


def remote_url(repository: git.Repo, study: Study) -> str:
    """The URL of the study's remote."""
    return next(iter(repository.remote(study.settings.remote).urls))


def remote_tags(repository: git.Repo, study: Study, identity: str) -> dict[str, str]:
    """Registration tags of an id on the remote: name to object id."""
    return tags_on_remote(repository, study, f"reg/{identity}/*")


def tags_on_remote(repository: git.Repo, study: Study, pattern: str) -> dict[str, str]:
    """Tags of a pattern on the remote: name to object id."""
    try:
        listed = str(repository.git.ls_remote("--refs", study.settings.remote, f"refs/tags/{pattern}"))
    except git.GitCommandError as error:
        raise RegistrationError(
            "the remote does not answer",
            where=without_credentials(remote_url(repository, study)),
            value=without_credentials(str(error.stderr).strip()),
            remedy="check the remote, then repeat the command",
        ) from None
    rows = [line.split("\t") for line in listed.splitlines()]
    return {ref.removeprefix("refs/tags/"): oid for oid, ref in rows}


def check_pushed(repository: git.Repo, study: Study, registered: Registered) -> None:
    """RegistrationError unless the remote holds this very tag."""
    registration = registered.registration
    seen = remote_tags(repository, study, registration.id).get(registration.tag)
    if seen is None:
        raise RegistrationError(
            "the registration tag is not on the remote",
            where=registration.tag,
            remedy=f"push it: git push --atomic {study.settings.remote} {study.settings.branch} {registration.tag}",
        )
    if seen != registered.tag_object:
        raise RegistrationError(
            "the remote holds another object under this tag",
            where=registration.tag,
            value=seen,
            remedy="a moved tag proves nothing: register a new version",
        )


def version_of(repository: git.Repo, identity: str, version: int | None) -> Registered:
    """One version of an id, the latest where none is named."""
    newest = latest(repository, identity)
    if version is None:
        return newest
    for found in versions(repository, identity):
        if found.registration.version == version:
            return found
    raise RegistrationError(
        "no such version", where=f"reg/{identity}", value=version, remedy=f"the latest is {newest.registration.version}"
    )

"""The server's folder: its key, and bare repositories that only grow.

```
DIR/key                                   the signing key, OpenSSH, mode 0600
DIR/repositories/<owner>/<name>.git       bare, with the hooks of a witness
    trap-witness/push-log.jsonl           the log
    trap-witness/repository.json          numeric id, time of making
```
"""

from __future__ import annotations

import json
import re
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from registry.canonical import load_json
from registry.errors import TrapError, WitnessError
from registry.guarded_git import run_git
from registry.timestamps import now
from registry.witness.hooks import install_hook

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_OWNER = re.compile(r"(?!(?:api|witness)$)[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_NAME = re.compile(r"(?!.*\.(?:git|lock)?$)[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_HOOKS = ("pre-receive", "post-receive")
_SETTINGS = """\
[core]
\tlogAllRefUpdates = true
\tfsync = all
[receive]
\tadvertiseAtomic = true
\tdenyDeletes = true
\tdenyNonFastForwards = true
\tautogc = false
[transfer]
\tfsckObjects = true
[http]
\treceivepack = true
\tgetanyfile = false
[gc]
\tauto = 0
\tpruneExpire = never
\treflogExpire = never
\treflogExpireUnreachable = never
[maintenance]
\tauto = false
"""


@dataclass(frozen=True)
class Repository:
    """One served repository: where it lies, and its stable numeric id."""

    owner: str
    name: str
    path: Path
    id: int
    created_at: str

    @property
    def full_name(self) -> str:
        """`owner/name`."""
        return f"{self.owner}/{self.name}"

    @property
    def log_path(self) -> Path:
        """The push log's file."""
        return self.path / "trap-witness" / "push-log.jsonl"


class WitnessFolder:
    """Everything that a server keeps, in one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.repositories = self.root / "repositories"

    def key(self) -> Ed25519PrivateKey:
        """The server's key; WitnessError where it is missing or unreadable."""
        from registry.ssh_signature import load_key

        try:
            return load_key(self.root / "key")
        except TrapError as error:
            raise WitnessError(
                f"no witness server's folder: {error.what}",
                where=str(self.root / "key"),
                remedy="make one: trapkit witness create DIR OWNER/NAME",
            ) from None

    def find(self, owner: str, name: str) -> Repository | None:
        """The repository of this name, None where there is none.

        Nothing but a plain folder at the one place of that name is found:
        names cannot leave the folder, and links are not followed.
        """
        if not (_OWNER.fullmatch(owner) and _NAME.fullmatch(name)):
            return None
        path = self.repositories / owner / f"{name}.git"
        if path.parent.is_symlink() or path.is_symlink():
            return None
        try:
            value = load_json((path / "trap-witness" / "repository.json").read_bytes(), "repository.json")
            return Repository(owner, name, path, int(value["id"]), str(value["created_at"]))
        except (OSError, TrapError, KeyError, TypeError, ValueError):
            return None

    def all(self) -> list[Repository]:
        """Every repository, by name."""
        places = sorted(self.repositories.glob("*/*.git"))
        found = (self.find(path.parent.name, path.name.removesuffix(".git")) for path in places)
        return [repository for repository in found if repository is not None]

    def create(self, full_name: str) -> Repository:
        """A new empty repository, and the server's key where there is none.

        WitnessError for a name that cannot be, or that is taken.
        """
        from registry.ssh_signature import ensure_key

        owner, name = split_name(full_name)
        path = self.repositories / owner / f"{name}.git"
        if path.exists():
            raise WitnessError("the repository is there already", where=str(path), remedy="choose another name")
        ensure_key(self.root / "key")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Made aside and moved in one step: a repository is there whole, or not at all.
        with tempfile.TemporaryDirectory(dir=self.root, prefix="making-") as folder:
            bare = Path(folder) / "bare.git"
            _make(bare)
            bare.rename(path)
        found = self.find(owner, name)
        assert found is not None
        return found


def _make(bare: Path) -> None:
    run_git(["init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(bare)], bare.parent)
    with (bare / "config").open("a", encoding="utf-8") as config:
        config.write(_SETTINGS)
    install_hooks(bare)
    (bare / "trap-witness").mkdir()
    (bare / "trap-witness" / "push-log.jsonl").touch()
    # Random, so that a repository made anew under an old name is another one.
    made = {"id": secrets.randbelow(2**48) + 1, "created_at": now()}
    (bare / "trap-witness" / "repository.json").write_text(json.dumps(made) + "\n", encoding="utf-8")


def install_hooks(git_dir: Path) -> None:
    """The hooks of a served repository, as this version has them."""
    for name in _HOOKS:
        install_hook(git_dir, name)


def split_name(full_name: str) -> tuple[str, str]:
    """Owner and name of `owner/name`; WitnessError for another form."""
    owner, slash, name = full_name.partition("/")
    if not (slash and _OWNER.fullmatch(owner) and _NAME.fullmatch(name)):
        raise WitnessError(
            "a repository is named OWNER/NAME",
            value=full_name,
            remedy="use letters, digits, _ and -, in the name also dots; not api or witness, and no .git at the end",
        )
    return owner, name

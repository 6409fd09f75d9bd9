"""What an operator, or whoever holds a copy, checks in a server's folder."""

from __future__ import annotations

from registry.errors import TrapError, WitnessError
from registry.guarded_git import run_git
from registry.witness.checkpoint import check_begins, key_of, read_checkpoint
from registry.witness.log import parse_log
from registry.witness.served import broken_promises
from registry.witness.server.reconciliation import contradictions, last_logged, read_log, refs_of, unlogged
from registry.witness.server.repositories import Repository


def problems_of(repository: Repository) -> list[str]:
    """What is wrong with a repository and its log, in words; changes nothing.

    The chain, the promises of a server, refs against the log, and that every
    object is there.
    """
    try:
        rows = parse_log(read_log(repository), repository.full_name)
        moves = unlogged(last_logged(rows), refs_of(repository))
        found = broken_promises(rows) + contradictions(repository, moves)
        late = [f"{ref} is not logged yet: serve the folder once" for before, after, ref in moves] if not found else []
        whole = run_git(["fsck", "--connectivity-only", "--no-dangling"], repository.path, check=False)
        return found + late + (["git fsck finds objects missing or broken"] if whole.returncode else [])
    except OSError as error:
        return [f"the push log cannot be read: {error.strerror}"]
    except TrapError as error:
        return [f"{error.where or repository.full_name}: {error.what}"]


def check_against(repository: Repository, earlier: bytes, name: str, public_key: str) -> str:
    """Hold the log against an earlier copy of it, or an earlier checkpoint.

    Returns what holds, in words; WitnessError where the log was rewritten or
    cut, or where `earlier` is neither a log nor a checkpoint by this key.
    """
    log = read_log(repository)
    if b'"trap-checkpoint-' not in earlier[:1000]:
        rows = parse_log(earlier, name)
        if not log.startswith(earlier):
            raise WitnessError("the earlier copy is not the beginning of the log", where=name)
        return f"the log begins with the earlier copy's {len(rows)} rows"
    checkpoint = read_checkpoint(earlier, name)
    if checkpoint.repository != repository.full_name:
        raise WitnessError("the checkpoint is of another repository", where=name, value=checkpoint.repository)
    if checkpoint.key != key_of(public_key):
        raise WitnessError("the checkpoint is signed by another key", where=name, value=checkpoint.key)
    check_begins(checkpoint, log, name)
    return f"the log begins with the checkpoint's {checkpoint.rows} rows"

"""A table as it was in a revision of its repository, with the vocabulary that stood beside it then."""

from __future__ import annotations

import os
import subprocess
import tempfile

import attrs

from ecm_rules.engine.policy import Policy
from ecm_rules.tables import load
from ecm_rules.tables.findings import EcmError, Finding

PREFIX = "git:"


def load_side(name: str, beside: str | None = None) -> Policy:
    """The table of one side of a comparison: a shipped table's name, a path, the folder of a project (the shipped
    policy with its layer; beside a table to which a project may append, that one), `git:REV:path`, or `git:REV`, the
    file `beside` as it was in that revision. Raises EcmError.
    """
    if name.startswith(PREFIX):
        return _revision(name, beside)
    if os.path.isdir(name):
        other = _file(beside)
        if other is not None and _load(other).table.extension is not None:
            return _load(other, name)
        return Policy.of(load.load_policy(None, name))
    return _load(load.locate(name))


def _file(name: str | None) -> str | None:
    """The path of a table that is a file here; None for a folder, a revision, or nothing."""
    return None if name is None or name.startswith(PREFIX) or os.path.isdir(name) else load.locate(name)


def _load(path: str, project: str | None = None) -> Policy:
    return Policy.of(load.load_table(path, project, load.home_of(path)))


def _revision(name: str, beside: str | None) -> Policy:
    revision, _, given = name.removeprefix(PREFIX).partition(":")
    other = _file(beside)
    if not given and other is None:
        raise _refusal(name, "found no file to look for in the revision", "name it, as in git:REV:path")
    path = os.getcwd() if other is None else os.path.realpath(other)
    root = os.path.realpath(
        _git(name, path if os.path.isdir(path) else os.path.dirname(path), "rev-parse", "--show-toplevel").strip()
    )
    # The path inside the repository, and the whole vocabulary where the table has one beside it.
    wanted = _inside(name, root, given) if given else os.path.relpath(path, root)
    outer, inner = os.path.split(os.path.dirname(wanted))
    folders = [os.path.join(outer, folder) for folder in load.FOLDERS] if inner in load.FOLDERS else []
    listed = _git(
        name, root, "ls-tree", "-r", "-z", "--name-only", "--end-of-options", revision, "--", *folders, wanted
    )
    with tempfile.TemporaryDirectory() as folder:
        for file in (f for f in listed.split("\0") if f.endswith((".yaml", ".yml")) or f == wanted):
            target = os.path.join(folder, file)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8", errors="surrogateescape", newline="") as stream:
                stream.write(_git(name, root, "cat-file", "blob", f"{revision}:{file}"))
        target = os.path.join(folder, wanted)
        if not os.path.isfile(target):
            raise _refusal(name, f"found no file `{wanted}` in the revision", "check the path and the revision")
        try:
            return _load(target)
        except EcmError as error:
            raise EcmError(_renamed(f, folder, f"{PREFIX}{revision}") for f in error.findings) from None


def _inside(name: str, root: str, given: str) -> str:
    """A path as git takes it behind a revision: from the root, or with a dot from the working folder."""
    here = os.getcwd() if given.startswith(("./", "../")) else root
    inside = os.path.relpath(os.path.realpath(os.path.join(here, given)), root)
    if inside.startswith(os.pardir):
        raise _refusal(name, "found a path outside the repository", "give a path from its root")
    return inside


def _git(name: str, folder: str, *arguments: str) -> str:
    """What git prints. A revision is never taken for an option."""
    if name.removeprefix(PREFIX).startswith("-"):
        raise _refusal(name, "found an option, expected a revision")
    try:
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=True)  # noqa: S603, S607
    except FileNotFoundError:
        raise _refusal(name, "found no git on the path", "install git, or compare two files") from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode("utf-8", "replace").strip().split("\n")[0].removeprefix("fatal: ")
        raise _refusal(name, f"cannot be read: {reason}", "check the revision") from None
    return done.stdout.decode("utf-8", "surrogateescape")


def _refusal(name: str, message: str, help: str = "") -> EcmError:
    return EcmError([Finding("ECM100", name, 0, 0, message, help)])


def _renamed(finding: Finding, folder: str, name: str) -> Finding:
    inside = os.path.relpath(finding.file, folder)
    return finding if inside.startswith(os.pardir) else attrs.evolve(finding, file=f"{name}:{inside}")

"""The files of a project as they would be: read once, changed in memory, written together, each atomically."""

from __future__ import annotations

import contextlib
import difflib
import os
import stat

import attrs

from ecm_rules.hosts.installing import texts
from ecm_rules.kernel import files
from ecm_rules.tables import places
from ecm_rules.tables.findings import EcmError, Finding

_NEW = 0o644


@attrs.define
class Tree:
    """The files of the project in the folder `root`, by their paths in it. None is a file that is not there."""

    root: str
    before: dict[str, bytes | None] = attrs.field(factory=dict)
    after: dict[str, bytes | None] = attrs.field(factory=dict)
    locked: set[str] = attrs.field(factory=set)

    def read(self, file: str) -> str | None:
        """A file's text as it would be. Raises EcmError where it cannot be read, or must not be written."""
        name = self._real(file)
        if name not in self.before:
            self.before[name], writable = _bytes(os.path.join(self.root, name), file)
            if not writable:
                self.locked.add(name)
        data = self.after.get(name, self.before[name])
        return texts.decode(file, data) if data is not None else None

    def write(self, file: str, text: str | None) -> None:
        """A file's text, from now on. `read` it before."""
        name = self._real(file)
        try:
            data = text.encode("utf-8") if text is not None else None
        except UnicodeEncodeError:
            raise _refused(file, "found a path that is no UTF-8 in the command, expected one that is",
                           "install ecm-rules in another folder") from None  # fmt: skip
        if data != self.before[name] and name in self.locked:
            raise _refused(file, "found a file that is read-only, expected one that may be written", "`chmod u+w` it")
        self.after[name] = data

    def fork(self) -> Tree:
        """A tree to try something in; `adopt` takes it over."""
        return Tree(self.root, self.before, dict(self.after), self.locked)

    def adopt(self, other: Tree) -> None:
        self.after = other.after

    def missing_folders(self, file: str) -> tuple[str, ...]:
        """The folders above a file that are not there, from the outermost on."""
        steps = file.split("/")[:-1]
        above = ["/".join(steps[: depth + 1]) for depth in range(len(steps))]
        return tuple(folder for folder in above if not os.path.isdir(os.path.join(self.root, folder)))

    def changed(self) -> list[str]:
        """The files that would change, in the order in which they were first read."""
        return [name for name in self.before if self.after.get(name, self.before[name]) != self.before[name]]

    def diff(self) -> str:
        """All changes as one unified diff."""
        return "".join(self._diff(name) for name in self.changed())

    def _diff(self, name: str) -> str:
        old, new = self.before[name], self.after[name]
        lines = difflib.unified_diff(
            (old or b"").decode("utf-8").splitlines(keepends=True) if old else [],
            (new or b"").decode("utf-8").splitlines(keepends=True) if new else [],
            f"a/{name}" if old is not None else "/dev/null",
            f"b/{name}" if new is not None else "/dev/null",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def save(self, file: str) -> None:
        """Write one file, or remove it. Raises EcmError where the file system does not let us."""
        name = self._real(file)
        if name not in self.changed():
            return
        path, data = os.path.join(self.root, name), self.after[name]
        try:
            if data is None:
                os.unlink(path)
            else:
                os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
                files.replace(path, data, _mode(path), durable=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise _refused(
                file, f"cannot be written: {reason}", "see to it that the folder can be written to"
            ) from None
        self.before[name] = data

    def drop(self, folders: tuple[str, ...]) -> None:
        """Remove folders that are empty, from the innermost on."""
        for folder in reversed(folders):
            if ".." not in folder.split("/") and not os.path.isabs(folder):
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.join(self.root, folder))

    def _real(self, file: str) -> str:
        """The path of a file with its links followed, which must not lead out of the project."""
        root = os.path.realpath(self.root)
        real = os.path.realpath(os.path.join(root, file))
        if os.path.commonpath([root, real]) != root or real == root:
            raise _refused(
                file, f"found a link that leads to {real}, expected a file in the project", "replace the link by a file"
            )
        name = os.path.relpath(real, root)
        if f"{name}{os.sep}".startswith(places.STATE):
            raise _refused(file, "found a link to the state of sessions, expected a file", "replace the link by a file")
        if os.path.islink(os.path.join(root, file)) and not os.path.exists(real):
            raise _refused(file, "found a link that leads nowhere, expected a file", "remove the link")
        return name


def _bytes(path: str, file: str) -> tuple[bytes | None, bool]:
    """What a file holds, None where there is none, and whether it may be written by its own mode."""
    try:
        return files.read(path), os.stat(path).st_mode & 0o222 != 0
    except FileNotFoundError:
        return None, True
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _refused(file, f"cannot be read: {reason}", "expected a regular file of at most 1 MiB") from None


def _mode(path: str) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return _NEW & ~_umask()


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _refused(file: str, message: str, help: str) -> EcmError:
    return EcmError([Finding(texts.NOT_WRITABLE, file, 0, 0, message, help)])

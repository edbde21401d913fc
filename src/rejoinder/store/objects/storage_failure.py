"""Turn failures of a disk or an object store into `errors.StorageFailed` with a hint."""

from __future__ import annotations

import errno

from rejoinder import errors

_HINTS = {
    errno.ENOSPC: "free space on the disk, or move the state to a larger one; the last committed epoch is intact",
    errno.EACCES: "check the owner and the permissions of the folder",
    errno.EROFS: "the file system is read-only: check its mount options",
    errno.ELOOP: "remove the link, or put the file itself there; only the folder of the state may be a link",
    errno.EMFILE: "raise the limit of open files (`ulimit -n`)",
    errno.ENAMETOOLONG: "put the state under a shorter path",
    errno.ENOTDIR: "a part of the path is a file: choose another folder for the state",
    errno.EISDIR: "a folder has the name of an object: choose another folder for the state",
    errno.EEXIST: "a new object needs a name that was never used before",
    errno.EOPNOTSUPP: "this file system has no hard links, which a commit needs: put the state on another one",
}
_HINTS[errno.EDQUOT] = _HINTS[errno.EFBIG] = _HINTS[errno.ENOSPC]
_HINTS[errno.EPERM] = _HINTS[errno.EACCES]
_HINTS[errno.ENFILE] = _HINTS[errno.EMFILE]

_FACTS = {
    errno.ELOOP: "a symbolic link inside the state is refused",
    errno.ENOSPC: "no space left for the state",
    errno.EDQUOT: "no space left for the state",
    errno.EFBIG: "no space left for the state",
    errno.EACCES: "permission denied by the storage of the state",
    errno.EPERM: "permission denied by the storage of the state",
    errno.EROFS: "the storage of the state is read-only",
}


class RefusedError(OSError):
    """A failure of the storage that comes with its own hint."""

    def __init__(self, code: int, reason: str, hint: str) -> None:
        super().__init__(code, reason)
        self.hint = hint


class NoObjectError(FileNotFoundError):
    """A missing object of a remote store, as opposed to a missing file of this host."""


def storage_failed(what: str, error: OSError) -> errors.StorageFailed:
    """Return the error for a failure of the storage; `what` names the operation that failed."""
    code = error.errno or 0
    reason = error.strerror or str(error) or type(error).__name__
    general = _HINTS.get(code, "check that the storage is available, and run again")
    return errors.StorageFailed(
        _FACTS.get(code, "the storage of the state failed"),
        detail=f"{what}: {reason}",
        hint=error.hint if isinstance(error, RefusedError) else general,
    )

"""Where a ledger may lie: a plain file of ours, writable, on a disk of this machine (B107)."""

import os
import re
import stat
from pathlib import Path

from reticent.errors import LedgerError

# Locks of one machine are not seen by another on these, or not kept; SQLite says so of its own files.
_NETWORK = re.compile(
    r"(fuse\.)?(9p|afs|afpfs|beegfs|ceph|cifs|coda|davfs2?|gcsfuse|glusterfs|gpfs|lustre|ncpfs|nfs[34]?|ocfs2|"
    r"orangefs|rclone|s3fs|smb[23]?|smbfs|smbnetfs|sshfs|vboxsf|virtiofs|vmhgfs-fuse)"
)


def kind_of_disk(folder: Path, mounts: str) -> str:
    """The type of the file system that holds `folder`, read from the text of `/proc/self/mountinfo`."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        if len(left.split()) < 5 or not right.split():
            continue
        point = Path(left.split()[4].encode().decode("unicode_escape", "replace"))
        # A later line with the same mount point lies on top of the earlier one.
        if folder.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), right.split()[0]
    return kind


def check_disk(folder: Path, *, allow_network: bool) -> None:
    """Refuse a network disk, where two machines could both think they hold the lock."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return  # not Linux: nothing to ask
    kind = kind_of_disk(folder, mounts)
    if _NETWORK.fullmatch(kind) and not allow_network:
        raise LedgerError(
            f"the ledger lies on a network disk ({kind}), where locks may fail and a charge be lost; "
            "keep it on a disk of this machine.",
            field="ledger",
        )


def check_file(path: Path) -> None:
    """Refuse what cannot be a ledger in use: missing, a folder, a device, read-only."""
    name = path.name
    problem = ""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        mode = 0
    if not mode:
        problem = f"there is no ledger {name}; open one with `reticent ledger open`, or correct the path."
    elif not stat.S_ISREG(mode):
        problem = f"{name} is not a file; give the path of a ledger."
    elif not mode & stat.S_IWUSR or not os.access(path, os.R_OK | os.W_OK):
        problem = f"{name} is read-only, so nothing can be charged to it; make it writable."
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        problem = f"the folder of {name} is read-only, so nothing can be charged safely; make it writable."
    elif os.stat(path).st_size == 0:
        problem = f"{name} is empty; put back a copy of the ledger and its head."
    if problem:
        raise LedgerError(problem, field="ledger")


def check_vacant(path: Path) -> None:
    """Refuse to start a ledger over something, or where there is no folder for it."""
    problem = ""
    if not path.parent.is_dir():
        problem = f"the folder of {path.name} does not exist; make it first."
    elif os.path.lexists(path):
        problem = f"{path.name} exists already; a ledger is never started over another file."
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        problem = f"the folder of {path.name} is read-only; choose another."
    if problem:
        raise LedgerError(problem, field="ledger")

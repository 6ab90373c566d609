"""Which code ran: the git commit of this repository, and whether files differed from it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Code:
    """The commit that was checked out; without one, ``unknown`` says why."""

    commit: str | None
    dirty: bool | None = None
    """Whether tracked files were changed or new ones lay beside them, so that the commit alone is not what ran."""
    unknown: str = ""

    @property
    def in_words(self) -> str:
        """For a person: ``1a2b3c4d5e6f, with uncommitted changes``."""
        if self.commit is None:
            return f"unknown: {self.unknown}"
        return self.commit[:12] + (", with uncommitted changes" if self.dirty else "")


def code(root: Path = _ROOT) -> Code:
    """The state of the checkout at ``root``. Code that was installed elsewhere belongs to no commit."""
    try:
        top = _git(root, "rev-parse", "--show-toplevel")
        if Path(top).resolve() != root.resolve():
            return Code(None, unknown=f"{root} is no git checkout of its own")
        return Code(_git(root, "rev-parse", "HEAD"), bool(_git(root, "status", "--porcelain")))
    except FileNotFoundError:
        return Code(None, unknown="git is not installed")
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines()
        return Code(None, unknown=said[0] if said else f"git exited with {error.returncode}")


def _git(root: Path, *arguments: str) -> str:
    # no lock is taken: several trainings may look at once
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

"""Result of one call: an `Observation`, and its parts."""

from dataclasses import dataclass
from typing import Literal, get_args

from PIL import Image

Status = Literal["ok", "error", "blocked", "timeout", "memory", "killed", "protocol"]
STATUSES: frozenset[str] = frozenset(get_args(Status))


@dataclass(frozen=True)
class ShownImage:
    """An image that the code saved or showed."""

    pixels: Image.Image
    """Mode RGB; transparency is laid on white."""
    name: str
    """File name relative to the working folder, or `figure 1`, `display 1`."""


@dataclass(frozen=True)
class Edit:
    """One rewrite that the sandbox made to the code before running it."""

    kind: str
    """strip_fence | strip_tag | plain_quotes | invisible_characters | dedent | align_first_line | expand_tabs |
    autopep8 | clamp_box | output_folder | image_name"""
    before: str
    after: str


@dataclass(frozen=True)
class Artefact:
    """A file that the call made or changed, shown or not."""

    name: str
    n_bytes: int
    note: str
    """Why an image file is not among the images; empty where there is nothing to say."""


@dataclass(frozen=True)
class Observation:
    """The outcome of one call.

    - `ok`, `error`, `blocked` (refused before running), `timeout` and `memory` leave the session usable, unless it is
      `broken`.
    - `killed`: the session's process is gone. `protocol`: it sent bytes that are no reply, and was killed.
    """

    status: Status
    text: str
    """Standard output and error, in order, cut in the middle; protocol tags in it are neutralised."""
    images: tuple[ShownImage, ...]
    error: str | None
    """`Type: message (line N: the line)`"""
    seconds: float
    """By the wall clock, without the wait for a slot."""
    edits: tuple[Edit, ...]
    artefacts: tuple[Artefact, ...]
    broken: bool = False
    """The session is gone with its state: its rollout cannot go on (PyVision-RL §3.3 leaves such rollouts out)."""
    n_over_limit: int = 0
    """Images that are not shown because there are too many, or because they are too large."""

    @property
    def ok(self) -> bool:
        return self.status == "ok"

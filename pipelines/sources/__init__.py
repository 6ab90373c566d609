"""Sources of samples: the embedded one, and those that users add (files, Hugging Face datasets) by a column mapping. A
source yields rows by shard with undecoded, unchecked media; intake (``ingest.py``) makes samples or rejects of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from darkroom.pipelines.records import Truth
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources.columns import BoxFrame
from darkroom.sandbox.errors import UserError


class SourceError(UserError):
    """The whole source is wrong: a missing file, a mapping that does not fit. No row can be read."""


class UserBox(NamedTuple):
    """A box as a row spells it: four numbers in the order and unit of its frame, in ``images[image]``."""

    label: str
    sides: tuple[float, float, float, float]
    image: int = 0
    are_corners: bool = False
    """True if its fields name the order (``xmin``), or it lies around points: corners, in the unit of its frame."""


@dataclass(frozen=True, slots=True)
class UserBoxes:
    """The boxes in a row's column, which intake brings to pixels; ``frame`` None: not stated."""

    column: str
    frame: BoxFrame | None
    boxes: tuple[UserBox, ...]
    fills_question: bool = False
    """``{box}`` in the question is replaced by the first."""

    def without(self, images: range) -> "UserBoxes":
        """Leave out the boxes of images that a question of a conversation does not see yet."""
        return replace(self, boxes=tuple(box for box in self.boxes if box.image not in images))


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row of a source. ``row`` is its place, for people: ``questions.jsonl:7``, ``train/12``."""

    row: str
    images: tuple[bytes, ...]
    question: str
    answer: str
    choices: tuple[str, ...] = ()
    truth: Truth = Truth()
    category: str = ""
    license: str = ""
    videos: tuple[bytes, ...] = ()
    cuts: tuple[tuple[str, str], ...] = ()
    """Of videos that are parts, each one's ``parent`` and ``made_by`` (``VideoRef``)."""
    files: tuple[str, ...] = ()
    """For messages: the file of each image, then of each video; empty for what is no file. None where none is."""
    unread: tuple[str, ...] = ()
    """Parts of the row that the mapping leaves, as ``intake_notes.py`` names them: ``column id``."""
    boxes: UserBoxes | None = None
    """Boxes of ``truth`` that are not in pixels yet."""
    label_choice: str = ""
    """The rule by which the answer was chosen among several people's (``answers.py``); empty where they agree."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be read: its place, the typed reason, the evidence, and the content that was read."""

    row: str
    reason: Reason
    evidence: str
    content: dict[str, Any]


class Source(Protocol):
    """Rows by shard. Reading a shard twice gives the same rows in the same order."""

    @property
    def name(self) -> str:
        """The source's name, part of its partition keys."""

    @property
    def n_shards(self) -> int:
        """Number of shards, which are numbered from 0."""

    @property
    def fingerprint(self) -> str:
        """Digest of everything that determines the rows (files, sizes, times, revision, mapping, seed)."""

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """The rows of one shard, streamed."""

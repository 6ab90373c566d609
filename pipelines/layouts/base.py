"""What a layout is: how one row is written for one trainer, and what its user is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from pipelines.layouts.turns import Row, Turn

Media = Literal["paths", "bytes", "none"]
"""How images are kept: files beside the rows, inside them, or (a trainer of texts) not at all."""
Kind = Literal["trajectories", "prompts"]
"""What a shipped dataset holds: whole conversations, or questions with graders (``datasets/rl/prompts``)."""
KEYS: Mapping[Kind, str] = {"trajectories": "trajectory_id", "prompts": "sample_id"}
"""The column that names a row."""
ALL_ROUNDS, LAST_ROUND = "all_rounds", "last_round"


@dataclass(frozen=True, slots=True)
class Said:
    """One row, ready to be written: its turns, and what is stored for each picture in them, in order."""

    row: Row
    turns: tuple[Turn, ...]
    media: tuple[Any, ...]
    split: str = "train"
    index: int = 0
    """The row's place in the dataset."""

    @property
    def trained(self) -> str:
        """``last_round`` when the loss leaves some of the model's own turns out, else ``all_rounds``."""
        own = [turn for turn in self.turns if turn.role == "assistant"]
        return ALL_ROUNDS if all(turn.trained for turn in own) else LAST_ROUND


@dataclass(frozen=True, slots=True)
class Rendered:
    """A record, and in which file it goes: ``<split>_<group>``, or ``<split>`` where the layout has no groups."""

    record: dict[str, Any]
    group: str = ""
    grader: str = ""
    """The kind of a prompt's grader."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was written, for the README of the output."""

    dataset: str
    split: str
    files: Mapping[str, int]
    """Rows of every file, by its name."""
    n_rows: int
    n_images: int
    n_rejected: int
    graders: Mapping[str, int] = field(default_factory=dict)
    """Prompts by the kind of their grader."""
    protocol: str = ""
    """In which prompts are written, and its mode; a trajectory names its own."""
    mode: str = ""

    def file(self, group: str) -> str | None:
        """The file of a group, when it has rows."""
        return next((name for name in self.files if name.rpartition(".")[0] == f"{self.split}_{group}"), None)


@dataclass(frozen=True, slots=True)
class Layout:
    """One trainer's form of the dataset."""

    name: str
    trainer: str
    says: str
    """One line for people who choose."""
    messages: str
    """The column with the conversation."""
    media: Media
    render: Callable[[Said], Rendered]
    """Raises ``Unrenderable`` for what the trainer cannot hold."""
    usage: Callable[[Facts], str]
    """Markdown for the README: the configuration to use, the loss that results, what is lost."""
    schema: pa.Schema | None = None
    """The columns of its parquet files; None: JSON lines."""
    of: Kind = "trajectories"
    prompts_only: bool = False
    """Whether rows end before the model's first turn, as reinforcement learning wants them."""
    in_pieces: bool = False
    """Whether one turn of the model is several messages that follow each other."""
    extra_files: Callable[[Facts], Mapping[str, str]] = field(default=lambda facts: {})
    """Files that the trainer reads besides, by name."""

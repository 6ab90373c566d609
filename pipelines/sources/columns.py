"""A column mapping as a user writes it: which columns hold what, and how their values are spelled.

    Columns(images="images", question="prompt", answer="reward_model.ground_truth", unwrap_answer=True)

A name may go into a structure, or into a JSON object in a text: ``reward_model.ground_truth``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from pipelines.sources.json_texts import object_in

BESIDE = "beside"
"""Under this name a row has what the JSON file beside its image holds."""

BoxFrame = Literal["corners", "xywh", "fractions", "percent"]


class Columns(BaseModel):
    """Names of columns; ``None`` for what a source does not have.

    ``images`` may hold one image or a list: bytes, a ``datasets`` image struct, a path, base64, a data URL; ``[]`` says
    that a row has none; ``videos`` likewise. A relative path stays below the folder; an absolute one is taken as it is.
    ``choices`` holds a list of texts, which may already begin with their letters, or an object of letters. ``boxes``
    holds one box or a list of them, in ``box_frame``, or objects with ``box`` or ``bbox`` and ``label`` or ``name``.
    ``question`` and ``answer`` may hold chat messages: the first question in them, and the reply to it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    images: str | None = "image"
    question: str | tuple[str, ...] = "question"
    """Of several names the first that is not empty counts; so for the answer."""
    answer: str | tuple[str, ...] = "answer"
    choices: str | tuple[str, ...] | None = None
    """Of several names each holds one choice's text; empty ones hold none."""
    boxes: str | None = None
    box_frame: BoxFrame = "corners"
    category: str | None = None
    license: str | None = None
    """Of a row; where it is empty, and without the column, the source's counts."""
    row_id: str | None = None
    videos: str | None = None
    details: tuple[str, ...] = ()
    """Columns kept as what is privately known of the row (``Truth.details``, JSON)."""
    exclude: dict[str, tuple[bool | int | float | str, ...]] = {}
    """Values of columns whose rows are set aside, as ``excluded``."""
    path_prefix: str = ""
    """What paths begin with and the folder does not have."""
    drop_lines: tuple[str, ...] = ()
    """Lines of a question that begin so are no part of it (a prompt's instructions)."""
    choices_in_question: bool = False
    """Whether choices may stand in the question's text; they are cut out of it."""
    unwrap_answer: bool = False
    r"""Whether an answer may stand in ``<answer>``, ``\boxed{}`` or ``$``."""
    answer_list: Literal["refuse", "first"] = "refuse"
    """Whether an answer may be a list of accepted spellings, of which the first is kept."""
    json_beside: bool = False
    """Whether each row's image has a JSON file of its name beside it; ``beside.bbox`` is its field ``bbox``."""

    def needed(self) -> list[tuple[str, ...]]:
        """The columns that must be there; of several names in one entry, one."""
        choices = alternatives(self.choices) if self.choices else ()
        single = (self.images, self.videos, *choices, self.boxes, self.category, self.license, self.row_id)
        names = [name for name in (*single, *self.details, *self.exclude) if name]
        if self.json_beside:
            names = [name for name in names if not name.startswith(f"{BESIDE}.")]
        return [alternatives(self.question), alternatives(self.answer), *((name,) for name in dict.fromkeys(names))]


def alternatives(names: str | tuple[str, ...]) -> tuple[str, ...]:
    """One name, or several, as several."""
    return (names,) if isinstance(names, str) else names


def first_named(row: Mapping[str, Any], names: str | tuple[str, ...]) -> str:
    """Of several names the first under which a row has something; the last where it has nothing under any."""
    several = alternatives(names)
    return next((name for name in several if value_at(row, name) not in (None, "", [])), several[-1])


def value_at(row: Mapping[str, Any], name: str) -> Any:
    """What a row has under ``name``, also inside structures; None where there is nothing."""
    if name in row:
        return row[name]
    head, _, rest = name.partition(".")
    inner = object_in(row.get(head)) if rest else None
    return None if inner is None else value_at(inner, rest)


def missing_columns(columns: Columns, names: Iterable[str], open_ended: Iterable[str] = ()) -> str:
    """``'query'; it has 'image', 'question'``: what a mapping names and rows lack; empty when nothing is missing.

    ``names`` has those inside structures too (``extra_info.question``); what texts in the columns ``open_ended`` hold
    is not known beforehand.
    """
    there, free = list(names), set(open_ended)
    lacking = [group for group in columns.needed() if not any(_is_there(name, there, free) for name in group)]
    if not lacking:
        return ""
    asked = {name.partition(".")[0] for group in lacking for name in group if "." in name}
    shown = [name for name in there if "." not in name or name.partition(".")[0] in asked]
    named = [" or ".join(map(repr, group)) for group in lacking]
    return f"{', '.join(named)}; it has {', '.join(map(repr, shown))}"


def nested_names(row: Mapping[str, Any]) -> Iterator[str]:
    """The names in a row, those inside structures after their own."""
    for name, value in row.items():
        yield name
        if isinstance(value, Mapping):
            yield from (f"{name}.{inner}" for inner in nested_names(value))


def _is_there(name: str, names: list[str], open_ended: set[str]) -> bool:
    return name in names or (name.partition(".")[0] in open_ended and "." in name)

"""A column mapping as a user writes it: which columns hold what, and how their values are spelled.

    Columns(images="images", question="prompt", answer="reward_model.ground_truth", unwrap_answer=True)

A name may go into a structure, or into a JSON object in a text: ``reward_model.ground_truth``.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from darkroom.pipelines.models.parsing import literal
from darkroom.pipelines.sources.derived import DerivingColumns
from darkroom.pipelines.sources.video_segments import VideoSegment

_FIELD = re.compile(r"\{([^{}:]+)(?::0(\d{1,2}))?\}")
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|[\[\](){},:'"]|[^\s\[\](){},:'"]+""", re.DOTALL)
LONGEST = 1_000_000
"""Characters: no list of choices or paths is longer, and parsing more costs too much time and memory per row."""


def list_in(value: Any) -> list[Any] | None:
    """A list or tuple as a list, or the list that a text contains as JSON or Python; None for anything else."""
    if isinstance(value, list | tuple):
        return list(value)
    elements = _parsed(value, "[")
    return elements if isinstance(elements, list) else None


def object_in(value: Any) -> Mapping[str, Any] | None:
    """A mapping, or the one that a text contains as JSON or Python; None for anything else."""
    if isinstance(value, Mapping):
        return value
    fields = _parsed(value, "{")
    return fields if isinstance(fields, dict) else None


def _parsed(value: Any, opening: str) -> Any:
    if not isinstance(value, str) or len(value) > LONGEST:
        return None
    text = value.strip()
    if text.startswith("array(["):
        text = text[len("array(") : text.rfind("]") + 1]
    if not text.startswith(opening):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return literal(_with_commas(text)) or literal(text)


def _with_commas(text: str) -> str:
    """The text of a list as numpy prints it, ``['red' 'dark red']``, with the commas that Python needs."""
    pieces: list[str] = []
    end, follows = 0, False
    for token in _TOKEN.finditer(text):
        if token[0] in ("'", '"'):  # never closed
            return text
        if follows and token[0][0] not in ")]},:" and token.start() > end:
            pieces.append(",")
        pieces.append("None" if token[0] == "nan" else token[0])
        end, follows = token.end(), token[0][-1] not in "([{,:"
    return " ".join(pieces)


BESIDE = "beside"
"""The name under which a row has the fields of the JSON file beside its image."""

TEMPLATE = "question_template"
"""A row's field with the name of the template that made its question; ``{box}`` in it is the row's box."""

ANSWER_FIELDS = ("answer", "text", "value", "label")
"""Fields of several people's answers as objects, of which the first that is there is read."""

_InPixels = Literal["corners", "xywh", "cxcywh", "yxyx"]
_InFractions = Literal["fractions", "cxcywh_fractions", "xywh_fractions", "yxyx_fractions"]
_InPercent = Literal["percent", "xywh_percent", "cxcywh_percent", "yxyx_percent"]
_InThousandths = Literal["thousandths", "xywh_thousandths", "cxcywh_thousandths", "yxyx_thousandths"]
BoxFrame = Literal[_InPixels, _InFractions, _InPercent, _InThousandths]
"""Order and unit of a box's numbers (``boxes.py``)."""


class TranscriptColumns(BaseModel, extra="forbid", frozen=True):
    """Column and dialect of a released trajectory in a row (``transcripts.py``)."""

    column: str
    """A text with everything that the model wrote and was shown, or a list of messages."""
    dialect: Literal["thyme", "pyvision", "tool_call", "pixel_reasoner", "deepeyes", "mini_o3"]
    label: str | None = None
    """The column with the right answer, where the release has one besides what the model answered."""


class Columns(DerivingColumns, extra="forbid", frozen=True):
    """Names of columns; ``None`` for what a source lacks.

    ``images`` contains one image or a list: bytes, a ``datasets`` image struct, a path, base64, a data URL, parts of
    messages; ``[]`` for none; ``videos`` likewise. Of several names in ``images`` each contains one image; empty
    ones are skipped. A name with braces is a path filled from columns: ``{dataset}/{scene_name}.mp4``,
    ``{image_id:012}.jpg`` with zeros in front. Relative paths must stay below the folder; absolute ones are used
    unchanged. ``choices`` contains a list of texts, with or without letters, an object by letter, or one text
    (``A. red; B. blue``). ``boxes`` contains one box or a list, in ``box_frame``, or objects (``boxes.py``); of four
    names each contains a number. ``category``, ``license``, ``question`` and ``answer`` may be derived
    (``derived.py``). Where ``question`` and ``answer`` are chat messages, ``turns`` chooses among their
    questions, and where ``images`` is ``None`` their parts have the images.
    """

    images: str | tuple[str, ...] | None = "image"
    question: str | tuple[str, ...] = "question"
    """One name, or several, of which the first that is not empty counts; also for the answer."""
    answer: str | tuple[str, ...] = "answer"
    choices: str | tuple[str, ...] | None = None
    """One name, or several, each of one choice; empty ones are skipped."""
    boxes: str | tuple[str, str, str, str] | None = None
    box_frame: BoxFrame | None = None
    """None: not stated, ``corners``, unless the values are in another one."""
    category: str | None = None
    license: str | None = None
    """A row's own; where it is empty or without the column, the source's license."""
    row_id: str | None = None
    videos: str | None = None
    segment: VideoSegment | None = None
    """The part of the videos that a row is about; None: all of them."""
    details: tuple[str, ...] = ()
    """Columns stored as privileged details of the row (``Truth.details``, JSON)."""
    exclude: dict[str, tuple[bool | int | float | str, ...]] = Field(default={})
    """Values of columns whose rows are rejected as ``excluded``."""
    path_prefix: str = ""
    """Prefix of paths to remove."""
    drop_lines: tuple[str, ...] = ()
    """Prefixes of question lines to drop (a prompt's instructions)."""
    choices_in_question: bool = False
    """True if the question's text may contain the choices; they are cut out of it."""
    unwrap_answer: bool = False
    r"""True if an answer may be wrapped in ``<answer>``, ``\boxed{}`` or ``$``."""
    answer_list: Literal["refuse", "first", "majority", "text"] = "refuse"
    """An answer that is a list, also as text: refused; its first counts (``first``); the most frequent, of equals the
    first, is the label; what a third as many gave is accepted (``majority``); a text is one answer (``text``)."""
    missing_values: tuple[str, ...] | None = None
    """Spellings of a missing answer, in any case; None: the usual ones (``answers.py``), and canned replies."""
    turns: Literal["each", "first", "last"] = "each"
    """The questions of a conversation that become samples, each after the turns before it."""
    image_marks: Literal["places", "drop"] = "places"
    """Marks of images in texts (``marks.py``): places, as many as the row has images; or dropped, images first."""
    text_rows: bool = False
    """True if rows without images are questions about text; else they are rejected."""
    transcript: TranscriptColumns | None = None
    """For the kind ``trajectories``: then ``question`` is read only where ``transcript.column`` is one text."""
    json_beside: bool = False
    """True if each image has a JSON file of its name beside it; ``beside.bbox`` is its field ``bbox``."""

    @model_validator(mode="after")
    def _segment_is_of_videos(self) -> Self:
        if self.segment and (not self.videos or "moments" in self.details):
            raise ValueError("`segment` needs `videos`, without `moments`, which count the whole film's frames")
        return self

    def needed(self) -> list[tuple[str, ...]]:
        """The required columns; of several names in one entry, one is required."""
        if self.transcript is not None:
            read = (self.transcript.column, self.transcript.label, self.category, self.license, self.row_id)
            return [(name,) for field in read if field for name in self.sources_of(field)]
        media = [column for column in (self.images, self.videos) if isinstance(column, str)]
        paths = [name for column in media for name in template_names(column) or (column,)]
        ends = (self.segment.start, self.segment.end) if self.segment else ()
        times = [end for end in ends if isinstance(end, str)]
        single = (*paths, *times, *alternatives(self.choices), *alternatives(self.boxes), self.category, self.license)
        names = [name for name in (*single, self.row_id, *self.details, *self.exclude) if name]
        if self.json_beside:
            names = [name for name in names if not name.startswith(f"{BESIDE}.")]
        groups = [alternatives(self.question), alternatives(self.answer), *((name,) for name in dict.fromkeys(names))]
        groups = [columns for group in groups if (columns := tuple(chain.from_iterable(map(self.sources_of, group))))]
        return [*groups, self.images] if isinstance(self.images, tuple) else groups


def alternatives(names: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """One name, several or none as a tuple."""
    return (names,) if isinstance(names, str) else names or ()


def first_named(row: Mapping[str, Any], names: str | tuple[str, ...]) -> str:
    """The first of several names with a value in the row; the last where none has."""
    several = alternatives(names)
    return next((name for name in several if value_at(row, name) not in (None, "", [])), several[-1])


def value_at(row: Mapping[str, Any], name: str) -> Any:
    """The row's value under ``name``, also inside structures; None without one."""
    if name in row:
        return row[name]
    head, _, rest = name.partition(".")
    inner = object_in(row.get(head)) if rest else None
    return None if inner is None else value_at(inner, rest)


def template_names(column: str) -> tuple[str, ...]:
    """The columns that fill a path like ``{dataset}/{scene_name}.mp4``; none for the name of a column."""
    return tuple(field[1] for field in _FIELD.finditer(column))


def filled(row: Mapping[str, Any], column: str) -> Any:
    """The row's value under ``column``, or its path, if ``column`` is a template; None where a field is empty."""
    values = {name: value_at(row, name) for name in template_names(column)}
    if not values:
        return value_at(row, column)
    if any(value in (None, "") for value in values.values()):
        return None
    return _FIELD.sub(lambda field: str(values[field[1]]).zfill(int(field[2] or 0)), column)


def missing_columns(columns: Columns, names: Iterable[str], open_ended: Iterable[str] = ()) -> str:
    """Mapped columns that rows lack, as ``'query'; it has 'image', 'question'``, or empty. ``names`` includes those
    inside structures (``extra_info.question``); the content of text columns (``open_ended``) is unknown."""
    present, free = list(names), tuple(f"{name}." for name in open_ended)
    missing = [group for group in columns.needed() if not any(n in present or n.startswith(free) for n in group)]
    if not missing:
        return ""
    structures = {name.partition(".")[0] for group in missing for name in group if "." in name}
    listed = [name for name in present if "." not in name or name.partition(".")[0] in structures]
    groups = [" or ".join(map(repr, group)) for group in missing]
    hint = did_you_mean([name for group in missing for name in group], listed)
    return f"{', '.join(groups)}; it has {', '.join(map(repr, listed))}{hint}"


def did_you_mean(names: Iterable[str], choices: Sequence[str]) -> str:
    """`` (did you mean 'question'?)``: the choice nearest to each name; empty where none is near."""
    near = dict.fromkeys(repr(match) for name in names for match in get_close_matches(name, choices, n=1, cutoff=0.75))
    return f" (did you mean {' and '.join(near)}?)" if near else ""


def nested_names(row: Mapping[str, Any]) -> Iterator[str]:
    """The names in a row, each followed by those inside its structure."""
    for name, value in row.items():
        yield name
        if isinstance(value, Mapping):
            yield from (f"{name}.{inner}" for inner in nested_names(value))

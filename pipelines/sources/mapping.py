"""A user's row by a column mapping: a ``SourceRow``, or a typed ``BadRow`` that names the column and its content.

columns = Columns(images="image", question="q", answer="gt", boxes="bbox", box_frame="xywh")
(row,) = map_row({"image": "street.jpg", …}, columns, where="train/7", folder=Path("streets"), license="CC0-1.0")
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from darkroom.pipelines.records import Truth
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import ACCEPTED
from darkroom.pipelines.sources import BadRow, SourceRow, UserBoxes
from darkroom.pipelines.sources.answers import RowAnswer, answer_in, missing_reason, shows_words
from darkroom.pipelines.sources.boxes import NAMED, read_boxes
from darkroom.pipelines.sources.columns import LONGEST, TEMPLATE, Columns, first_named, list_in, object_in, value_at
from darkroom.pipelines.sources.conversations import Asked, talk_of
from darkroom.pipelines.sources.intake_notes import unread_in
from darkroom.pipelines.sources.media import IMAGE, VIDEO, describe, file_names, media, with_json_beside
from darkroom.pipelines.sources.texts import LETTERS, choices_in, from_letters, lettered, plain_label, text_at
from darkroom.pipelines.sources.transcripts import released_row
from darkroom.pipelines.sources.video_segments import VideoSegment, asked_part
from darkroom.pipelines.storage.video_cuts import VideoCut, cut
from darkroom.sandbox.errors import raised_as

_DEEPEST = 16


def map_row(
    row: Mapping[str, Any], columns: Columns, *, where: str, folder: Path, license: str
) -> Iterator[SourceRow | BadRow]:
    """The samples of one row by ``columns``: one, or one for each question of a conversation. ``where`` is its place,
    for people; relative image paths are below ``folder``."""
    try:
        if columns.json_beside:
            row = with_json_beside(row, columns.images, folder, prefix=columns.path_prefix)
        _check_excluded(row, columns)
        row = columns.with_derived(row, value_at)
        if columns.transcript is not None:
            yield released_row(row, columns, where=where, folder=folder, license=license)
            return
        for name in (first_named(row, columns.question), first_named(row, columns.answer)):
            if isinstance(text := value_at(row, name), str) and len(text) > LONGEST:
                raise RowError(Reason.MALFORMED_ROW, f"column {name!r}: a text of {len(text):,} characters: cut it")
        talk = talk_of(row, columns)
        column = columns.images or talk.images
        images = tuple(media(row, column, folder, IMAGE, prefix=columns.path_prefix, optional=columns.text_rows))
        cuts = _cuts(row, columns, columns.segment, folder) if columns.segment else ()
        videos = () if cuts else tuple(media(row, columns.videos, folder, VIDEO, prefix=columns.path_prefix))
        names = file_names(row, column)
        boxes = _boxes(row, columns, n_images=len(images))
        questions = list(talk.asked(columns, len(images), _choices(row, columns)))
    except RowError as error:
        yield BadRow(where, error.reason, error.evidence, shortened(row))
        return
    for number, question in enumerate(questions):
        place = f"{where}#{number + 1}" if number else where
        try:
            answer = _answer(row, columns, question)
            if columns.segment is not None:
                move = partial(columns.segment.moved, cuts=cuts)
                answer = answer._replace(text=move(answer.text), accepted=tuple(map(move, answer.accepted)))
                about = move(question.question) + asked_part(cuts)
                question = question._replace(question=about, choices=tuple(map(move, question.choices)))
            n, truth = question.n_images, Truth(details=_details(row, columns, answer))
            category, own = (_optional_text(row, name) for name in (columns.category, columns.license))
            asked = (question.question, answer.text, question.choices, truth, category, own or license)
            films = videos or tuple(part.data for part in cuts)
            origins = tuple((part.parent, part.made_by) for part in cuts)
            files = (*names[:n], *file_names(row, columns.videos))
            unread = () if number else (*unread_in(row, columns), *talk.unread)
            placed = boxes and boxes.without(range(n, len(images)))
            yield SourceRow(place, images[:n], *asked, films, origins, files, unread, placed, answer.choice)
        except RowError as error:
            yield BadRow(place, error.reason, error.evidence, shortened(row))


def _check_excluded(row: Mapping[str, Any], columns: Columns) -> None:
    for name, values in columns.exclude.items():
        value = value_at(row, name)
        if any(type(value) is type(excluded) and value == excluded for excluded in values):
            raise RowError(Reason.EXCLUDED, f"column {name!r} is {value!r}, which the source leaves out")


def _optional_text(row: Mapping[str, Any], column: str | None) -> str:
    return text_at(row, column) if column and value_at(row, column) not in (None, "") else ""


def _cuts(row: Mapping[str, Any], columns: Columns, segment: VideoSegment, folder: Path) -> tuple[VideoCut, ...]:
    """The row's part of each of its videos. Raises ``RowError``."""
    start, end = segment.span(row, value_at)
    part = partial(cut, start=start, end=end)
    return tuple(media(row, columns.videos, folder, VIDEO, prefix=columns.path_prefix, read=part))


def _choices(row: Mapping[str, Any], columns: Columns) -> tuple[str, ...]:
    if isinstance(columns.choices, tuple):
        return lettered([text_at(row, name) for name in columns.choices if value_at(row, name) not in (None, "")])
    content = value_at(row, columns.choices) if columns.choices else None
    if content is None or content == "":
        return ()
    by_letter = object_in(content)
    texts = list_in(content) if by_letter is None else [*by_letter.values()]
    if texts is None and isinstance(content, str):
        texts = choices_in(content) or None
    if texts is None or not all(isinstance(text, str) or (by_letter and text is None) for text in texts):
        evidence = f"column {columns.choices!r}: expected a list of texts, found {describe(content)}"
        raise RowError(Reason.WRONG_TYPE, evidence)
    with raised_as(lambda error: RowError(error.reason, f"column {columns.choices!r}: {error.evidence}"), RowError):
        return lettered(texts) if by_letter is None else from_letters(by_letter)


def _answer(row: Mapping[str, Any], columns: Columns, question: Asked) -> RowAnswer:
    """The answer; in a row with choices a number is an index into them and becomes its letter."""
    name, value, choices = first_named(row, columns.answer), question.answer, question.choices
    if choices and isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value < len(choices):
            raise RowError(Reason.MALFORMED_ROW, f"column {name!r}: choice {value} of {len(choices)}")
        return RowAnswer(LETTERS[value])
    answer = answer_in(value, name, columns)
    if choices:
        # the text of a choice stays as it is, even if it looks like a letter
        is_text = any(choice[3:] == answer.text for choice in choices)
        return RowAnswer(answer.text if is_text else plain_label(answer.text), choice=answer.choice)
    why = missing_reason(answer.text, columns.missing_values)
    if why and not shows_words(_optional_text(row, columns.category)):
        raise RowError(Reason.MALFORMED_ROW, f"column {name!r}: {why}")
    return answer


def _details(row: Mapping[str, Any], columns: Columns, answer: RowAnswer) -> str | None:
    details = {name: shortened(value_at(row, name)) for name in columns.details}
    if answer.accepted:
        details |= {ACCEPTED: answer.accepted, "answer_votes": answer.votes}
    return json.dumps(details, sort_keys=True, default=str) if details else None


def _boxes(row: Mapping[str, Any], columns: Columns, *, n_images: int) -> UserBoxes | None:
    if columns.boxes is None:
        return None
    if isinstance(columns.boxes, str):
        name, content = columns.boxes, value_at(row, columns.boxes)
    else:  # a number each; none where all are empty
        name, numbers = ", ".join(columns.boxes), {column: value_at(row, column) for column in columns.boxes}
        content = numbers if columns.box_frame is None and " ".join(numbers) in NAMED else [*numbers.values()]
        content = None if all(number in (None, "") for number in numbers.values()) else content
    boxes = read_boxes(content, name, n_images=n_images)
    return UserBoxes(name, columns.box_frame, boxes, fills_question=bool(row.get(TEMPLATE))) if boxes else None


def shortened(value: Any, depth: int = 0, *, longest: int | None = None) -> Any:
    """A row for people: bytes become their number, deeply nested parts and what is beyond ``longest`` become "…"."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, str) and longest is not None and len(value) > longest:
        return f"{value[:longest]}… ({len(value):,} characters)"
    if isinstance(value, Mapping | list | tuple) and depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {name: shortened(inner, depth + 1, longest=longest) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [shortened(inner, depth + 1, longest=longest) for inner in value]
    return value

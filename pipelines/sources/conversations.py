"""Conversations in rows: messages by role, of texts or of parts with images, and the questions that become samples.

    {"messages": [{"role": "user", "content": [{"type": "image", "image": "a.jpg"}, {"type": "text", "text": "…"}]}, …]}
    {"conversations": [{"from": "human", "value": "<image>\\nWhich colour?"}, {"from": "gpt", "value": "red"}, …]}

Parts are those of OpenAI, Qwen, Anthropic and ``transformers``; an image among them is ``<image>`` in the text.
Question and answer may be one conversation or one each; an answer in a column of its own belongs to the last question.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import IMAGE_MARK, with_context
from darkroom.pipelines.sources.columns import Columns, first_named, list_in, object_in, value_at
from darkroom.pipelines.sources.marks import images_first, placed, without_marks
from darkroom.pipelines.sources.media import describe, is_conversation, part_image, part_images
from darkroom.pipelines.sources.texts import plain_text, split_question

USER, MODEL, SYSTEM = ("user", "human"), ("assistant", "gpt", "model"), "system"


class RowMessage(NamedTuple):
    """One message: its role, and the texts of its parts."""

    role: str
    texts: tuple[str, ...]


class Asked(NamedTuple):
    """A question after the turns before it, its choices and answer, and how many of the row's images these show."""

    question: str
    choices: tuple[str, ...]
    answer: Any
    n_images: int


@dataclass(frozen=True, slots=True)
class Talk:
    """Questions and replies of a row, in turn, and the answers of those questions that become samples, by index."""

    turns: Sequence[str]
    answers: Mapping[int, Any]
    images: str | None = None
    """The column of messages whose parts have images."""
    unread: tuple[str, ...] = ()

    def asked(self, columns: Columns, n_images: int, choices: Sequence[str] = ()) -> Iterator[Asked]:
        """The questions with their marks. Raises ``RowError`` where marks and images differ in number."""
        drops = columns.image_marks == "drop"
        texts = [*map(without_marks, (*self.turns, *choices))] if drops else placed([*self.turns, *choices], n_images)
        turns, choices = texts[: len(self.turns)], texts[len(self.turns) :]
        for index, answer in self.answers.items():
            spoken = turns[: index + 1]
            n_shown = sum(text.count(IMAGE_MARK) for text in (*spoken, *choices))
            if spoken[0].count(IMAGE_MARK) == n_shown:
                spoken[0] = images_first(spoken[0])
            spoken[::2] = [_kept_lines(text, columns.drop_lines) for text in spoken[::2]]
            stem, listed = split_question(spoken[-1]) if columns.choices_in_question else ("", ())
            if listed and len(choices) in (0, len(listed)):  # a column's choices take precedence
                spoken[-1] = stem
            is_marked = any(IMAGE_MARK in text for text in texts)
            yield Asked(with_context(spoken), tuple(choices) or listed, answer, n_shown if is_marked else n_images)


def talk_of(row: Mapping[str, Any], columns: Columns) -> Talk:
    """Read a row's turns, by its columns of question and answer. Raises ``RowError`` for a column that is neither text
    nor a conversation, and without a question or a reply."""
    name, answer_name = first_named(row, columns.question), first_named(row, columns.answer)
    value, answer = value_at(row, name), value_at(row, answer_name)
    asks, replies = is_conversation(value), is_conversation(answer)
    messages = [*read_messages(list_in(value) or ())] if asks else [RowMessage(USER[0], (plain_text(value, name),))]
    if replies and answer_name != name:
        further = read_messages(list_in(answer) or ())
        messages += further if asks else [message for message in further if message.role in MODEL][:1]
    turns = _turns(messages)
    answered = range(0, len(turns) - 1, 2) if replies else [(len(turns) - 1) // 2 * 2]
    if not turns or not answered:
        column, roles = (answer_name, MODEL) if turns else (name, USER)
        evidence = f"column {column!r}: expected a message of {' or '.join(roles[:2])}, found none"
        raise RowError(Reason.WRONG_TYPE, evidence)
    chosen = {"first": answered[:1], "each": answered, "last": answered[-1:]}[columns.turns]
    unread = [f"turn of {message.role}" for message in messages if message.role not in (*USER, *MODEL)]
    unread += ["question without a reply"] * (replies and len(turns) % 2)
    unread += ["further question"] * (len(answered) - len(chosen))
    images = name if asks and part_images(list_in(value)) else None
    return Talk(turns, {n: turns[n + 1] if replies else answer for n in chosen}, images, tuple(unread))


def read_messages(entries: Iterable[Any]) -> Iterator[RowMessage]:
    """The messages of a conversation. Raises ``RowError`` for one without a role, and for parts of another kind."""
    for number, entry in enumerate(entries, start=1):
        fields = object_in(entry) or {}
        role = fields.get("role", fields.get("from"))
        if not isinstance(role, str):
            raise RowError(Reason.MALFORMED_ROW, f"message {number} has no role: {describe(entry)}")
        yield RowMessage(role, tuple(_texts(fields.get("content", fields.get("value")), f"message {number}")))


def _texts(content: Any, where: str) -> Iterator[str]:
    """The text of each part, of an image its mark."""
    for part in [content] if isinstance(content, str | int | float) else list_in(content) or ():
        fields = part if isinstance(part, Mapping) else {"text": part}
        kind = str(fields.get("type") or "")
        if fields.get("video") is not None:
            raise RowError(Reason.NOT_APPLICABLE, f"{where} shows a video: of messages only texts and images are read")
        if "image" in kind or part_image(fields) is not None:
            yield IMAGE_MARK
        elif isinstance(fields.get("text"), str | int | float):
            yield str(fields["text"])
        elif "video" not in kind and fields.get("text", ...) is not None:
            raise RowError(Reason.MALFORMED_ROW, f"{where}: a part is neither text nor image: {describe(part)}")


def _turns(messages: Iterable[RowMessage]) -> list[str]:
    """Question, reply, question, …: messages of one side in a row are one turn, a reply to nothing is none."""
    turns: list[str] = []
    for message in messages:
        text = "\n".join(part.strip() for part in message.texts)
        is_reply = message.role in MODEL
        if message.role not in (*USER, *MODEL) or (is_reply and not turns):
            continue
        if is_reply == (len(turns) % 2 == 1):
            turns.append(text)
        else:
            turns[-1] += f"\n{text}"
    return turns


def _kept_lines(text: str, dropped: tuple[str, ...]) -> str:
    """The text without the lines that begin with one of ``dropped``, but with the marks in them."""
    if dropped:
        lines = (
            (IMAGE_MARK * line.count(IMAGE_MARK), line.strip().startswith(dropped), line) for line in text.splitlines()
        )
        text = "\n".join(marks if is_dropped else line for marks, is_dropped, line in lines if marks or not is_dropped)
    return text.strip()

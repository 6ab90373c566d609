"""What people could ask of the demo's images and nobody else has: the facts behind the bundled recording.

Every fact is taken from where the picture is made (what hangs on a wall, the bar that decides a chart), never from
looking at pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from annotation.submissions import Fields
from pipelines.geometry import Box
from pipelines.sources.base import SourceRow
from pipelines.sources.demo.charts import charts
from pipelines.sources.demo.photographs import photographs
from pipelines.sources.demo.scenes import Hung, Placed, hung, scenes

N_SCENES = 24
"""As many as the demo has."""
ASKED_ANEW = {
    "chart/02": "Look at the point that lies highest: which species of iris is it?",
    "chart/03": "What is the number of the participant whose marker lies highest?",
    "chart/04": "What is the number of the participant with the tallest bar?",
    "photo/coffee": "Which piece of cutlery lies beside the cup?",
    "photo/rocket": "What stands upright between the towers?",
}
"""Other rows of the demo, in other words."""


class Known(NamedTuple):
    """A row of the demo, and a record that is true of its picture."""

    row: SourceRow
    fields: Fields


def facts() -> Iterator[Known]:
    """A record for every scene, and for some charts and photographs."""
    for number, lazy in enumerate(scenes(N_SCENES, 0)):
        yield Known(lazy.build(), _of_scene(number, hung(number, 0)))
    for lazy in (*charts(0), *photographs(0)):
        if lazy.name in ASKED_ANEW:
            row = lazy.build()
            boxes = tuple(box.box for box in row.truth.boxes)
            category = "chart" if row.category == "chart" else "object"
            yield Known(row, Fields(ASKED_ANEW[lazy.name], _answer(row), category, None, boxes))


def _answer(row: SourceRow) -> str:
    """In words, also where the row wants a letter."""
    chosen = [choice.partition(". ")[2] for choice in row.choices if choice.startswith(f"{row.answer}. ")]
    return chosen[0] if chosen else row.answer


def _of_scene(number: int, wall: Hung) -> Fields:
    """About something that the scene's own question is not about; the kinds of questions take turns."""
    turned = [*KINDS[number % len(KINDS) :], *KINDS[: number % len(KINDS)]]
    kind, ask = next((kind, ask) for kind, ask in turned if kind in wall.scene.placed and kind != wall.topic.kind)
    things = wall.scene.placed[kind]
    return ask(things, things[number % len(things)])


def _about(thing: Placed, question: str, answer: str, category: str) -> Fields:
    asked = question.format(picture=thing.photograph.phrase, look=thing.target.look)
    return Fields(asked, answer, category, None, (thing.box,))


def _one(question: str, category: str) -> Callable[[Sequence[Placed], Placed], Fields]:
    return lambda things, thing: _about(thing, question, thing.target.value, category)


def _location(things: Sequence[Placed], thing: Placed) -> Fields:
    question = "Find the badge with the {look}: on the picture of what is it?"
    return _about(thing, question, thing.photograph.phrase, "location")


def _how_many(name: str) -> Callable[[Sequence[Placed], Placed], Fields]:
    def ask(things: Sequence[Placed], thing: Placed) -> Fields:
        boxes: tuple[Box, ...] = tuple(each.box for each in things)
        return Fields(f"How many {name} are there in the whole image?", str(len(boxes)), "quantity", len(boxes), boxes)

    return ask


KINDS: tuple[tuple[str, Callable[[Sequence[Placed], Placed], Fields]], ...] = (
    ("plate", _one("Which number does the plate below the picture of {picture} have?", "ocr")),
    ("badge", _location),
    ("tag", _how_many("price tags")),
    ("pictogram", _one("What does the little square sign on the right of the picture of {picture} show?", "object")),
    ("bars", _one("Which column is tallest on the chart card on the right of the picture of {picture}?", "chart")),
    ("clock", _one("Read the time off the clock on the right of the picture of {picture}.", "attribute")),
    ("sign", _one("Read the street sign on the right of the picture of {picture}: what does it say?", "ocr")),
    ("badge", _one("In what colour is the badge on the picture of {picture} printed?", "attribute")),
    ("plate", _how_many("number plates")),
    ("tag", _one("What does the picture of {picture} cost?", "ocr")),
)

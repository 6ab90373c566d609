"""Questions about the demo's images that the demo does not contain: the facts behind the bundled recording.

Every fact comes from the code that draws the image (the objects on a wall, the highest bar of a chart), never from
pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from darkroom.annotation.rounds.submissions import RecordFields
from darkroom.pipelines.demo.images.charts import charts
from darkroom.pipelines.demo.images.material import photographs
from darkroom.pipelines.demo.images.scenes import Placed, Wall, make_wall, scenes
from darkroom.pipelines.sources import SourceRow

N_SCENES = 24
"""Number of scenes in the demo."""
REPHRASED = {
    "chart/02": "Look at the point that lies highest: which species of iris is it?",
    "chart/03": "What is the number of the participant whose marker lies highest?",
    "chart/04": "What is the number of the participant with the tallest bar?",
    "photo/coffee": "Which piece of cutlery lies beside the cup?",
    "photo/rocket": "What stands upright between the towers?",
}
"""Rows of the demo with a new question."""


class ImageFact(NamedTuple):
    """A row of the demo, and a true record about its image."""

    row: SourceRow
    fields: RecordFields


def facts() -> Iterator[ImageFact]:
    """A record for every scene, and for some charts and photographs."""
    own = (lazy for lazy in scenes(N_SCENES, 0) if lazy.name.count("/") == 1)
    for number, lazy in enumerate(own):
        yield ImageFact(lazy.build(), _of_scene(number, make_wall(number, 0)))
    for lazy in (*charts(0), *photographs("photo", 0)):
        if lazy.name in REPHRASED:
            row = lazy.build()
            boxes = tuple(box.box for box in row.truth.boxes)
            category = "chart" if row.category == "chart" else "object"
            yield ImageFact(row, RecordFields(REPHRASED[lazy.name], _answer(row), category, None, boxes))


def _answer(row: SourceRow) -> str:
    """The answer in words, also where the row expects a letter."""
    chosen = [choice.partition(". ")[2] for choice in row.choices if choice.startswith(f"{row.answer}. ")]
    return chosen[0] if chosen else row.answer


def _of_scene(number: int, wall: Wall) -> RecordFields:
    """About another kind of object than the scene's own question; the kinds rotate."""
    rotated = [*KINDS[number % len(KINDS) :], *KINDS[: number % len(KINDS)]]
    kind, ask = next((kind, ask) for kind, ask in rotated if kind in wall.scene.placed and kind != wall.topic.kind)
    objects = wall.scene.placed[kind]
    return ask(objects, objects[number % len(objects)])


def _about(placed: Placed, question: str, answer: str, category: str) -> RecordFields:
    text = question.format(image=placed.photograph.phrase, look=placed.target.look)
    return RecordFields(text, answer, category, None, (placed.box,))


def _one(question: str, category: str) -> Callable[[Sequence[Placed], Placed], RecordFields]:
    return lambda objects, placed: _about(placed, question, placed.target.value, category)


def _location(objects: Sequence[Placed], placed: Placed) -> RecordFields:
    question = "Find the badge with the {look}: on the picture of what is it?"
    return _about(placed, question, placed.photograph.phrase, "location")


def _how_many(name: str) -> Callable[[Sequence[Placed], Placed], RecordFields]:
    question = f"How many {name} are there in the whole image?"
    return lambda objects, placed: RecordFields(
        question, str(len(objects)), "quantity", len(objects), tuple(each.box for each in objects)
    )


KINDS: tuple[tuple[str, Callable[[Sequence[Placed], Placed], RecordFields]], ...] = (
    ("plate", _one("Which number does the plate below the picture of {image} have?", "ocr")),
    ("badge", _location),
    ("tag", _how_many("price tags")),
    ("pictogram", _one("What does the little square sign on the right of the picture of {image} show?", "object")),
    ("bars", _one("Which column is tallest on the chart card on the right of the picture of {image}?", "chart")),
    ("clock", _one("Read the time off the clock on the right of the picture of {image}.", "attribute")),
    ("sign", _one("Read the street sign on the right of the picture of {image}: what does it say?", "ocr")),
    ("badge", _one("In what colour is the badge on the picture of {image} printed?", "attribute")),
    ("plate", _how_many("number plates")),
    ("tag", _one("What does the picture of {image} cost?", "ocr")),
)

"""High-resolution walls of images with a question about one small thing on them.

A scene hangs six or eight real photographs on a wall (``walls``), sticks small things beside and on them
(``targets``), and asks about one, named by the image that it belongs to. ``truth.boxes`` starts with that thing; the
others of its kind follow. Topic and asked image go through their 9 and 13 values together, so the first 117 scenes
ask different questions. Further questions ask about other things on the same walls.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Literal, NamedTuple

from PIL import Image

from darkroom.pipelines.demo import data_beside, nth_form
from darkroom.pipelines.demo.images import material
from darkroom.pipelines.demo.images.targets import MAKERS, Target, weathered
from darkroom.pipelines.demo.images.walls import backdrop, cast_shadow, lit, mounted
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.samples import FAMILIES, FOUND
from darkroom.pipelines.sources import SourceRow

SIZES = ((2400, 1500), (2560, 1600), (3072, 1620), (3200, 1700))
NOT_HUNG = ("motorcycle", "page", "officer", "cell", "clock")
HUNG = tuple(material.PHOTOGRAPHS[name] for name in material.PHOTOGRAPHS if name not in NOT_HUNG)
# pixels: left of an image, right of it for what hangs beside it (180 wide at most), and the widest frame
LEFT, GUTTER, RIM = 34, 212, 62
Contents = dict[tuple[str, material.Photograph], Target]
"""Things by their kind and the image that they belong to."""
SEARCHING = ("crop", "agentic_image")
"""Families that look at one thing after the other, and get no region."""
BESIDE = ("sign", "dots", "pictogram", "bars", "clock")


class Topic(NamedTuple):
    """A kind of question: about which kind of thing, in which category, with which choices, in which words."""

    kind: str
    category: str
    choices: Literal["open", "given", "ordered", "images"]
    wordings: Sequence[str]


class Placed(NamedTuple):
    """A small thing on the wall: where it is drawn, and the image that it belongs to."""

    target: Target
    box: Box
    photograph: material.Photograph


@dataclass
class Scene:
    """A wall being hung."""

    canvas: Image.Image
    placed: dict[str, list[Placed]] = field(default_factory=dict)

    def put(self, kind: str, photograph: material.Photograph, target: Target, x: int, y: int) -> Box:
        """Draws a thing and notes its place. Raises ``ValueError`` when it would touch another or leave the canvas."""
        box = Box(x, y, x + target.image.width, y + target.image.height)
        others = [thing.box for things in self.placed.values() for thing in things]
        if not box.fits(*self.canvas.size) or any(box.grown(4).intersection(neighbour).area for neighbour in others):
            raise ValueError(f"a {kind} needs a free place on the wall; found {box} taken or outside; mend its spot")
        cast_shadow(self.canvas, target.image, x, y, depth=3)
        self.canvas.paste(target.image, (x, y), target.image)
        self.placed.setdefault(kind, []).append(Placed(target, box, photograph))
        return box


class Wall(NamedTuple):
    """A wall with everything on it, not lit yet: what is asked of it, by which image, and its stream of chance."""

    scene: Scene
    photographs: Sequence[material.Photograph]
    topic: Topic
    subject: material.Photograph
    rng: Random


def scenes(n_scenes: int, seed: int) -> list[material.LazyRow]:
    """A question about each scene and ``N_MORE`` further ones by name, not drawn yet."""
    return material.rows_by_image("scene", _row, [1 + N_MORE] * n_scenes, seed)


_TABLE = data_beside(__file__)
TOPICS = tuple(Topic(**topic) for topic in _TABLE["topics"])
MORE = tuple(Topic(**topic) for topic in _TABLE["more"])
N_MORE = 2


def make_wall(number: int, seed: int) -> Wall:
    """The wall of scene ``number``, with all that is known of the things on it."""
    rng = Random(f"{seed}/scene/{number:02d}")
    topic, subject = TOPICS[number % len(TOPICS)], HUNG[(number + seed) % len(HUNG)]
    width, height = SIZES[rng.randrange(len(SIZES))]
    columns = 3 if width < 2700 else 4
    photographs = rng.sample([photograph for photograph in HUNG if photograph is not subject], 2 * columns - 1)
    photographs.insert(rng.randrange(2 * columns), subject)
    scene = _hung(number, photographs, _contents(topic.kind, photographs, subject, rng), (width, height), rng)
    return Wall(scene, photographs, topic, subject, rng)


@lru_cache(maxsize=2)
def _drawn(number: int, seed: int) -> tuple[Wall, SourceRow]:
    """A wall, and its first question with the image: drawn once for all of its questions."""
    wall = make_wall(number, seed)
    scene, photographs, topic, subject, rng = wall
    placed = sorted(scene.placed[topic.kind], key=lambda thing: thing.photograph is not subject)
    choices = _choices(topic.choices, placed[0], photographs, number // len(TOPICS) + number + seed, rng)
    words = topic.wordings[number // len(TOPICS) % len(topic.wordings)]
    license = material.joint_license([material.TEXTURE_LICENSE, *(photograph.license for photograph in photographs)])
    blank = SourceRow("", (material.jpeg_bytes(lit(scene.canvas, rng)),), "", "", license=license)
    return wall, _asked_row(blank, topic, words, choices, placed)


def _asked_row(
    wall: SourceRow, topic: Topic, words: str, choices: material.Choices, placed: Sequence[Placed]
) -> SourceRow:
    """The row ``wall`` with a question about the first of ``placed``; the others are of its kind. Where the question
    tells the thing only by what a closer look shows of it, families search."""
    thing = placed[0].target
    question = words.format(image=placed[0].photograph.phrase, look=thing.look, value=thing.value)
    boxes = tuple(TruthBox(each.target.label, *each.box) for each in placed)
    truth = Truth(boxes, count=int(thing.value) if topic.kind == "dots" else None)
    options, answer = choices
    row = replace(wall, question=question, answer=answer, choices=options, truth=truth, category=topic.category)
    return material.with_details(row, **{FOUND: "searched", FAMILIES: SEARCHING}) if topic.choices == "images" else row


def _row(name: str, number: int, n: int, seed: int) -> SourceRow:
    wall, first = _drawn(number, seed)
    if not n:
        return replace(first, row=name)
    rng = Random(f"{seed}/{name}")
    topic, thing_asked = list(_asked(wall, number, Random(f"{seed}/scene/{number:02d}/more")))[n - 1]
    placed = [thing_asked, *(thing for thing in wall.scene.placed[topic.kind] if thing is not thing_asked)]
    choices = _choices(topic.choices, thing_asked, wall.photographs, number + n + seed, rng)
    return _asked_row(replace(first, row=name), topic, nth_form(topic.wordings, number), choices, placed)


def _asked(wall: Wall, number: int, rng: Random) -> Iterator[tuple[Topic, Placed]]:
    """Further questions, one of each topic (no two share a wording), another topic first on each wall. A thing is asked
    about once, and only where the wall has another of its kind: alone it would need no looking."""
    things: dict[str, list[Placed]] = {}
    for kind, placed in wall.scene.placed.items():
        free = [thing for thing in placed if (kind, thing.photograph) != (wall.topic.kind, wall.subject)]
        things[kind] = rng.sample(free, len(free)) if len(placed) > 1 else []
    first = N_MORE * number % len(MORE)
    for topic in MORE[first:] + MORE[:first]:
        if of_kind := things.get(topic.kind):
            yield topic, of_kind.pop()


def _choices(
    kind: str, thing: Placed, photographs: Sequence[material.Photograph], place: int, rng: Random
) -> material.Choices:
    """Choices as the topic offers them; ``place`` is where the right one goes."""
    value, options, phrase = thing.target.value, thing.target.options, thing.photograph.phrase
    if kind == "open":
        return material.Choices((), value)
    if kind == "ordered":
        return material.in_order(value, options)
    if kind == "given":
        return material.lettered(value, options, place=place, rng=rng)
    others = [photograph.phrase for photograph in photographs if photograph.phrase != phrase]
    return material.lettered(phrase, rng.sample(others, 3), place=place, rng=rng)


def _contents(
    topic: str, photographs: Sequence[material.Photograph], subject: material.Photograph, rng: Random
) -> Contents:
    """Owners of the topics by image; ``topic`` to ``subject`` and to at least two others."""
    others = [photograph for photograph in photographs if photograph is not subject]
    beside = topic if topic in BESIDE else rng.choice(BESIDE)
    kinds = [beside, beside, *rng.sample([kind for kind in BESIDE if kind != beside], 4)][: len(others)]
    owners = {"plate": [subject, *others]}
    owners |= {kind: [subject, *rng.sample(others, len(others) * 3 // 5)] for kind in ("badge", "tag")}
    for photograph, kind in zip([subject, *rng.sample(others, len(others))], [beside, *kinds], strict=False):
        owners.setdefault(kind, []).append(photograph)
    return {
        (kind, photograph): weathered(target, rng)
        for kind, of in owners.items()
        for photograph, target in zip(of, MAKERS[kind](rng, len(of)), strict=True)
    }


def _hung(
    number: int, photographs: Sequence[material.Photograph], contents: Contents, size: tuple[int, int], rng: Random
) -> Scene:
    wall = backdrop(number, *size, rng)
    scene = Scene(wall.image)
    columns, rows = len(photographs) // 2, 2
    width, height = wall.area.width // columns, wall.area.height // rows
    for place, photograph in enumerate(photographs):
        x, y = wall.area.x1 + place % columns * width, wall.area.y1 + place // columns * height
        things = {kind: target for (kind, owner), target in contents.items() if owner is photograph}
        _hang(scene, photograph, things, Box(x, y, x + width, y + height), pinned=wall.pinned, rng=rng)
    return scene


def _hang(
    scene: Scene, photograph: material.Photograph, things: dict[str, Target], cell: Box, *, pinned: bool, rng: Random
) -> None:
    """One image at the left of its cell, a third of which stays free for what hangs beside it."""
    image = mounted(_fitted(photograph, cell, rng), rng, pinned=pinned)
    room = cell.width - image.image.width - LEFT - GUTTER
    x = cell.x1 + LEFT + rng.randint(0, max(0, room))
    y = cell.y1 + (cell.height - image.image.height) // 2 - 30 + rng.randint(-18, 18)
    cast_shadow(scene.canvas, image.image, x, y, depth=10)
    scene.canvas.paste(image.image, (x, y), image.image)
    frame = Box(x, y, x + image.image.width, y + image.image.height)
    photo = Box(x + image.photograph.x1, y + image.photograph.y1, x + image.photograph.x2, y + image.photograph.y2)
    for kind, target in things.items():
        scene.put(kind, photograph, target, *_spot(kind, target, rng, frame=frame, photo=photo, cell=cell))


def _fitted(photograph: material.Photograph, cell: Box, rng: Random) -> Image.Image:
    image = material.photograph_image(photograph.name)
    share = rng.uniform(0.86, 1)
    width, height = cell.width - LEFT - GUTTER - 2 * RIM, cell.height - 2 * RIM - 126
    scale = min(width * share / image.width, height * share / image.height)
    return image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS)


def _spot(kind: str, target: Target, rng: Random, *, frame: Box, photo: Box, cell: Box) -> tuple[int, int]:
    """Place of a thing of this kind; the places of different kinds never meet."""
    width, height = target.image.size
    if kind == "plate":
        return frame.x1 + frame.width // 2 - width // 2 - rng.randint(20, 60), frame.y2 + rng.randint(14, 26)
    if kind == "tag":
        return frame.x2 - width - rng.randint(4, 14), frame.y2 - rng.randint(6, 12)
    if kind == "badge":
        x = rng.choice((photo.x1 + 10, photo.x2 - width - 10)) + rng.randint(-4, 4)
        return x, rng.choice((photo.y1 + 10, photo.y2 - height - 10)) + rng.randint(-4, 4)
    x = frame.x2 + 16
    x += rng.randint(0, max(0, min(cell.x2 - 14 - width - x, 120)))
    return x, rng.randint(frame.y1 + 10, max(frame.y1 + 10, frame.y2 - height - 60))

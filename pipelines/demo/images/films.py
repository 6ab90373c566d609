"""Short films: a camera moves over real photographs, and small things show up for a moment.

Four kinds of question in turn: what a sign says (``sign``), how often a badge shows up (``count``), which sign comes
first or last (``order``), which image is seen after which (``cut``). The frames that answer it are
``moments`` of the truth (``pipelines/records/samples.py``). Every film is 384 x 288, six seconds at eight
frames per second, in FFmpeg's own MPEG-4 with one thread and ``bitexact``: the same bytes on every run.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from PIL import Image

from darkroom.pipelines.demo.images import material
from darkroom.pipelines.demo.images.targets import Target, badges, pictogram_signs, street_signs
from darkroom.pipelines.records import Truth
from darkroom.pipelines.records.samples import TemporalSegment, as_details
from darkroom.pipelines.sources import SourceRow

SIZE = WIDTH, HEIGHT = 384, 288
FPS, N_FRAMES = 8, 48
N_FILMS = 24
FILMED = ("astronaut", "cat", "coffee", "rocket", "pagoda", "flower", "officer", "retina", "tissue", "galaxies")
_QUANTISER = "9"
"""Of MPEG-4: 1 is the best of 31."""


@dataclass(frozen=True)
class Shot:
    """A photograph that the camera moves over in frames ``first`` to ``end``, and what shows up meanwhile."""

    photograph: material.Photograph
    first: int
    end: int
    path: tuple[float, float, float, float]
    """Where the view begins and ends, as shares of the way that it can go: x and y, x and y."""
    seen: list[tuple[Target, tuple[int, int], TemporalSegment]] = field(default_factory=list)

    def frames(self) -> Iterator[Image.Image]:
        """The images, in order."""
        ground = material.covering(
            material.photograph_image(self.photograph.name), WIDTH * 4 // 3, HEIGHT * 4 // 3
        )  # room to move in
        room = ground.width - WIDTH, ground.height - HEIGHT
        for number in range(self.first, self.end):
            progress = (number - self.first) / max(1, self.end - self.first - 1)
            ways = zip(room, self.path[:2], self.path[2:], strict=True)
            x, y = (round(way * (begin + progress * (end - begin))) for way, begin, end in ways)
            frame = ground.crop((x, y, x + WIDTH, y + HEIGHT))
            for target, at, moment in self.seen:
                if moment.first <= number < moment.end:
                    frame.paste(target.image, at, target.image)
            yield frame


@dataclass(frozen=True)
class Film:
    """Shots, the question about them, and the moments that answer it."""

    shots: tuple[Shot, ...]
    category: str
    question: str
    choices: material.Choices
    moments: tuple[TemporalSegment, ...]
    count: int | None = None


def films(seed: int) -> list[material.LazyRow]:
    """The films by name, not made yet."""
    return material.lazy_rows("film", _row, range(N_FILMS), seed)


def _row(name: str, number: int, seed: int) -> SourceRow:
    kind, variant = KINDS[number % len(KINDS)], number // len(KINDS)
    film = kind(Random(f"{seed}/{name}"), variant + seed)
    video = encoded([frame for shot in film.shots for frame in shot.frames()])
    options, answer = film.choices
    truth = Truth(count=film.count, details=as_details(film.moments))
    license = material.joint_license(shot.photograph.license for shot in film.shots)
    return SourceRow(name, (), film.question, answer, options, truth, film.category, license, videos=(video,))


def encoded(frames: Sequence[Image.Image]) -> bytes:
    """Frames of ``SIZE`` as an MP4 file."""
    import av  # of an extra: a film is made where the source is opened, and that asks for it

    buffer = io.BytesIO()
    options = {"flags": "+bitexact", "qmin": _QUANTISER, "qmax": _QUANTISER, "g": "16"}
    container: Any
    with av.open(buffer, "w", format="mp4", container_options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("mpeg4", rate=FPS, options=options)
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        stream.codec_context.thread_count = 1
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.asarray(frame), format="rgb24")))
        container.mux(stream.encode())
    return buffer.getvalue()


def _sign(rng: Random, variant: int) -> Film:
    shot = _shot(rng, material.PHOTOGRAPHS[FILMED[variant % len(FILMED)]])
    target = street_signs(rng, 1)[0]
    moment = _put(rng, shot, target, first=rng.randrange(8, 32), n_frames=rng.randrange(6, 11))
    question = "A camera moves over {}. Which name is on the street sign that shows up for a moment?"
    return Film((shot,), "OCR", question.format(shot.photograph.phrase), material.Choices((), target.value), (moment,))


def _count(rng: Random, variant: int) -> Film:
    shot = _shot(rng, material.PHOTOGRAPHS[FILMED[(variant + 3) % len(FILMED)]])
    target, distractor = badges(rng, 2)
    n_times = 2 + variant % 4
    slots = list(range(8))
    rng.shuffle(slots)
    moments = [_put(rng, shot, _large(target), first=slot * 6 + 1, n_frames=4) for slot in sorted(slots[:n_times])]
    for slot in slots[n_times : n_times + 2]:
        _put(rng, shot, _large(distractor), first=slot * 6 + 1, n_frames=4)
    event = f"While a camera moves over {shot.photograph.phrase}, badges come and go"
    question = f"{event}. How often does the badge with the {target.look} show up?"
    choices = material.in_order(str(n_times), ("1", "2", "3", "4", "5", "6"))
    return Film((shot,), "quantity", question, choices, tuple(moments), count=n_times)


def _order(rng: Random, variant: int) -> Film:
    shot = _shot(rng, material.PHOTOGRAPHS[FILMED[(variant + 6) % len(FILMED)]])
    signs = [_large(sign) for sign in pictogram_signs(rng, 3)]
    moments = [_put(rng, shot, sign, first=15 * n + rng.randrange(2, 7), n_frames=8) for n, sign in enumerate(signs)]
    which, right = ("first", signs[0]) if variant % 2 else ("last", signs[-1])
    wrong = [sign.value for sign in signs if sign is not right] + [right.options[0]]
    unseen = next(option for option in right.options if option not in {sign.value for sign in signs})
    event = f"Three signs show up one after the other over {shot.photograph.phrase}"
    choices = material.lettered(right.value, [*wrong[:2], unseen], place=variant, rng=rng)
    return Film((shot,), "object", f"{event}. What is on the one that comes {which}?", choices, tuple(moments))


def _cut(rng: Random, variant: int) -> Film:
    place_after, before = 1 + variant % 3, FILMED[variant * 3 % len(FILMED)]
    names = rng.sample([name for name in FILMED if name != before], 3)
    names.insert(place_after - 1, before)
    images = [material.PHOTOGRAPHS[name] for name in names]
    cuts = [0, *(12 * place + rng.randrange(-2, 3) for place in (1, 2, 3)), N_FRAMES]
    shots = tuple(_shot(rng, image, first=cuts[place], end=cuts[place + 1]) for place, image in enumerate(images))
    phrases = [image.phrase for image in images]
    question = f"The film shows several pictures. Which one is seen right after {phrases[place_after - 1]}?"
    unseen = next(material.PHOTOGRAPHS[name].phrase for name in FILMED if name not in names)
    wrong = [phrase for place, phrase in enumerate(phrases) if place not in (place_after, place_after - 1)]
    choices = material.lettered(phrases[place_after], [*wrong, unseen], place=variant, rng=rng)
    around = (place_after - 1, place_after)
    moments = tuple(TemporalSegment(phrases[place], cuts[place], cuts[place + 1]) for place in around)
    return Film(shots, "order", question, choices, moments)


KINDS: tuple[Callable[[Random, int], Film], ...] = (_sign, _count, _order, _cut)


def _shot(rng: Random, photograph: material.Photograph, *, first: int = 0, end: int = N_FRAMES) -> Shot:
    x, y = rng.choice((0.0, 1.0)), rng.random()
    return Shot(photograph, first, end, (x, y, 1 - x, rng.random()))


def _put(rng: Random, shot: Shot, target: Target, *, first: int, n_frames: int) -> TemporalSegment:
    """Lets a thing show up at a seeded place of the frame."""
    moment = TemporalSegment(target.label, first, first + n_frames)
    at = rng.randrange(12, WIDTH - target.image.width - 12), rng.randrange(12, HEIGHT - target.image.height - 12)
    shot.seen.append((target, at, moment))
    return moment


def _large(target: Target) -> Target:
    size = target.image.width * 2, target.image.height * 2
    return target._replace(image=target.image.resize(size, Image.Resampling.LANCZOS))

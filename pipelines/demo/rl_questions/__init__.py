"""The embedded source ``demo_rl``: RL prompts with every kind of answer, and rows that the RL stages must find out.

No download, no key: problems in words and questions about small sheets that are drawn over scikit-image's and
scikit-learn's photographs; ``planted`` rows say in ``truth.details`` what is wrong with them, spoiled ones fail intake.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import ClassVar

from darkroom.pipelines.demo.images import material
from darkroom.pipelines.demo.rl_questions import readings, shapes
from darkroom.pipelines.demo.rl_questions.questions import (
    COLOURS,
    WORDS,
    DrawnKind,
    DrawnQuestion,
    as_row,
    questions,
    sheet,
    write,
)
from darkroom.pipelines.demo.rl_questions.word_problems import ARITHMETIC, CONSTRUCTIONS, problem, problems
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.sources import BadRow, SourceRow

_FALSIFIED: tuple[DrawnKind, ...] = (shapes.colour_of_a_shape, readings.plate, shapes.number_of_shapes, readings.dial)
_MIXED_UP: tuple[DrawnKind, ...] = (readings.board, readings.dial, readings.plate, readings.board, readings.plate)
"""What is asked about sheets that show none of it."""


def planted(seed: int) -> list[material.LazyRow]:
    """All of them by name, not drawn yet."""
    builders: list[tuple[str, Callable[[str, Random], SourceRow]]] = [
        *((f"wrong_label/{n:02d}", partial(_wrong_label, kind, n)) for n, kind in enumerate(_FALSIFIED)),
        *((f"wrong_label/{4 + n:02d}", partial(_wrong_result, n)) for n in range(2)),
        *((f"mismatch/{n:02d}", partial(_mismatch, kind, n)) for n, kind in enumerate(_MIXED_UP)),
        *((f"outside_knowledge/{n:02d}", partial(_outside_knowledge, n)) for n in range(len(WORDS["looked_up"]))),
        *((f"trivial/{n:02d}", partial(_trivial, n)) for n in range(4)),
        *((f"ambiguous/{n:02d}", partial(_ambiguous, n)) for n in range(3)),
    ]
    return [material.LazyRow(row, partial(_planted, make, row, Random(f"{seed}/{row}"))) for row, make in builders]


def _planted(make: Callable[[str, Random], SourceRow], row: str, rng: Random) -> SourceRow:
    return material.with_details(make(row, rng), planted=row.partition("/")[0])


def _wrong_label(kind: DrawnKind, n: int, row: str, rng: Random) -> SourceRow:
    return _falsified(as_row(row, kind(rng, 20 + n)))


def _wrong_result(n: int, row: str, rng: Random) -> SourceRow:
    return _falsified(problem(row, (CONSTRUCTIONS[1], ARITHMETIC[3])[n], rng, 7 + n, suitable=not n))


def _falsified(source_row: SourceRow) -> SourceRow:
    right = source_row.answer
    if source_row.choices:
        wrong = next(choice[0] for choice in source_row.choices if choice[0] != right)
    else:
        wrong = "".join(str((int(sign) + 1) % 10) if sign.isdigit() else sign for sign in right)
        wrong = wrong if wrong != right else f"OLD {right}"
    return material.with_details(replace(source_row, answer=wrong), true_answer=right)


def _mismatch(kind: DrawnKind, n: int, row: str, rng: Random) -> SourceRow:
    """The question about one sheet, with another sheet: shapes, of which it does not speak."""
    question, replacement = kind(rng, 43 + n), shapes.colour_of_a_shape(rng, n)
    return as_row(row, question._replace(image=replacement.image, target=None, license=replacement.license))


def _outside_knowledge(n: int, row: str, rng: Random) -> SourceRow:
    name, question, answer = WORDS["looked_up"][n]
    image = material.photograph_image(name)
    part = image.crop((rng.randrange(image.width // 8), 0, image.width, image.height))
    part.thumbnail((480, 480))
    return as_row(row, DrawnQuestion(part, question, answer, "knowledge", material.PHOTOGRAPHS[name].license))


def _trivial(n: int, row: str, rng: Random) -> SourceRow:
    on = sheet(rng)
    colour = tuple(COLOURS)[n]
    on.draw.ellipse((60, 10, 400, 350), fill=COLOURS[colour])
    wrong = [name for name in COLOURS if name != colour][:3]
    what = ("disc", "big dot", "circle", "ball")[n]
    choices = material.lettered(colour, wrong, place=n, rng=rng)
    return as_row(row, on.asks(f"Which colour has the one {what} that fills this picture?", choices, "attribute"))


def _ambiguous(n: int, row: str, rng: Random) -> SourceRow:
    """Two things of the kind that is asked about as if there were one."""
    on, pair = sheet(rng), rng.sample(tuple(COLOURS), 2)
    for place, colour in enumerate(pair):
        x = 90 + 200 * place
        on.draw.rectangle((x, 120, x + 110, 240), fill=COLOURS[colour])
        write(on.draw, (x + 55, 180), str(rng.randrange(10, 99)), 30)
    return as_row(row, on.asks(WORDS["ambiguous"][n], pair[0], "attribute"))


def spoiled(rows: Sequence[material.LazyRow]) -> list[material.LazyRow]:
    """Copies of the first and the last of ``rows``, and the last with half of its image."""
    first, last = rows[0], rows[-1]
    return [
        material.LazyRow("copy/00", lambda: replace(first.build(), row="copy/00")),
        material.LazyRow("copy/01", lambda: replace(last.build(), row="copy/01")),
        material.LazyRow("cut/00", partial(_cut, last)),
    ]


def _cut(row: material.LazyRow) -> SourceRow:
    whole = row.build()
    (image,) = whole.images
    return replace(whole, row="cut/00", images=(image[: len(image) // 2],))


DEMO_RL_VERSION = "2"
PACKAGES = ("matplotlib", "pillow", "scikit-image", "scikit-learn")
N_CONSTRUCTIONS, N_ARITHMETIC = 5, 5
"""Of each of their kinds."""
DRAWN: dict[str, tuple[DrawnKind, int]] = {
    "colour": (shapes.colour_of_a_shape, 12),
    "form": (shapes.form_of_a_shape, 6),
    "place": (shapes.place_of_a_shape, 14),
    "count": (shapes.number_of_shapes, 10),
    "letters": (shapes.letters_on_shapes, 8),
    "plate": (readings.plate, 20),
    "board": (readings.board, 7),
    "ruler": (readings.ruler, 7),
    "dial": (readings.dial, 7),
    "thermometer": (readings.thermometer, 6),
    "triangle": (shapes.right_triangle, 4),
    "sector": (shapes.sector, 4),
    "share": (shapes.share, 3),
    "line": (shapes.line, 4),
    "contact": (readings.place_of_a_photograph, 7),
    "photograph": (readings.box_of_a_photograph, 5),
    "route": (readings.route, 6),
}
"""Kinds of questions about drawn images, with their numbers of rows."""


@dataclass(frozen=True, slots=True)
class DemoRLSource:
    """Problems, questions about drawn sheets, planted errors and spoiled files, in one shard; ``seed`` varies them."""

    name: ClassVar[str] = "demo_rl"
    language: ClassVar[str] = "en"
    n_shards: ClassVar[int] = 1
    used_for: ClassVar[tuple[str, ...]] = ("rl",)

    seed: int = 0

    def __post_init__(self) -> None:
        material.require_packages()

    @property
    def fingerprint(self) -> str:
        """Digest of the seed, ``DEMO_RL_VERSION`` and the versions of the packages that determine the bytes."""
        return digest([DEMO_RL_VERSION, self.seed, {package: material.installed(package) for package in PACKAGES}])

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """All rows, each built when it is reached. Raises ``ValueError`` for another shard than 0."""
        if shard != 0:
            raise ValueError(f"demo_rl has the one shard 0; found {shard}")
        good = [
            *problems("construction", CONSTRUCTIONS, N_CONSTRUCTIONS, suitable=True, seed=self.seed),
            *problems("reckoning", ARITHMETIC, N_ARITHMETIC, suitable=False, seed=self.seed),
            *(row for name, (kind, n) in DRAWN.items() for row in questions(name, kind, n, self.seed)),
        ]
        return (material.built(row) for row in [*good, *planted(self.seed), *spoiled(good)])

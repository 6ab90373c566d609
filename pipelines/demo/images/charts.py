"""Charts that matplotlib draws of scikit-learn's bundled tables, whose values decide the answers. ``truth.boxes`` is
what decides: all that is compared, or the outermost of many points, from the artist's own extent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from PIL import Image

from darkroom.pipelines.demo.images import material
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.records.geometry import Box, box_from_corners
from darkroom.pipelines.sources import SourceRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg

INCHES, DPI = (10, 6.4), 110
PAINTS = ("#4c78a8", "#b07aa1", "#59a14f", "#e1812c", "#8c6d4f")
IRIS = ("sepal length", "sepal width", "petal length", "petal width")
SPECIES = ("setosa", "versicolor", "virginica")
EXERCISES = ("chin-ups", "sit-ups", "jumps")
PHYSIOLOGY = ("weight", "waist", "pulse")
# columns of wine_data.csv, in the order of descr/wine_data.rst
WINE = {"total phenols": 5, "flavanoids": 6, "nonflavanoid phenols": 7, "proanthocyanins": 8, "hue": 10}


class Ask(NamedTuple):
    """A question about a chart, the answer, and the function that finds the deciding part (pixels) once it is drawn."""

    question: str
    choices: material.Choices
    label: str
    find: Callable[[FigureCanvasAgg], Box]


Plot = Callable[["Axes", Random, int, int], list[Ask]]
"""Draws a chart and returns what is asked of it, its own question first. The last two arguments: the place of the right
choice, and which chart of this kind it is, from 0."""


def charts(seed: int) -> list[material.LazyRow]:
    """All questions about the charts by name, not drawn yet."""
    return material.rows_by_image("chart", _chart, [drawing.n_questions for drawing in PLOTS], seed)


class Drawing(NamedTuple):
    """A chart: which of its kind it is, and how many of its questions are asked."""

    plot: Plot
    turn: int
    n_questions: int


def _chart(row: str, number: int, n: int, seed: int) -> SourceRow:
    image, asks = _drawn(number, seed)
    ask, box = asks[n]
    truth = Truth(boxes=(TruthBox(ask.label, *box),))
    return material.image_row(row, image, ask.question, ask.choices, truth, category="chart", license="BSD-3-Clause")


@lru_cache(maxsize=2)
def _drawn(number: int, seed: int) -> tuple[bytes, list[tuple[Ask, Box]]]:
    import matplotlib.style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    plot, turn, _ = PLOTS[number]
    first = next(place for place, drawing in enumerate(PLOTS) if drawing.plot is plot)
    # a user's matplotlibrc must not change the image
    with matplotlib.style.context("default"):
        canvas = FigureCanvasAgg(Figure(figsize=INCHES, dpi=DPI))
        asks = plot(canvas.figure.add_subplot(), Random(f"{seed}/chart/{first:02d}"), number + seed, turn)
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels = bytes(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
        image = Image.frombuffer("RGBA", canvas.get_width_height(), pixels).convert("RGB")
        return material.jpeg_bytes(image, quality=95), [(ask, ask.find(canvas)) for ask in asks]


RANKS = {"largest": -1, "smallest": 0, "second largest": -2, "second smallest": 1, "third largest": -3}
APART = 0.015
"""Of the largest value: how far a value is from all others that a question may ask for."""


def _ranked(values: Sequence[float], own: str, more: str, *, own_rank: str = "largest") -> list[tuple[str, int]]:
    """The chart's ``own`` question and ``more`` about other ranks, each with the place of the value that it means."""
    order = sorted(range(len(values)), key=values.__getitem__)
    first = order[RANKS[own_rank]]
    least = APART * max(values)
    ranked = ((more.format(words), order[rank]) for words, rank in RANKS.items() if order[rank] != first)
    is_apart = [sum(abs(value - neighbour) <= least for neighbour in values) == 1 for value in values]
    return [(own, first), *((question, at) for question, at in ranked if is_apart[at])]


def _plot_area(axes: Axes, canvas: FigureCanvasAgg) -> Box:
    """All that has to be compared: the largest of several is not told by a look at itself."""
    extent = axes.get_window_extent()
    height = canvas.get_width_height()[1]
    return box_from_corners((extent.x0, height - extent.y1, extent.x1, height - extent.y0))


def _point_box(axes: Axes, x: float, y: float, canvas: FigureCanvasAgg, radius: int = 7) -> Box:
    across, up = axes.transData.transform((x, y))
    down = canvas.get_width_height()[1] - up
    return Box(round(across) - radius, round(down) - radius, round(across) + radius, round(down) + radius)


def _numbers(name: str) -> list[list[float]]:
    return [[float(value) for value in row if value] for row in material.table(name)[1:]]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _iris_means(axes: Axes, rng: Random, place: int, turn: int) -> list[Ask]:
    species = (rng.randrange(3) + turn) % 3
    rows = [row for row in _numbers("iris") if row[4] == species]
    means = [_mean([row[column] for row in rows]) for column in range(4)]
    axes.bar(IRIS, means, color=rng.choice(PAINTS), width=0.62)
    axes.set(title=f"Iris {SPECIES[species]}: mean measurements", ylabel="centimetres")
    more = f"Which measurement of Iris {SPECIES[species]} has the {{}} mean?"
    ranked = _ranked(means, more.format("second smallest"), more, own_rank="second smallest")
    return _asks(ranked, axes, _named(IRIS, place, rng))


def _named(names: Sequence[str], place: int, rng: Random) -> Callable[[int, int], material.Choices]:
    """Choices of bars without an order, by their names; ``place`` is the first right choice's."""
    return lambda n, at: material.lettered(names[at], [*names[:at], *names[at + 1 :]], place=place + n, rng=rng)


def _asks(ranked: Sequence[tuple[str, int]], axes: Axes, choices: Callable[[int, int], material.Choices]) -> list[Ask]:
    """``choices``: of the n-th question, with the place of the value that it means."""
    find = partial(_plot_area, axes)
    return [Ask(question, choices(n, at), "plot", find) for n, (question, at) in enumerate(ranked)]


def _wine_means(axes: Axes, rng: Random, place: int, turn: int) -> list[Ask]:
    cultivar = (rng.randrange(3) + turn) % 3
    rows = [row for row in _numbers("wine_data") if row[13] == cultivar]
    means = {name: _mean([row[column] for row in rows]) for name, column in WINE.items()}
    names = rng.sample(sorted(means), len(means))
    axes.barh(names, [means[name] for name in names], color=rng.choice(PAINTS), height=0.55)
    axes.set(title=f"Wines of cultivar {cultivar + 1}", xlabel="mean of the analyses")
    axes.figure.subplots_adjust(left=0.22)
    which = f"Which constituent of the wines of cultivar {cultivar + 1} has the"
    ranked = _ranked([means[name] for name in names], f"{which} longest bar?", f"{which} {{}} mean?")
    return _asks(ranked, axes, _named(names, place, rng))


def _iris_scatter(axes: Axes, rng: Random, place: int, turn: int) -> list[Ask]:
    paints = rng.sample(PAINTS, 3)
    rows = _numbers("iris")
    for species, paint in enumerate(paints):
        of = [row for row in rows if row[4] == species]
        axes.scatter([row[0] for row in of], [row[1] for row in of], s=34, color=paint, label=SPECIES[species])
    axes.legend(title="Iris")
    axes.set(title="Sepals of 150 irises", xlabel="sepal length (cm)", ylabel="sepal width (cm)")
    by_length, by_width = (sorted(rows, key=itemgetter(column)) for column in (0, 1))
    extremes = {"widest": by_width[-1], "longest": by_length[-1], "narrowest": by_width[0], "shortest": by_length[0]}
    question = "To which species does the iris with the {} sepal belong?"
    return [
        Ask(
            question.format(which),
            material.Choices((), SPECIES[int(species)]),
            "point",
            partial(_point_box, axes, x, y),
        )
        for which, (x, y, _, _, species) in extremes.items()
    ]


def _exercise_line(axes: Axes, rng: Random, place: int, turn: int) -> list[Ask]:
    column = (rng.choice((0, 1)) + turn) % 2 + 1
    counts = [row[column] for row in _numbers("linnerud_exercise")]
    people = range(1, len(counts) + 1)
    axes.plot(people, counts, marker="o", color=rng.choice(PAINTS))
    axes.set(title=f"{EXERCISES[column].capitalize()} of twenty men", xlabel="participant", xticks=list(people))
    axes.grid(axis="y", alpha=0.4)
    own = f"Which participant did the most {EXERCISES[column]}? Give the number."
    more = f"Which participant did the {{}} number of {EXERCISES[column]}? Give the participant's number."
    return _asks(_ranked(counts, own, more), axes, lambda _, at: material.Choices((), str(at + 1)))


def _pulse_bars(axes: Axes, rng: Random, place: int, turn: int) -> list[Ask]:
    column = (rng.randrange(3) + turn) % 3
    values = [row[column] for row in _numbers("linnerud_physiological")]
    people = list(range(1, len(values) + 1))
    axes.bar(people, values, color=rng.choice(PAINTS))
    axes.set(title=f"Linnerud: {PHYSIOLOGY[column]} of twenty men", xlabel="participant", xticks=people)
    own = f"Whose {PHYSIOLOGY[column]} is the highest? Give the number of the participant."
    more = f"Which participant's {PHYSIOLOGY[column]} is the {{}} of all twenty? Give the number."
    return _asks(_ranked(values, own, more), axes, lambda _, at: material.Choices((), str(at + 1)))


def _radius_bins(axes: Axes, rng: Random, place: int, turn: int) -> list[Ask]:
    edges = (6, 8, 10, 12, 14, 16, 18)
    radii = [row[0] for row in _numbers("breast_cancer") if row[-1] == 1]
    names = [f"{low} to {high}" for low, high in itertools.pairwise(edges)]
    counts = [sum(low <= radius < high for radius in radii) for low, high in itertools.pairwise(edges)]
    axes.bar(names, counts, color=rng.choice(PAINTS), width=0.94)
    axes.set(title="Benign tumours by mean radius", xlabel="mean radius", ylabel="tumours")
    own = "In which range of the mean radius do most benign tumours lie?"
    more = "Which range of the mean radius holds the {} number of benign tumours?"
    return _asks(_ranked(counts, own, more), axes, lambda _, at: material.in_order(names[at], names))


PLOTS = (
    *(Drawing(plot, 0, 4) for plot in (_iris_means, _wine_means, _iris_scatter, _exercise_line)),
    *(Drawing(plot, 0, 3) for plot in (_pulse_bars, _radius_bins)),
    *(Drawing(plot, turn, 4) for plot in (_iris_means, _wine_means) for turn in (1, 2)),
    *(Drawing(_pulse_bars, turn, 3) for turn in (1, 2)),
    Drawing(_exercise_line, 1, 4),
)
"""A kind has as many questions as its values have places without a tie."""

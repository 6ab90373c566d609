"""Charts that matplotlib draws of scikit-learn's bundled tables, with questions whose answers the tables decide.

``truth.boxes`` is the bar or the marker that decides the answer, from the artist's own extent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from PIL import Image

from pipelines.demo.images.material import Choices, LazyRow, in_order, jpeg_bytes, lazy_rows, lettered, table
from pipelines.records import Truth, TruthBox
from pipelines.records.geometry import Box
from pipelines.sources import SourceRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.patches import Rectangle

INCHES, DPI = (10, 6.4), 110
PAINTS = ("#4c78a8", "#b07aa1", "#59a14f", "#e1812c", "#8c6d4f")
IRIS = ("sepal length", "sepal width", "petal length", "petal width")
SPECIES = ("setosa", "versicolor", "virginica")
EXERCISES = ("chin-ups", "sit-ups", "jumps")
PHYSIOLOGY = ("weight", "waist", "pulse")
# columns of wine_data.csv, in the order of descr/wine_data.rst
WINE = {"total phenols": 5, "flavanoids": 6, "nonflavanoid phenols": 7, "proanthocyanins": 8, "hue": 10}


class Read(NamedTuple):
    """What is asked of a chart, the answer, and the part of it (pixels of the image) that decides."""

    question: str
    choices: Choices
    label: str
    box: Box


Plot = Callable[["Axes", Random, int], tuple[str, Choices, str, Callable[["FigureCanvasAgg"], Box]]]


def charts(seed: int) -> list[LazyRow]:
    """The charts by name, not drawn yet."""
    return lazy_rows("chart", _chart, range(len(PLOTS)), seed)


def _chart(row: str, number: int, seed: int) -> SourceRow:
    image, read = _drawn(PLOTS[number], Random(f"{seed}/{row}"), number + seed)
    return SourceRow(
        row=row,
        images=(jpeg_bytes(image, quality=95),),
        question=read.question,
        answer=read.choices.answer,
        choices=read.choices.options,
        truth=Truth(boxes=(TruthBox(read.label, *read.box),)),
        category="chart",
        license="BSD-3-Clause",
    )


def _drawn(plot: Plot, rng: Random, place: int) -> tuple[Image.Image, Read]:
    import matplotlib.style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # a user's matplotlibrc must not change the image
    with matplotlib.style.context("default"):
        canvas = FigureCanvasAgg(Figure(figsize=INCHES, dpi=DPI))
        axes = canvas.figure.add_subplot()
        question, choices, label, find = plot(axes, rng, place)
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels = bytes(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
        image = Image.frombuffer("RGBA", canvas.get_width_height(), pixels).convert("RGB")
        return image, Read(question, choices, label, find(canvas))


def _patch_box(patch: Rectangle, canvas: FigureCanvasAgg) -> Box:
    extent = patch.get_window_extent(canvas.get_renderer())  # type: ignore[no-untyped-call]
    height = canvas.get_width_height()[1]
    return Box(
        math.floor(extent.x0), math.floor(height - extent.y1), math.ceil(extent.x1), math.ceil(height - extent.y0)
    )


def _point_box(axes: Axes, x: float, y: float, radius: int, canvas: FigureCanvasAgg) -> Box:
    across, up = axes.transData.transform((x, y))
    down = canvas.get_width_height()[1] - up
    return Box(round(across) - radius, round(down) - radius, round(across) + radius, round(down) + radius)


def _numbers(name: str, *, skip: int = 1) -> list[list[float]]:
    return [[float(value) for value in row if value] for row in table(name)[skip:]]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _iris_means(axes: Axes, rng: Random, place: int) -> tuple[str, Choices, str, Callable[[FigureCanvasAgg], Box]]:
    species = rng.randrange(3)
    rows = [row for row in _numbers("iris") if row[4] == species]
    means = [_mean([row[column] for row in rows]) for column in range(4)]
    bars = axes.bar(IRIS, means, color=rng.choice(PAINTS), width=0.62)
    axes.set(title=f"Iris {SPECIES[species]}: mean measurements", ylabel="centimetres")
    middle = sorted(range(4), key=means.__getitem__)[1]
    question = f"Which measurement of Iris {SPECIES[species]} has the second smallest mean?"
    wrong = [name for name in IRIS if name != IRIS[middle]]
    choices = lettered(IRIS[middle], wrong, place=place, rng=rng)
    return question, choices, "bar", partial(_patch_box, bars[middle])


def _wine_means(axes: Axes, rng: Random, place: int) -> tuple[str, Choices, str, Callable[[FigureCanvasAgg], Box]]:
    cultivar = rng.randrange(3)
    rows = [row for row in _numbers("wine_data") if row[13] == cultivar]
    means = {name: _mean([row[column] for row in rows]) for name, column in WINE.items()}
    names = rng.sample(sorted(means), len(means))
    bars = axes.barh(names, [means[name] for name in names], color=rng.choice(PAINTS), height=0.55)
    axes.set(title=f"Wines of cultivar {cultivar + 1}", xlabel="mean of the analyses")
    axes.figure.subplots_adjust(left=0.22)
    best = max(names, key=means.__getitem__)
    question = f"Which constituent of the wines of cultivar {cultivar + 1} has the longest bar?"
    choices = lettered(best, [name for name in names if name != best], place=place, rng=rng)
    return question, choices, "bar", partial(_patch_box, bars[names.index(best)])


def _iris_scatter(axes: Axes, rng: Random, place: int) -> tuple[str, Choices, str, Callable[[FigureCanvasAgg], Box]]:
    paints = rng.sample(PAINTS, 3)
    rows = _numbers("iris")
    for species, paint in enumerate(paints):
        of = [row for row in rows if row[4] == species]
        axes.scatter([row[0] for row in of], [row[1] for row in of], s=34, color=paint, label=SPECIES[species])
    axes.legend(title="Iris")
    axes.set(title="Sepals of 150 irises", xlabel="sepal length (cm)", ylabel="sepal width (cm)")
    widest = max(rows, key=lambda row: row[1])
    question = "To which species does the iris with the widest sepal belong?"
    find = partial(_point_box, axes, widest[0], widest[1], 7)
    return question, Choices((), SPECIES[int(widest[4])]), "point", find


def _exercise_line(axes: Axes, rng: Random, place: int) -> tuple[str, Choices, str, Callable[[FigureCanvasAgg], Box]]:
    column = rng.choice((1, 2))
    counts = [row[column] for row in _numbers("linnerud_exercise")]
    people = range(1, len(counts) + 1)
    axes.plot(people, counts, marker="o", color=rng.choice(PAINTS))
    axes.set(title=f"{EXERCISES[column].capitalize()} of twenty men", xlabel="participant", xticks=list(people))
    axes.grid(axis="y", alpha=0.4)
    best = max(people, key=lambda person: counts[person - 1])
    question = f"Which participant did the most {EXERCISES[column]}? Give the number."
    return question, Choices((), str(best)), "point", partial(_point_box, axes, best, counts[best - 1], 8)


def _pulse_bars(axes: Axes, rng: Random, place: int) -> tuple[str, Choices, str, Callable[[FigureCanvasAgg], Box]]:
    column = rng.randrange(3)
    values = [row[column] for row in _numbers("linnerud_physiological")]
    people = list(range(1, len(values) + 1))
    bars = axes.bar(people, values, color=rng.choice(PAINTS))
    axes.set(title=f"Linnerud: {PHYSIOLOGY[column]} of twenty men", xlabel="participant", xticks=people)
    best = max(people, key=lambda person: values[person - 1])
    question = f"Whose {PHYSIOLOGY[column]} is the highest? Give the number of the participant."
    return question, Choices((), str(best)), "bar", partial(_patch_box, bars[best - 1])


def _radius_bins(axes: Axes, rng: Random, place: int) -> tuple[str, Choices, str, Callable[[FigureCanvasAgg], Box]]:
    edges = (6, 8, 10, 12, 14, 16, 18)
    radii = [row[0] for row in _numbers("breast_cancer") if row[-1] == 1]
    names = [f"{low} to {high}" for low, high in itertools.pairwise(edges)]
    counts = [sum(low <= radius < high for radius in radii) for low, high in itertools.pairwise(edges)]
    bars = axes.bar(names, counts, color=rng.choice(PAINTS), width=0.94)
    axes.set(title="Benign tumours by mean radius", xlabel="mean radius", ylabel="tumours")
    best = max(range(len(counts)), key=counts.__getitem__)
    question = "In which range of the mean radius do most benign tumours lie?"
    return question, in_order(names[best], names), "bar", partial(_patch_box, bars[best])


PLOTS: tuple[Plot, ...] = (_iris_means, _wine_means, _iris_scatter, _exercise_line, _pulse_bars, _radius_bins)

"""Pages of print with a question about one marked word or line, which ``truth.boxes`` holds: scikit-image's scan, and
prose set on paper here (the Zen of Python and scikit-learn's texts on its data sets)."""

import codecs
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, zip_longest
from random import Random
from typing import Any, NamedTuple

from PIL import Image, ImageDraw, ImageFilter

from darkroom.pipelines.demo import data_beside, nth_form
from darkroom.pipelines.demo.images import material
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.sources import SourceRow

WIDTH, HEIGHT, MARGIN = 1654, 2339, 190
TYPE_SIZE, LEADING = 28, 48
INK = (44, 40, 40)
PENCIL = (176, 38, 40)
ZEN = "zen"
ORDINALS = ("first", "second", "third", "fourth", "fifth")


class Word(NamedTuple):
    """A printed word with its punctuation, where it was set, and where its ink is."""

    text: str
    at: tuple[int, int]
    box: Box

    @property
    def bare(self) -> str:
        return self.text.strip(".,;:!?()[]\"'-*")


class PageLine(NamedTuple):
    """A printed line; ``paragraph`` counts from 1."""

    paragraph: int
    words: tuple[Word, ...]

    @property
    def box(self) -> Box:
        """The ink of the whole line."""
        x1s, y1s, x2s, y2s = zip(*(word.box for word in self.words), strict=True)
        return Box(min(x1s), min(y1s), max(x2s), max(y2s))


class Marked(NamedTuple):
    """A mark on the page with what it is about, and a question about it."""

    answer: str
    label: str
    box: Box
    question: str = ""
    category: str = "OCR"
    line: tuple[Word, ...] = ()
    """The words of a marked line."""


Mark = Callable[[ImageDraw.ImageDraw, Sequence[PageLine], Random], Marked]


def pages(seed: int) -> list[material.LazyRow]:
    """A question about each page by name, not set yet, and ``N_MORE`` further ones about each that is set here."""
    return material.rows_by_image("page", _row, [1] + [1 + N_MORE] * len(SET_PAGES), seed)


N_MORE = 3
_WORDINGS = data_beside(__file__)
SET_PAGES: Sequence[Mapping[str, Any]] = _WORDINGS.pop("pages")


def _scan(name: str) -> SourceRow:
    question = "According to this page, how can we label the marker pixels as either object or background?"
    image, license = material.photograph_bytes("page"), material.PHOTOGRAPHS["page"].license
    truth = Truth(boxes=(TruthBox("word", 3, 81, 104, 100),))
    return material.image_row(name, image, question, "unambiguously", truth, category="OCR", license=license)


def _zen() -> list[str]:
    """The Zen of Python, read from the module's source: importing ``this`` prints it."""
    encoded = material.packaged_bytes("this", "this.py").decode("ascii").split('"""')[1]
    return [line for line in codecs.decode(encoded, "rot13").splitlines() if line]


def _description(name: str) -> list[str]:
    """The plain paragraphs of one of scikit-learn's data set descriptions."""
    text = material.packaged_bytes("sklearn", f"datasets/descr/{name}.rst").decode("utf-8")
    blocks = [block.strip("\n") for block in re.split(r"\n\s*\n", text)]
    plain = [block for block in blocks if re.match(r"[A-Z`]", block) and not re.search(r"\n[ \-=~:.]|::$|http", block)]
    flat = [re.sub(r":\w+:|[`*~]|_(?=\W)", "", " ".join(block.split())) for block in plain]
    return [re.sub(r"\s*<[^>]*>|\s*\[\d\]", "", paragraph) for paragraph in flat if len(paragraph) > 90]


def _row(name: str, number: int, n: int, seed: int) -> SourceRow:
    if not number:
        return _scan(name)
    image, license, marks = _drawn(number, seed)
    marked = marks[n]
    count = int(marked.answer) if marked.category == "quantity" else None
    truth = Truth(boxes=(TruthBox(marked.label, *marked.box),), count=count)
    return material.image_row(
        name, image, marked.question, marked.answer, truth, category=marked.category, license=license
    )


@lru_cache(maxsize=2)
def _drawn(number: int, seed: int) -> tuple[bytes, str, list[Marked]]:
    """A page, its licence, its own question and what else can be asked of it: drawn once for all."""
    row = f"page/{number:02d}"
    texts, label = SET_PAGES[number - 1].values()
    rng = Random(f"{seed}/{row}")
    page = _paper(rng)
    draw = ImageDraw.Draw(page)
    paragraphs = [paragraph for text in texts for paragraph in (_zen() if text == ZEN else _description(text))]
    lines = _set_lines(draw, paragraphs)
    questions = _questions(MARKS[label](draw, lines, rng), number)
    more = _more(draw, lines, questions, number, Random(f"{seed}/{row}/more"))
    license = material.PUBLIC_DOMAIN if texts == [ZEN] else "BSD-3-Clause"
    return material.jpeg_bytes(page.filter(ImageFilter.BoxBlur(0.4))), license, [questions[-1], *more]


def _more(
    draw: ImageDraw.ImageDraw, lines: Sequence[PageLine], questions: list[Marked], number: int, rng: Random
) -> list[Marked]:
    """Marks of other kinds on lines without one, and all that can be asked about them and the page's own mark, but for
    the last of its ``questions``, the page's first."""
    *others, own = questions
    by_mark, boxes = [others], [own.box]
    for label in _WORDINGS:
        free = [line for line in lines if not any(line.box.grown(12).intersection(box).area for box in boxes)]
        if own.label == "last word":  # the signs of paragraphs stand where arrows and crosses do
            free = [line for above, line in pairwise(free) if above.paragraph == line.paragraph]
        if label != own.label:
            marked = MARKS[label](draw, free, rng)
            boxes.append(marked.box)
            by_mark.append(_questions(marked, number))
    return [marked for turn in zip_longest(*by_mark) for marked in turn if marked]


def _questions(marked: Marked, number: int) -> list[Marked]:
    """All questions about a mark: about words of its line, and last about the whole."""
    if marked.question:
        return [marked]
    says = _WORDINGS[marked.label]
    wording = nth_form(says.get("word", [""]), number)
    words = [
        marked._replace(question=wording.format(ordinal=ordinal), answer=word.bare, category="OCR")
        for ordinal, word in zip(ORDINALS, marked.line, strict=False)
        if len(word.bare) > 4 and word.bare.isalpha()
    ]
    return [*words, marked._replace(question=nth_form(says["whole"], number))]


def _of_line(label: str, line: PageLine) -> Marked:
    return Marked(str(len(line.words)), label, line.box, category="quantity", line=line.words)


def _paper(rng: Random) -> Image.Image:
    rough = (
        material.texture("gravel").rotate(90 * rng.randrange(4)).filter(ImageFilter.BoxBlur(6)).resize((WIDTH, HEIGHT))
    )
    shade = Image.linear_gradient("L").rotate(90).resize((WIDTH, HEIGHT)).point([level // 14 for level in range(256)])
    light = rough.point([226 + level * 20 // 255 for level in range(256)])
    paper = Image.merge("RGB", [light.point([level - less for level in range(256)]) for less in (0, 3, 11)])
    paper.paste((150, 140, 124), (0, 0), shade.point([level * 5 for level in range(256)]))
    return paper


def _set_lines(draw: ImageDraw.ImageDraw, paragraphs: Sequence[str]) -> list[PageLine]:
    y = MARGIN
    lines: list[PageLine] = []
    for number, paragraph in enumerate(paragraphs, start=1):
        for words in _wrapped(paragraph):
            if y > HEIGHT - MARGIN:
                return lines
            lines.append(PageLine(number, tuple(_print_words(draw, words, y))))
            y += LEADING
        y += LEADING * 2 // 3
    return lines


def _wrapped(paragraph: str) -> list[list[str]]:
    face = material.font("DejaVuSerif", TYPE_SIZE)
    lines: list[list[str]] = [[]]
    for word in paragraph.split():
        if face.getlength(" ".join([*lines[-1], word])) > WIDTH - 2 * MARGIN:
            lines.append([])
        lines[-1].append(word)
    return lines


def _print_words(draw: ImageDraw.ImageDraw, words: Sequence[str], y: int) -> list[Word]:
    face = material.font("DejaVuSerif", TYPE_SIZE)
    printed = []
    for place, word in enumerate(words):
        x = MARGIN + round(face.getlength(" ".join([*words[:place], ""])))
        draw.text((x, y), word, fill=INK, font=face)
        x1, top, right, bottom = draw.textbbox((x, y), word, font=face)
        printed.append(Word(word, (x, y), Box(int(x1), int(top), int(right) + 1, int(bottom) + 1)))
    return printed


def _a_word(lines: Sequence[PageLine], rng: Random) -> Word:
    return rng.choice([word for line in lines for word in line.words if len(word.bare) > 5 and word.bare.isalpha()])


def _underlined(draw: ImageDraw.ImageDraw, lines: Sequence[PageLine], rng: Random) -> Marked:
    word = _a_word(lines, rng)
    box = word.box
    draw.line((box.x1 - 2, box.y2 + 4, box.x2 + 2, box.y2 + 3), fill=PENCIL, width=3)
    return Marked(word.bare, "underlined word", box.grown(6))


def _framed(draw: ImageDraw.ImageDraw, lines: Sequence[PageLine], rng: Random) -> Marked:
    word = _a_word(lines, rng)
    draw.rounded_rectangle(word.box.grown(5), 6, outline=(40, 70, 150), width=2)
    return Marked(word.bare, "boxed word", word.box.grown(5))


def _highlighted(draw: ImageDraw.ImageDraw, lines: Sequence[PageLine], rng: Random) -> Marked:
    word = _a_word(lines, rng)
    draw.rectangle(word.box.grown(4), fill=(238, 226, 92))
    draw.text(word.at, word.text, fill=INK, font=material.font("DejaVuSerif", TYPE_SIZE))
    return Marked(word.bare, "highlighted word", word.box.grown(4))


def _arrowed(draw: ImageDraw.ImageDraw, lines: Sequence[PageLine], rng: Random) -> Marked:
    long = [line for line in lines if len(line.words) >= 5]
    line = rng.choice([line for line in long if all(word.bare.isalpha() for word in line.words[:5])])
    x, y = MARGIN - 26, (line.box.y1 + line.box.y2) // 2
    draw.line((x - 60, y, x, y), fill=PENCIL, width=4)
    draw.polygon((x + 10, y, x - 8, y - 9, x - 8, y + 9), fill=PENCIL)
    return _of_line("line with an arrow", line)


def _crossed(draw: ImageDraw.ImageDraw, lines: Sequence[PageLine], rng: Random) -> Marked:
    line = rng.choice([line for line in lines if len(line.words) >= 5 and all(word.bare for word in line.words)])
    x, y = MARGIN - 40, (line.box.y1 + line.box.y2) // 2
    draw.line((x - 11, y - 11, x + 11, y + 11), fill=PENCIL, width=4)
    draw.line((x - 11, y + 11, x + 11, y - 11), fill=PENCIL, width=4)
    return _of_line("line with a cross", line)


def _last_word(draw: ImageDraw.ImageDraw, lines: Sequence[PageLine], rng: Random) -> Marked:
    paragraphs = sorted({line.paragraph for line in lines})[:-1]
    paragraph = rng.choice([number for number in paragraphs if number > 1])
    for number in paragraphs:
        first = next(line for line in lines if line.paragraph == number)
        draw.text(
            (MARGIN - 70, first.words[0].box.y1 - 6), f"§{number}", fill=PENCIL, font=material.font("DejaVuSans", 22)
        )
    word = [line for line in lines if line.paragraph == paragraph][-1].words[-1]
    question = f"What is the last word of the paragraph marked §{paragraph}?"
    return Marked(word.bare, "last word", word.box, question)


MARKS: Mapping[str, Mark] = {
    **{"line with an arrow": _arrowed, "line with a cross": _crossed, "underlined word": _underlined},
    **{"boxed word": _framed, "highlighted word": _highlighted, "last word": _last_word},
}

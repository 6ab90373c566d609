"""Privileged facts must not show: a trained model never has them, so an example must not lean on them.

Secret are the numbers of the hint and what follows from them. Public are numbers that anyone can read: in the question,
its choices and answer, and the images' sizes. Numbers of one digit are never secret. A trajectory that was converted
from a solution must not mention that solution.

Privileged facts show in five ways (``hint_phrases.toml``). Anywhere: a source outside of the image is named, or the
hint's own words and the order to hide it are repeated. Before the first look: certainty where nothing was seen yet,
coordinates and angles that cannot be seen, and what the look will show. A thought may guess ("roughly in the upper
left"), look ("the sign seems tilted") and measure in code. Measured by ``python -m measurements.leaks``.

A judge can read the thoughts for paraphrases that have none of these words. It costs votes, so it is off until asked
for (``DARKROOM_LEAK_JUDGE``). The judge sees the question and the thoughts, between fences, and no image, answer or
hint: what only they tell is measured elsewhere.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import cache

from darkroom.pipelines.models.parsing import parsed
from darkroom.pipelines.models.prompts import bundled_prompt, escaped, nonce
from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckResult, Flaw, by_votes, check, failed, judged, passed
from darkroom.pipelines.verification.grading.number_words import in_words
from darkroom.pipelines.verification.grading.word_lists import COMPILING, WordModel, plain_quotes, read_words
from darkroom.pipelines.verification.judges.judge import Judge, JudgeQuestion

PHRASES: dict[str, list[str]] = read_words(__file__, "hint_phrases")
"""The five ways, in five languages; ``name``: of names in code; ``solution``: an earlier one; ``planned``: a plan."""
LEAK_WORDS = WordModel(__file__, "leak")
"""Two linear models: ``anywhere``, and ``before`` the first look."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PATHS = re.compile(r"image_path(?:_\d+)?|video_path(?:_\d+)?")


@cache
def phrases(way: str) -> re.Pattern[str]:
    """One pattern of all of a way's, compiled when it is first asked for."""
    with COMPILING:
        return re.compile("|".join(PHRASES[way]), re.IGNORECASE)


def hint_phrase(text: str, *, by_model: bool = True) -> str | None:
    """The words by which a text refers to a hint; None when there are none."""
    return _first_of(("source", "pretence"), text) or (LEAK_WORDS.evidence(text, "anywhere") if by_model else None)


def unseen_phrase(thought: str, *, by_model: bool = True) -> str | None:
    """The words by which a thought before the first look is sure of what only the look can show; else None."""
    found = _first_of(("certain", "numbers", "foreseen"), thought)
    return found or (LEAK_WORDS.evidence(thought, "before") if by_model else None)


def _first_of(ways: Sequence[str], text: str) -> str | None:
    plain = plain_quotes(" ".join(text.split()))
    return next((match[0].strip() for way in ways if (match := phrases(way).search(plain))), None)


def reads_file_name(code: str) -> bool:
    """Return whether the code turns a part of an input's path into a number: then the path, not the image, tells it."""
    if (tree := parsed(code)) is None:
        return False
    numbers = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) in ("int", "float")]
    names = {name.id for call in numbers for name in ast.walk(call) if isinstance(name, ast.Name)}
    variables = _from_paths(tree)
    return any(_PATHS.fullmatch(name) or name in variables for name in names)


def tokens(code: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of code, as far as it can be read: code that does not parse fails ``executes``."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(code).readline)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return


def _from_paths(tree: ast.AST) -> set[str]:
    """Variables that are assigned from an input's path, also by way of others."""
    variables: set[str] = set()
    assignments = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and not _opened(node.value)]
    for node in assignments * 3:
        names = [name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)]
        if any(_PATHS.fullmatch(name) or name in variables for name in names):
            variables |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return variables


def _opened(value: ast.expr) -> bool:
    """Detect `Image.open(image_path)`, `cv2.imread(image_path)`: their value is the image."""
    calls = [_called(node) for node in ast.walk(value) if isinstance(node, ast.Call)]
    return any(call in ("open", "imread", "VideoReader") for call in calls)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def _names(code: str) -> list[str]:
    if (tree := parsed(code)) is None:
        return re.findall(r"[A-Za-z_]\w*", code)
    values = [getattr(node, field, None) for node in ast.walk(tree) for field in ("id", "attr", "arg", "name")]
    return [value for value in values if isinstance(value, str)]


_NUMBER = re.compile(r"(?<![\d.])\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ONLY_NUMBERS = re.compile(r"[\d\s.,;:()\[\]x-]+")
_LEAST = 10
_FRACTION_DIGITS = (2, 3, 4, 5)


def secret_numbers(case: Case) -> set[float]:
    """Numbers that may stand in programs and nowhere else."""
    secret = {number for value in case.hint.values() for number in _numbers_of_hint(value, case)}
    sizes = [f"{image.width} {image.height}" for image in case.trajectory.images]
    public = numbers_in(" ; ".join([case.sample.question, *case.sample.choices, case.sample.answer, *sizes]))
    return {number for number in secret if number >= _LEAST or number % 1} - public


def spelled(number: float) -> str | None:
    """Spell a whole number below ten thousand: ``forty-seven``, ``two hundred ten``; None for others."""
    return in_words(int(number)) if not number % 1 and _LEAST <= number < 10_000 else None


def numbers_in(text: str) -> set[float]:
    """The values of all numerals, a comma between three digits read as nothing and as a comma."""
    return {float(number) for read in (text, _THOUSANDS.sub("", text)) for number in _NUMBER.findall(read)}


def _numbers_of_hint(value: object, case: Case) -> Iterator[float]:
    """Numbers of a hint's value, where it is made of numbers: a solution in prose is not secret word by word."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return
    if isinstance(value, str) and not _ONLY_NUMBERS.fullmatch(value):
        return
    numbers = [float(number) for number in _NUMBER.findall(str(value))]
    yield from numbers
    if len(numbers) == 1 and 0 < numbers[0] < 360:
        yield 360 - numbers[0]
    if len(numbers) == 4:
        x1, y1, x2, y2 = numbers
        yield from (x2 - x1, y2 - y1)
        for image in case.trajectory.images[:1]:
            sides = (x1 / image.width, y1 / image.height, x2 / image.width, y2 / image.height)
            fractions = [side for side in sides if 0 < side < 1 and side * 10 % 1]
            yield from (round(side, digits) for side in fractions for digits in _FRACTION_DIGITS)


@check(version=4)
def hint_stays_hidden(case: Case) -> CheckResult:
    """No thought, comment or name repeats a number of the hint, speaks of being told, or reads it from a file's name.

    Numbers count however they are spelled (1200, 1,200, 1200.0, 1200x800, twelve hundred's digits in words), with what
    follows from them: a box's width and height and its corners as fractions, the angle that undoes an angle.
    """
    secret = secret_numbers(case)
    secret_words = {number: words.replace("-", " ") for number in secret if (words := spelled(number))}
    for where, text in case.texts("a comment", comments):
        if mention := hint_phrase(text):
            return failed(Flaw.HINT_MENTIONED, f"{where} says {mention!r}")
        plain = f" {' '.join(re.sub(r'[^a-z]+', ' ', text.lower()).replace(' and ', ' ').split())} "
        in_words = {number for number, words in secret_words.items() if f" {words} " in plain}
        if leaked := sorted(in_words | secret.intersection(numbers_in(text))):
            numbers = ", ".join(f"{number:g}" for number in leaked)
            return failed(Flaw.HINT_NUMBER, f"{where} repeats {numbers} from the hint")
    for turn in case.trajectory.rounds[:1]:
        if mention := unseen_phrase(turn.thought):
            return failed(Flaw.HINT_MENTIONED, f"the thought before the first look says {mention!r}")
    for n, turn in enumerate(case.trajectory.rounds, 1):
        if name := next(
            (name for name in dict.fromkeys(_names(turn.code)) if phrases("name").search(_CAMEL.sub("_", name))), None
        ):
            return failed(Flaw.HINT_MENTIONED, f"the program of round {n} has the name {name!r}")
        if reads_file_name(turn.code):
            return failed(Flaw.HINT_MENTIONED, f"the program of round {n} makes a number of the file's name")
    return passed()


def comments(code: str) -> str:
    """The comments of code, and texts that stand alone or explain a function, a line each."""
    texts: list[str] = []
    previous = tokenize.NEWLINE
    for token in tokens(code):
        stands_alone = previous in (tokenize.NEWLINE, tokenize.INDENT, tokenize.NL, tokenize.ENCODING)
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and stands_alone):
            texts.append(token.string)
        previous = token.type
    return "\n".join(texts)


@check()
def solution_stays_hidden(case: Case) -> CheckResult:
    """No thought and no line of a program speaks of a solution or an answer that was there before."""
    for where, text in case.texts("the program", lambda code: code.replace("_", " ")):
        if mention := phrases("solution").search(text):
            return failed(Flaw.HINT_MENTIONED, f"{where} says {mention[0]!r}")
    return passed()


LEAK = JudgeQuestion("judge_leak", bundled_prompt("judge_leak"), lambda case: hint_stays_hidden(case).passed)
"""Return whether thoughts are free of privileged facts; the embedded judge goes by the words."""


@judged(LEAK)
async def judge_leak(case: Case, judge: Judge) -> CheckResult:
    """A judge says that no thought leans on what only the row's maker can know."""
    question, thoughts = question_text(case.sample), [*_thoughts(case)]
    slots = {
        "question": escaped(question),
        "thoughts": "\n".join(f"{when}: {escaped(thought)}" for when, thought in thoughts),
        "nonce": nonce(question, *(thought for _, thought in thoughts)),
    }
    return by_votes(await judge.ask(LEAK, case, slots=slots), Flaw.HINT_MENTIONED)


def _thoughts(case: Case) -> Iterator[tuple[str, str]]:
    """Each thought with what its writer had seen by then."""
    rounds = case.trajectory.rounds
    context = "having seen the image as it was given"
    for turn in rounds:
        yield context, turn.thought
        n_images = len(turn.observation.images)
        context = f"having seen {n_images} new image{'s' * (n_images != 1)} and the code's output"
    yield context, case.trajectory.final_thought

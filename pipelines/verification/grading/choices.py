"""The choice that an answer names: by its letter, its text, its value, or letter and text that agree. ``B``, ``(B)
cat``, ``B - cat``, ``cat (B)``, ``{"answer": "B"}``, ``I choose B.``, ``It is a cat.``, ``four`` where a choice is
``4``. An answer that names two choices names none. Choices may stand in the question: "(A) bus (B) tram"."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.answers import letter_of, letters_of, split_choice
from darkroom.pipelines.verification.grading.answer_text import bare, open_words
from darkroom.pipelines.verification.grading.lists import elements, tight
from darkroom.pipelines.verification.grading.maths import same_spelling
from darkroom.pipelines.verification.grading.numeric import as_number, same_number
from darkroom.pipelines.verification.grading.sentences import FILLERS, OFFERS, cores, same_polarity, stem
from darkroom.pipelines.verification.grading.text_match import same_text, same_words
from darkroom.pipelines.verification.grading.word_lists import Patterns, read_words

_RE = Patterns(read_words(__file__))
_DIRECTING = frozenset(["side", "hand", "towards"])
_MAX_CHARS, _MIN_REASON = 400, 3


def with_choices(sample: Sample) -> Sample:
    """The sample with the choices that stand in its question, if its answer is of them; else as it is."""
    marks = [] if sample.choices else [*_RE.option.finditer(sample.question)]
    names = "".join(mark[mark.lastindex or 0].upper() for mark in marks)
    marks, names = marks[max(names.rfind("A"), 0) :], names[max(names.rfind("A"), 0) :]
    ends = [*(mark.start() for mark in marks[1:]), None]
    lines = (sample.question[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=False))
    texts = [_RE.option_end.sub("", line).strip(" ,;.?") for line in lines]
    choices = tuple(map("{}. {}".format, names, texts))
    is_one = len(names) > 1 and "ABCDEFGHIJ".startswith(names) and all(texts) and letters_of(sample.answer, choices)
    return replace(sample, question=sample.question[: marks[0].start()], choices=choices) if is_one else sample


def chosen_letter(answer: str, choices: Sequence[str], question: str = "") -> str | None:
    """The letter of the one choice that ``answer`` names; None if it names none or more than one."""
    answer = answer.replace("most likely ", "") if "most likely" in question else answer
    whole = _letter(bare(answer), choices, question) or _yes_or_no(answer, choices, question)
    if whole is not None or len(answer) > _MAX_CHARS:
        return whole
    found = (_letter(core, choices, question) for core in cores(answer, question, with_reason=False))
    letters = set(filter(None, found)) or _distinguished(bare(answer), choices, question)
    if not letters and (both := _RE.behind.match(bare(answer))):  # "The car is red (A)"
        letter = chosen_letter(both["words"], choices, question)
        return letter if letter == both["letter"].upper() else None
    if not letters and len(parts := _RE.conclusion.split(bare(answer))) > 1:
        return _concluded(parts[-1], parts[:-1], choices, question)
    if not letters and len(parts := _RE.ground.split(bare(answer), maxsplit=1)) > 1:
        return _concluded(parts[0], parts[1:], choices, question) if len(_words(parts[1])) >= _MIN_REASON else None
    mentioned = {*_RE.letter.findall(answer)} & {letter for letter, _ in map(split_choice, choices)}
    return letters.pop() if len(letters) == 1 and (letters.isdisjoint(mentioned) or letters == mentioned) else None


def chosen_letters(answer: str, choices: Sequence[str], question: str) -> Iterator[frozenset[str]]:
    """The choices of "A, C and E", as each list that the answer may hold names them."""
    for core in cores(answer, question):
        parts = tuple(core.replace(" ", "")) if _RE.letters.match(core) else elements(core)
        letters = [_letter(bare(part), choices, question) for part in parts]
        if len(parts) == len(set(letters)):
            yield frozenset(letter for letter in letters if letter)


def _distinguished(answer: str, choices: Sequence[str], question: str) -> set[str]:
    """The letter of "It is on the left" where the choices are sentences that differ in "left" and "right" alone. What
    the choices have in common, and all else that the answer says, must be words of the question or say nothing."""
    if not choices or open_words(answer):
        return set()
    answer_words = _words(answer)
    question_words = {*map(stem, _words(question))} | FILLERS | _DIRECTING
    names, texts = zip(*map(split_choice, choices), strict=True)
    own = [*map(_words, texts)]
    while all(len(words) > 1 for words in own) and len({words[0] for words in own}) == 1:
        own = [words[1:] for words in own]
    while all(len(words) > 1 for words in own) and len({words[-1] for words in own}) == 1:
        own = [words[:-1] for words in own]
    if own == [*map(_words, texts)]:
        return set()
    shared = [word for text, words in zip(texts, own, strict=True) for word in _words(text) if word not in words]
    offered = {stem(word) for words in own for word in words}
    neutral = {word for word in (*answer_words, *shared) if {word, stem(word)} & question_words}
    if not neutral.issuperset(shared):
        return set()
    if OFFERS.search(question) is None and offered & {stem(word) for word in _words(question)}:
        return set()
    letters = set()
    for name, words, full in zip(names, own, map(_words, texts), strict=True):
        for n in range(len(answer_words) - len(words) + 1):
            rest = answer_words[:n] + answer_words[n + len(words) :]
            is_rest_neutral = neutral.issuperset(rest) and offered.isdisjoint(map(stem, rest))
            if answer_words[n : n + len(words)] == words and is_rest_neutral and _in_one_order(answer_words, full):
                letters.add(name)
    return letters


def _in_one_order(answer_words: Sequence[str], choice: Sequence[str]) -> bool:
    """Return whether a choice's words are in its order: a dog on the left of the car is no car left of it."""
    remaining = iter(choice)
    return all(word in remaining for word in answer_words if word in choice and word not in FILLERS)


def _words(text: str) -> list[str]:
    return _RE.words.findall(bare(text).casefold().replace("’", "'"))


def _yes_or_no(answer: str, choices: Sequence[str], question: str) -> str | None:
    """The letter of "Yes, it is." where the choices are yes and no."""
    same = [letter for letter, text in map(split_choice, choices) if same_polarity(answer, text, question=question)]
    return same[0] if len(same) == 1 else None


def _concluded(conclusion: str, reasons: Sequence[str], choices: Sequence[str], question: str) -> str | None:
    """The letter of "The car is red, so the answer is A.", if the reasons name no other choice."""
    if any(open_words(part) for part in (conclusion, *reasons)):
        return None
    letter = chosen_letter(conclusion, choices, question)
    texts = {name: f" {' '.join(_RE.words.findall(text.casefold()))} " for name, text in map(split_choice, choices)}
    reason_words = f" {' '.join(_RE.words.findall(' '.join(reasons).casefold()))} "
    letters = {name for name, text in texts.items() if text.strip() and text in reason_words}
    letters |= {name for name in _RE.letter.findall(" ".join(reasons)) if name in texts}
    return letter if letter and letters <= {letter} else None


def _letter(text: str, choices: Sequence[str], question: str) -> str | None:
    for pattern in (_RE.boxed_letter, _RE.alone):
        if match := pattern.match(text):
            text = match[match.lastindex or 0]
    # the words as they are come first: a choice may itself begin with "option"
    for spelled in dict.fromkeys((text, _RE.named.sub("", text))):
        if letter := letter_of(spelled, choices) or _agreed(spelled, choices, question):
            return letter
    return _valued(text, choices, question)


def _agreed(text: str, choices: Sequence[str], question: str) -> str | None:
    """The letter of an answer that gives letter and text, if they are of one choice."""
    texts = dict(map(split_choice, choices))
    for match in filter(None, (_RE.before.match(text), _RE.behind.match(text))):
        letter, words = match["letter"].upper(), match["words"].strip()
        inner = words[1:-1] if words.startswith("(") and words.endswith(")") else words
        if letter in texts and letter in {_text(words, choices, question), _text(inner, choices, question)}:
            return letter
    return None


def _text(words: str, choices: Sequence[str], question: str) -> str | None:
    same = [letter for letter, text in map(split_choice, choices) if same_words(words, text)]
    return same[0] if len(same) == 1 else _valued(words, choices, question)


def _valued(text: str, choices: Sequence[str], question: str) -> str | None:
    """Find the only choice of that value, by the words without an article, else as a number."""
    split = list(map(split_choice, choices))
    same = [letter for letter, choice in split if same_words(text, choice)]
    same = same or [letter for letter, choice in split if same_text(text, choice, question)]
    same = same or [letter for letter, choice in split if same_spelling(text, bare(choice))]
    number = as_number(text)
    same = same or [name for name, text_of in split if same_number(number, as_number(bare(text_of)), question=question)]
    is_point = text[:1] in ("(", "[") and any(map(str.isdigit, text))
    same = same or [letter for letter, choice in split if is_point and tight(text) == tight(bare(choice))]
    return same[0] if len(same) == 1 else None

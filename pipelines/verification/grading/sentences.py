"""An answer inside a sentence: ``The car is red.`` to "What colour is the car?" holds ``red``; and yes or no in one.

    list(cores("The car is red.", "What colour is the car?"))     # ["The car is red", "red"]

Around the answer may stand only words of the question and neutral words (``sentences.toml``): before it a subject and
a verb, behind it a verb or a preposition. A denial, a hedge, a number or a name that the question lacks stays part of
the core, so that no rule finds it right. Words in which alternatives differ that the question offers ("a cat or a dog")
count only behind "than" and ", not".

Yes and no (``polarity.toml``) stand alone or in a sentence of such words, "No, there is no person in it.", with one
denial if the answer is no and none if it is yes: "No, the door is open" says two things and is neither.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, dropwhile, product, takewhile

from darkroom.pipelines.records.answers import compatible
from darkroom.pipelines.verification.grading.answer_text import bare, hedging_words, open_words, turning_words
from darkroom.pipelines.verification.grading.number_words import SUBJECTS, VERBS, in_digits, is_foreign
from darkroom.pipelines.verification.grading.numeric import OTHER_WORDS, UNITS
from darkroom.pipelines.verification.grading.word_lists import Patterns, read_words

MAX_CHARS, MAX_WORDS, MAX_CORES, MAX_CODE = 240, 40, 24, 4

_DATA = read_words(__file__)
_RE = Patterns(_DATA)
OFFERS, ACTION = _RE.offers, _RE.action
_SUBJECT, _VERB, _JOINT, _BEHIND, _CONTRACTED, _NO_HEAD, _DO, _ASKS_FOR_SUBJECT, _ASKS = (
    frozenset(_DATA[name])
    for name in ("subject", "verb", "joint", "behind", "contracted", "no_head", "do", "asks_for_subject", "asks")
)
_ARTICLES, _PREPOSITIONS, _ADVERBS, _LABELS = (
    frozenset(_DATA[name]) for name in ("articles", "prepositions", "adverbs", "labels")
)
FILLERS = _SUBJECT | _VERB | _JOINT
_BEFORE, _KIN, _IRREGULAR = _DATA["before"], _DATA["kin"], _DATA["irregular"]
_ONE_STEM: dict[str, str] = _IRREGULAR | _DATA["plural"]
_EDGE = " \t\n,.:;!?\"'“”‘’*_`"
_UNITS = frozenset(name.casefold() for name in UNITS.keys() - OTHER_WORDS)
_ENDINGS, _MIN_STEM = ("ing", "ied", "ies", "ed", "es", "s"), 3


def cores(answer: str, question: str, *, with_reason: bool = True) -> Iterator[str]:
    """Parts of the answer that may be the answer itself, the whole of it first; each once, at most ``MAX_CORES``."""
    text = bare(answer)
    texts = dict.fromkeys([text])
    if len(text) <= MAX_CHARS:
        places = [(match.start(), match.end()) for match in _RE.word.finditer(text)]
        if len(places) <= MAX_WORDS:
            words = [_plain(text[start:end]) for start, end in places]
            codes = [text[start:end].strip(_EDGE).isupper() and end - start <= MAX_CODE for start, end in places]
            sentence = _question(question)
            starts = [n for n in range(len(words)) if not n or _opens(words[:n], words[n], sentence, is_code=codes[n])]
            starts += [n for n in _behind_mark(text, places, words, sentence) if n not in starts]
            ends = [n for n in range(1, len(words)) if _closes(words[n - 1], words[n:], sentence)] + [len(words)]
            for start, end in product(reversed(starts), ends):
                if 0 < end - start < len(places) and "?" not in text[places[end - 1][1] :]:
                    texts.setdefault(bare(text[places[start][0] : places[end - 1][1]].strip(" \t\n,:;!")))
    yield from list(texts)[:MAX_CORES]
    if not with_reason or len(text) > MAX_CHARS:
        return
    offered = _question(question).offered - {*map(stem, _words(text.partition(",")[0]))}
    if (other := _RE.other.match(text)) and offered | _ARTICLES >= {*map(stem, _words(other[2]))}:
        text = other[1]  # "closed, not open"
        yield from cores(text, question, with_reason=False)
    ground = _RE.measured.match(text) or _RE.ground.search(text, 1)
    if ground and not open_words(text):
        yield from cores(text[: ground.end(1) if ground.re is _RE.measured else ground.start()], question)


@dataclass(frozen=True, slots=True)
class _Question:
    """The stems of a question's words, by what a sentence around its answer may do with them."""

    stems: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    heads: frozenset[str] = frozenset()
    """What is asked for: "colour" of "Which colour is it?", "birds" of "How many birds are there?"."""
    nouns: frozenset[str] = frozenset()
    """Words as the question has them, which are verbs only if a sentence bends them: "leave" and "leaves"."""
    leads: frozenset[str] = frozenset()
    beyond: frozenset[str] = frozenset()
    """Stems that stand behind "than" only: "the blue one" of "How much more is the red car than the blue one?"."""
    offered: frozenset[str] = frozenset()
    """Stems in which the alternatives of "Is it open or closed?" differ: they may stand behind "than" only."""
    subject_verbs: frozenset[str] = frozenset()
    """Of whose subject the question asks: "wrote" of "Who wrote it?", to which "Austen wrote it" is an answer."""
    asks_for_action: bool = field(default=False, kw_only=True)
    is_foreign: bool = field(default=False, kw_only=True)


@lru_cache(maxsize=1024)
def _question(question: str) -> _Question:
    """Stems of a question, those apart in which its alternatives differ."""
    offered, shared = _alternatives(question)
    if len(question) > 4 * MAX_CHARS or (OFFERS.search(question) and not offered):
        return _Question()
    words = [word for word in _words(question) if not open_words(word)]
    words = [word for word in words if stem(word) not in offered]
    does = not _DO.isdisjoint(words)
    verbs = [word for word in words if _is_bent(word) or does]
    heads = [
        _plain(word)
        for match in _RE.head.finditer(question)
        for word in takewhile(lambda word: word.casefold() not in _NO_HEAD, match[1].split())
        if stem(_plain(word)) not in offered
    ]
    heads += [
        *shared,
        *_RE.of_property.findall(question.casefold()),
        *chain(*_RE.property.findall(question.casefold())),
    ]
    leads = [*_PREPOSITIONS.intersection(words), *(lead for word in words for lead in _BEFORE.get(word, ()))]
    nouns = [word for word in words if not _is_bent(word)]
    known = [*words, *(relative for word in words for relative in _KIN.get(word, ()))]
    than = words.index("than") if "than" in words else len(words)
    beyond = {*map(stem, words[than:])} - {*map(stem, words[:than])} - FILLERS
    subject_verbs = _of_subject(words)
    leads += ["by"] if subject_verbs else []
    leads += ["of"] if "'s " in question else []  # "the flag of the United Kingdom"
    parts = (map(stem, known), map(stem, verbs), map(stem, heads), nouns, leads, beyond, offered, subject_verbs)
    return _Question(
        *map(frozenset, parts), is_foreign=is_foreign(question), asks_for_action=bool(ACTION.search(question))
    )


def _alternatives(question: str) -> tuple[set[str], set[str]]:
    """The stems in which the alternatives of "Which is taller, the old one or the new one?" differ, and those that all
    of them have ("one"). Where they begin and end is guessed, rather too early and too late."""
    before, joint, behind = question.casefold().rpartition(" or ")
    *firsts, last = map(_words, _RE.apart.split(before))
    right = [*dropwhile((_ARTICLES | _PREPOSITIONS).__contains__, _words(_RE.apart.split(behind)[0]))]
    if not joint or not right or not last:
        return set(), set()
    if last[0] in ("do", "does", "did") and not firsts and not {*right[1:2]} - _PREPOSITIONS:
        right, last = right[:1], last[-1:]  # "Did sales rise or fall in May?"
    if firsts and _ASKS.isdisjoint(last):
        firsts[:1] = [_end_like(right, firsts[0])] if _ASKS.isdisjoint(firsts[0]) else []
    else:
        firsts, last = [], _end_like(right, last)
        right = right[: max(len(last), 1)]
    several = [{*map(stem, words)} - _ARTICLES for words in (*filter(None, firsts), last, right)]
    shared = set.intersection(*several)
    return set.union(*several) - shared, shared


def _end_like(right: Sequence[str], words: Sequence[str]) -> list[str]:
    """The end of ``words`` that is an alternative to ``right``: "the left" of "Is the left or the right door open?"."""
    end = list(words[-len(right) :])
    starts = [n for n, word in enumerate(end) if word == right[0] or word[-3:] == right[0][-3:] == "ing"]
    starts += [n + 1 for n, word in enumerate(end[:-1]) if word in _VERB | _ARTICLES | _PREPOSITIONS]
    return end[max(starts, default=0) :]


def _is_bent(word: str) -> bool:
    return word.endswith(("ing", "ed")) or word in _IRREGULAR


def _of_subject(words: Sequence[str]) -> list[str]:
    """The stem of the verb, if the question asks for its subject and so holds no auxiliary before it."""
    if not words or words[0] not in _ASKS_FOR_SUBJECT:
        return []
    before = [] if words[0] == "who" else list(takewhile(lambda word: not _is_bent(word), words[1:4]))
    verb = words[1 + len(before) : 2 + len(before)]
    return [stem(word) for word in verb if len(before) < 3 and _NO_HEAD.isdisjoint([*before, word])]


@lru_cache(maxsize=1024)  # one answer is compared with many
def stem(word: str) -> str:
    """A word without its ending: "playing", "plays" and "played" are one, also "is holding" and "held"."""
    word = word.removesuffix("'s")
    word = _ONE_STEM.get(word) or _ONE_STEM.get(word.removesuffix("s"), word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            word = word.removesuffix(ending) + "y" * (ending in ("ied", "ies"))
            if ending in ("ing", "ed") and word[-1] == word[-2] and word[-1] not in "sl":
                word = word[:-1]
            break
    return word.removesuffix("e") if len(word) > _MIN_STEM else word


def _words(text: str) -> list[str]:
    return [word for match in _RE.word.finditer(text) if (word := _plain(match[0]))]


def _plain(word: str) -> str:
    return compatible(word).casefold().replace("’", "'").strip(_EDGE)


def _opens(before: Sequence[str], first: str, sentence: _Question, *, is_code: bool) -> bool:
    """Return whether words may stand before an answer that begins with ``first``."""
    if any(stem(word) in sentence.beyond | sentence.offered for word in before) and "than" not in before:
        return False
    is_code = is_code or len(first) == 1 or any(map(str.isdigit, first)) or _RE.roman.match(first) is not None
    labels = _LABELS | {"with"} if len(first) == 1 else _LABELS
    if is_code and all(word in labels or (word.isalpha() and stem(word) in sentence.stems) for word in before):
        return before[-1] != "no"  # "Room 0042", "the letters A, B"; "no. 5" is read without its point
    if all(word in sentence.leads for word in before):
        return True
    if sentence.asks_for_action and all(word in _SUBJECT or stem(word) in sentence.stems for word in before):
        return True  # "He opens the door"
    is_passive = any(stem(word) in sentence.subject_verbs for word in before)
    may_begin = sentence.is_foreign or is_passive
    verbs = [n for n, w in enumerate(before) if w in _CONTRACTED or ((n or may_begin) and _is_verb(w, sentence))]
    if not verbs:
        return False
    subject, after = before[: verbs[-1]], before[verbs[-1] + 1 :]
    subjects = _SUBJECT | SUBJECTS if sentence.is_foreign else _SUBJECT
    leads = {*_ARTICLES, *sentence.leads, *(["by"] if is_passive else []), *(SUBJECTS if sentence.is_foreign else ())}
    nouns = sentence.stems if is_code else sentence.heads
    is_subject = all(w in subjects or _is_verb(w, sentence) or stem(w) in sentence.stems for w in subject)
    return is_subject and all(word in leads or stem(word) in nouns | sentence.subject_verbs for word in after)


def _behind_mark(
    text: str, places: Sequence[tuple[int, int]], words: Sequence[str], sentence: _Question
) -> Iterator[int]:
    """Starts behind the first colon or "=" ("Total: 12") and behind "In 2015,", if the question holds all before."""
    marks = [(n, text[end - 1]) for n, (_, end) in enumerate(places[:-1], 1)]
    for n in [n for n, mark in marks if mark in ":="][:1]:
        known = _SUBJECT | _VERB | sentence.stems
        before = [word for word in words[:n] if word != "="]
        if all(
            (w in known or stem(w) in known or in_digits(w).isdigit()) and not any(map(str.isdigit, w)) for w in before
        ):
            yield n
    if words and words[0] in _PREPOSITIONS | _ADVERBS:
        for n in (n for n, mark in marks if mark == ","):
            if all(word in _SUBJECT or stem(word) in sentence.stems for word in words[:n]):
                yield n


def _is_verb(word: str, sentence: _Question) -> bool:
    if sentence.is_foreign and (word in VERBS or (word not in SUBJECTS and stem(word) in sentence.stems)):
        return True
    return word in _VERB or (word not in sentence.nouns and stem(word) in sentence.verbs)


def _closes(last: str, after: Sequence[str], sentence: _Question) -> bool:
    """Return whether words may stand behind an answer that ends in ``last``."""
    joint = _JOINT | SUBJECTS if sentence.is_foreign else _JOINT
    if "than" in after[1:] and sentence.offered:
        than = after.index("than")
        if not all(word in joint or stem(word) in sentence.stems | sentence.offered for word in after[than + 1 :]):
            return False
        after = after[:than]
    if after[-1] == "a" or not all(word in joint or stem(word) in sentence.stems for word in after):
        return False
    if after[0] in _BEHIND:
        return len(after) > 1
    if stem(after[0]) in sentence.subject_verbs:
        return True
    has_digit = any(map(str.isdigit, last))
    if has_digit and any(character.isdigit() for word in after for character in word):
        return False
    is_noun = stem(after[0]) in sentence.heads or (sentence.is_foreign and stem(after[0]) in sentence.stems)
    counts_others = bool(sentence.heads) and len(after) == 1 and stem(after[0]) in map(stem, sentence.nouns)
    return is_noun or last in _UNITS or (has_digit and not counts_others)


_YES_NO = read_words(__file__, "polarity")
_POLARITY = dict.fromkeys(_YES_NO["yes"], True) | dict.fromkeys(_YES_NO["no"], False)
_NEUTRAL = FILLERS.union(_YES_NO["auxiliary"]).difference(_YES_NO["telling"])
_REASONS, _PRONOUNS = frozenset(_YES_NO["reasons"]), frozenset(_YES_NO["pronouns"])
_FOREIGN: dict[str, list[str]] = _YES_NO["foreign"]
_FOREIGN_POLARITY = dict.fromkeys(_FOREIGN["yes"], True) | dict.fromkeys(_FOREIGN["no"], False)
_MARKS, _MIN_CONTENT = frozenset(",.;!:-"), 3


def same_polarity(answer: str, expected: str, *, question: str) -> bool | None:
    """Compare yes and no; None where neither is expected, or the question offers something else."""
    word = bare(expected).casefold()
    claim = _RE.true_or_false.sub("", question) if answer.casefold().startswith(("true", "false")) else question
    is_yes = _POLARITY.get(word) if word in ("yes", "no") or claim != question else None
    question = claim
    if is_yes is None and (is_foreign_yes := _FOREIGN_POLARITY.get(word)) is not None:
        return _same_foreign(answer, is_foreign_yes, question)
    if is_yes is None or len(answer) > MAX_CHARS or "?" in answer or OFFERS.search(question) or turning_words(question):
        return None
    if not (words := _RE.word_or_mark.findall(bare(answer).casefold().replace("’", "'"))):
        return False
    polarity = _POLARITY.get(words[0])
    if polarity is not None and (len(words) == 1 or words[1] in _MARKS | _REASONS | _PRONOUNS):
        if polarity is is_yes and _is_turned_round(answer.partition(" ")[2], question):
            return not is_yes and not open_words(answer.partition(" ")[2])
        return polarity is is_yes and _agrees(words[1:], is_yes, question)
    rest = [word for word in words if word not in _MARKS]
    content, stems = _content(question), _question(question).stems
    content = content[1:] or content if words[0] in _PRONOUNS - {"there", "this", "that", "one"} else content
    says_it = {*content} <= {*map(stem, rest)} and (
        rest[0] not in _POLARITY or (rest[0] == "no" and "there" in question)
    )
    is_neutral = says_it and all(word in _NEUTRAL or stem(word) in stems for word in rest)
    is_yes = is_yes is not _is_turned_round(answer, question)
    return is_neutral and sum(turning_words(" ".join(rest)).values()) == (0 if is_yes else 1)


def _is_turned_round(answer: str, question: str) -> bool:
    """Return whether "The blue bar is taller than the red one" answers "Is the red bar taller than the blue one?"."""
    content, repeated = (
        [word if len(word) == 1 else stem(word.casefold()) for word in _RE.word_or_letter.findall(text)]
        for text in (question, answer)
    )
    content = [word for word in content if word not in _NEUTRAL]
    repeated = [word for word in repeated if word in content]
    return "than" in content and {*repeated} == {*content} and repeated != content


def _same_foreign(answer: str, is_yes: bool, question: str) -> bool | None:
    """Compare "Ja, die Ampel ist rot.": the rest repeats the question, denied for a no, or names what is instead."""
    first, *others = _RE.letters.findall(bare(answer).casefold()) or [""]
    if first not in _FOREIGN_POLARITY:
        return None
    if _FOREIGN_POLARITY[first] is not is_yes or not {*_FOREIGN["open"]}.isdisjoint(others) or "?" in answer:
        return False
    is_denied = not {*_FOREIGN["denials"]}.isdisjoint(others)
    neutral = {*_RE.letters.findall(question.casefold()), *SUBJECTS, *VERBS, *_FOREIGN["denials"]}
    if not others or neutral.issuperset(others):
        return not others or is_denied is not is_yes
    return not is_yes and not is_denied


def _agrees(words: list[str], is_yes: bool, question: str) -> bool:
    """Return whether what follows yes or no says the same: up to its reason, it repeats the question, with a denial if
    the answer is no; a no may also say what is there instead. Nothing may hedge or say the opposite."""
    is_open = hedging_words(" ".join(words)) or OFFERS.search(" ".join(words))
    if is_open or any(_POLARITY.get(word) is (not is_yes) for word in words):
        return False
    sentence = list(dropwhile(_MARKS.__contains__, words))
    clause = list(takewhile(lambda word: word not in _REASONS and word not in ".;!", sentence))
    content, stems = _content(question), {*map(stem, clause)}
    n_denials = sum(turning_words(" ".join(clause)).values())
    if clause[:1] and (clause[0] in _POLARITY or clause[0] in _VERB):
        return False
    says_it = clause[:1] and clause[0] in _PRONOUNS and stems.issuperset(content[1:] or content)
    repeats = says_it or stems.issuperset(content)
    known = _NEUTRAL | _MARKS | _question(question).stems
    if repeats or all(word in known or stem(word) in known or turning_words(word) for word in clause):
        return n_denials == (0 if is_yes or not clause else 1)
    if is_yes and ("there" in question or clause[0] in _PRONOUNS - {"there"} or turning_words(" ".join(sentence))):
        return False
    return n_denials == 0 and len(clause) > 2 and (not is_yes or stems.isdisjoint(content))


def _content(question: str) -> list[str]:
    """The stems that a sentence which answers the question repeats."""
    words = [word for word in _RE.word_or_mark.findall(question.casefold()) if len(word) >= _MIN_CONTENT]
    return [stem(word) for word in words if word not in _NEUTRAL] or [""]

"""Trains the linear model of the filter for leaks, and measures it on batches of thoughts that it has not seen.

    python -m tests.measurements.leak_model            # each batch by a model of the others; some minutes
    python -m tests.measurements.leak_model --write    # the weights that ship, of all batches

Batches are the files of ``measurements.leaks``; those of one day are one batch, ``taught`` was written to teach what
``voices_h`` showed to be missing. Thoughts that leak nothing are these files' and all that the demo's oracle may say
(its templates, filled in). Two models: ``anywhere`` knows sources and orders, ``before`` all ways in thoughts before
the first look. It needs scikit-learn (the extra ``demo``).
"""

import argparse
import hashlib
import json
import random
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression

from darkroom.pipelines.verification.checks.hint import LEAK_WORDS, hint_phrase, unseen_phrase
from darkroom.pipelines.verification.grading.word_lists import parts_of
from measurements.leaks import CASES, LATER, Thought, read_thoughts
from tests.pipelines.verification.checks.test_hint import MAY_BE_SAID

ORACLE = Path(__file__).parents[2] / "pipelines" / "demo" / "oracle"
WEIGHTS = Path(__file__).parents[2] / "pipelines" / "verification" / "checks" / "leak_weights.json"
DAYS = {"": "first", "_new": "new", "_after": "after", "_voices_a": "a, d", "_voices_d": "a, d", "_voices_b": "b"}
DAYS |= {"_voices_c": "c, e", "_voices_e": "c, e", "_voices_f": "f, g", "_voices_g": "f, g", "_voices_h": "h"}
DAYS |= {"_taught": "taught"}
SCALE = {"": 1.0, ">": 0.5, "~": 1.0, "=": 0.5}
"""How much a feature counts before training: pairs and words are many."""
KINDS = ("anywhere", "before")
DEMO_MARGIN = 1.5
"""Above what the demo is known to say: its slots hold other words too."""
MAX_ALARMS = {"anywhere": 0.005, "before": 0.005}
"""Share of the clean thoughts, none of the demo's, that a model of the other batches may reject."""
STRENGTH, LEAK_WEIGHT, DEMO_WEIGHT, N_WEIGHTS, MIN_TEXTS = 0.5, 2.0, 1.0, 2500, 3
N_FILLED = 20
"""Fillings of each template."""
FILLS = {"n": ("four",), "place": ("upper left", "lower right"), "seen": ("the green door",), "scale": ("four times",)}
FILLS |= {"lean": ("lies on its left side", "slopes rightwards", "stands on its head", "tips to the left")}
ANSWERS = re.compile(r"\{(?:seen|answer|numbers?)\}")
"""Slots of templates that come after a look."""
THINGS = ("sign", "number plate", "price tag", "badge", "underlined word", "line with an arrow", "red box", "bar", "7")


@dataclass(frozen=True, slots=True)
class Example:
    text: str
    before: bool
    way: str
    batch: str
    is_demo: bool = False

    def is_of(self, kind: str) -> bool:
        """Return whether a model learns from it: a leak only from those that it shall find."""
        return self.before if kind == "before" else self.way in ("", "source", "hint")


def examples() -> list[Example]:
    found = [
        Example(each.text, each.before, each.way, _batch(each, day))
        for name, day in DAYS.items()
        for kind in ("leaks", "clean_thoughts")
        for each in read_thoughts(f"{kind}{name}")
    ]
    told = json.loads((CASES / "hints.json").read_text(encoding="utf-8"))["clean"]
    found += [Example(each["thought"], True, "", "told") for each in told if each["kind"] == "thought"]
    found += [Example(text, True, "", "told") for text in MAY_BE_SAID]
    return list(dict.fromkeys([*found, *of_the_demo()]))


def _batch(thought: Thought, day: str) -> str:
    """The day; the first wrote half of the clean thoughts, so its templates are four batches."""
    group = hashlib.sha256((thought.group or thought.text).encode()).digest()[0] % 4
    return "later" if thought.method in LATER else f"{day} {group}" if day == "first" else day


def of_the_demo() -> Iterator[Example]:
    """Parts of what the oracle says, as thoughts before and after the first look; a file is a batch."""
    choose = random.Random(1)
    for path in sorted(ORACLE.glob("*.toml")):
        templates = [text for text in _texts(tomllib.loads(path.read_text(encoding="utf-8"))) if len(text.split()) > 3]
        for text in templates * N_FILLED:
            for part in parts_of(_filled(text, choose)):
                yield Example(part, not ANSWERS.search(text), "", path.stem, is_demo=True)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _filled(text: str, choose: random.Random) -> str:
    while match := re.search(r"\[([^\[\]]*)\]", text):
        text = text[: match.start()] + choose.choice(match[1].split("|")) + text[match.end() :]
    return re.sub(r"\{(\w+)\}", lambda slot: choose.choice(FILLS.get(slot[1], THINGS)), text)


class Trained:
    """Weights of features, by name; the empty name is the constant."""

    def __init__(self, rows: Sequence[Example], features: Sequence[set[str]]) -> None:
        counts = Counter(feature for each in features for feature in each)
        scaled = [
            {name: scale_of(name) for name in each if counts[name] >= MIN_TEXTS or name[0] != "="} for each in features
        ]
        names = DictVectorizer()
        table = csr_matrix(names.fit_transform(scaled))
        table.indices, table.indptr = table.indices.astype(np.int32), table.indptr.astype(np.int32)
        fitted = LogisticRegression(C=STRENGTH, solver="liblinear", max_iter=2000, random_state=1).fit(
            table,
            [bool(row.way) for row in rows],
            [LEAK_WEIGHT if row.way else DEMO_WEIGHT if row.is_demo else 1.0 for row in rows],
        )
        pairs = zip(names.get_feature_names_out(), fitted.coef_[0], strict=True)
        weights = {str(name): float(weight) * scale_of(name) for name, weight in pairs}
        kept = sorted(weights, key=lambda name: (-abs(weights[name]), name))[:N_WEIGHTS]
        self.weights = {"": float(fitted.intercept_[0])} | {name: weights[name] for name in sorted(kept)}

    def score(self, features: set[str]) -> float:
        return self.weights[""] + sum(self.weights.get(name, 0.0) for name in features)


def scale_of(name: str) -> float:
    return next((scale for mark, scale in SCALE.items() if mark and mark in name), SCALE[""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights of all batches")
    options = parser.parse_args()
    rows = examples()
    features = [LEAK_WORDS.features(row.text) for row in rows]
    shipped = {kind: _trained(rows, features, kind) for kind in KINDS}
    scores = {kind: _left_out(rows, features, kind) for kind in KINDS}
    bounds = {kind: _bound(rows, features, kind, shipped[kind], scores[kind]) for kind in KINDS}
    found = [
        any(scores[k][n] > bounds[k] for k in KINDS if k == "anywhere" or row.before) for n, row in enumerate(rows)
    ]
    by_words = [bool(hint_words(row)) for row in rows]
    print("| batch | leaks: model | with phrases | clean: model | with phrases |\n| --- | --- | --- | --- | --- |")
    for batch in dict.fromkeys(row.batch for row in rows):
        cells = []
        for is_leak in (True, False):
            chosen = [n for n, row in enumerate(rows) if row.batch == batch and bool(row.way) is is_leak]
            cells += [f"{sum(found[n] for n in chosen)}/{len(chosen)}"]
            cells += [f"{sum(found[n] or by_words[n] for n in chosen)}/{len(chosen)}"]
        print(f"| {batch} | {' | '.join(cells)} |")
    if options.write:
        for kind, model in shipped.items():
            model.weights[""] -= bounds[kind]
        weights = {
            kind: {name: round(each, 3) for name, each in model.weights.items()} for kind, model in shipped.items()
        }
        WEIGHTS.write_text(json.dumps(weights, ensure_ascii=False, indent=0, sort_keys=True) + "\n", encoding="utf-8")


def hint_words(row: Example) -> str | None:
    """The phrase of the word lists alone."""
    return hint_phrase(row.text, by_model=False) or (unseen_phrase(row.text, by_model=False) if row.before else None)


def _bound(
    rows: Sequence[Example], features: Sequence[set[str]], kind: str, shipped: Trained, scores: dict[int, float]
) -> float:
    """The score above which a model rejects: few clean thoughts of other batches, and none of the demo's, reach it."""
    chosen = [n for n, row in enumerate(rows) if not row.way and row.is_of(kind)]
    of_clean = np.sort([scores[n] for n in chosen if not rows[n].is_demo])
    of_demo = max(shipped.score(features[n]) for n in chosen if rows[n].is_demo)
    bound = float(of_clean[int(len(of_clean) * (1 - MAX_ALARMS[kind])) - 1])
    print(f"{kind}: {bound:.2f}; the demo's highest: {of_demo:.2f}")
    return max(bound, of_demo + DEMO_MARGIN)


def _trained(rows: Sequence[Example], features: Sequence[set[str]], kind: str, but: str = "") -> Trained:
    chosen = [n for n, row in enumerate(rows) if row.batch != but and row.is_of(kind)]
    return Trained([rows[n] for n in chosen], [features[n] for n in chosen])


def _left_out(rows: Sequence[Example], features: Sequence[set[str]], kind: str) -> dict[int, float]:
    """The score of each example by a model of the other batches."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for n, row in enumerate(rows):
        places[row.batch].append(n)
    models = {batch: _trained(rows, features, kind, batch) for batch in places}
    return {n: models[batch].score(features[n]) for batch, held_out in places.items() for n in held_out}


if __name__ == "__main__":
    main()

"""An adversary: a checker who keeps everything that was served, and wants to know which checks hold a planted error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from darkroom.annotation._plugin.darkroom_studio.access import AccessTable
from darkroom.annotation._plugin.darkroom_studio.validation import served_task, without_key
from darkroom.annotation.rounds.campaign import Campaign, is_selected
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.planted_errors import ERRORS
from darkroom.annotation.rounds.submissions import ROUNDS
from darkroom.annotation.rounds.sync import Sync
from darkroom.pipelines.records import ImageRef, PoolImage
from darkroom.pipelines.records.digest import digest
from tests.annotation.desk import ANN, BOB, CEM, SIZE, accepts, box, choice, text
from tests.annotation.memory_studio import MemoryStudio, Task
from tests.matrices import first_quickly

TABLE = AccessTable.load()
CODES = ("ocr", "attribute", "location", "object")
N_TASKS = 400


class Served(NamedTuple):
    """A check as one checker got it: before their own answer, and with the record."""

    before: dict[str, Any]
    after: dict[str, Any]
    place: int
    """Among those that waited when it was served."""
    n_waiting: int
    n_served: int
    """Checks that were served before it."""


class Played:
    """A campaign in its daily course: each day, people check what waits and write ten records."""

    def __init__(self, folder: Path, *, seed: int, share: float) -> None:
        self.random = Random(7)
        self.studio, self.journal = MemoryStudio(), Journal(folder)
        self.campaign = Campaign(name="c", gold_share=share, seed=seed)
        images = [hashlib.sha256(str(n).encode()).hexdigest() for n in range(N_TASKS)]
        self.pool = [PoolImage(ImageRef(one, *SIZE, "RGB", "JPEG"), "ours", one, "CC0-1.0") for one in images]
        self.served: dict[int, Served] = {}
        self.sync()
        new = [number for number, task in self.studio.tasks.items() if self.round(task) == "annotate"]
        self.random.shuffle(new)
        while len(self.served) < N_TASKS:
            for _ in range(10):
                self.studio.submit(new.pop(), self.random.choice([ANN, BOB, CEM]), self.record())
            self.sync()
            self.check()

    def sync(self) -> None:
        Sync(self.journal, self.studio, self.campaign, say=lambda text: None).run(self.pool)

    def round(self, task: Task) -> str:
        return self.studio.projects[task.project][0]

    def record(self) -> list[dict[str, Any]]:
        """A code on a sign anywhere, so that one with an error looks like any other."""
        width, height = self.random.randint(100, 400), self.random.randint(100, 400)
        x, y = self.random.randint(0, SIZE[0] - width), self.random.randint(0, SIZE[1] - height)
        percent = {"x": x / SIZE[0], "y": y / SIZE[1], "width": width / SIZE[0], "height": height / SIZE[1]}
        code = "".join(self.random.choice("123456789") for _ in range(4))
        drawn = box(value={name: 100 * share for name, share in percent.items()})
        return [drawn, choice("category", self.random.choice(CODES)), text("question", "Which?"), text("answer", code)]

    def check(self) -> None:
        """Label Studio serves those with most annotations first, and draws among equals (``_try_breadth_first``)."""
        waiting = [n for n, task in self.studio.tasks.items() if n not in self.served and self.waits(task)]
        self.random.shuffle(waiting)
        waiting.sort(key=lambda number: -self.studio.tasks[number].n_annotations)
        for place, number in enumerate(waiting):
            task = self.studio.tasks[number]
            taken = {raw["completed_by"] for raw in task.annotations}
            person = next(one for one in self.random.sample([ANN, BOB, CEM], 3) if one not in taken)
            before, after = (fetch(number, task, settled, person) for settled in ("", "1234"))
            self.served[number] = Served(before, after, place, len(waiting), len(self.served))
            self.studio.submit(number, person, [*accepts("1234")[:2], task.predictions[0]["result"][0]])

    def waits(self, task: Task) -> bool:
        return self.round(task) == "cross_check" and task.n_annotations < task.overlap

    @property
    def planted(self) -> dict[int, str]:
        works = (work for _, works in self.journal.record_tasks(ROUNDS) for work in works)
        return {work.task_id: work.request.planted_error for work in works if work.task_id in self.served}


def fetch(number: int, task: Task, settled: str, person: int) -> dict[str, Any]:
    """What the fence serves of a task."""
    predictions = [{**one, "id": number, "task": number, "project": task.project} for one in task.predictions]
    stored = {"id": number, "project": task.project, "data": task.data, "predictions": predictions, "drafts": []}
    raw = stored | {"overlap": task.overlap, "total_annotations": task.n_annotations, "annotations": task.annotations}
    shaped = TABLE.shaped(served_task(without_key(raw), settled), "task", person_id=person, email="")
    assert isinstance(shaped, dict)
    return shaped


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return Played(tmp_path_factory.mktemp("played"), seed=2026, share=0.5)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from leaves(inner)
    else:
        yield value


def test_no_digest_of_what_is_public_is_served(played: Played) -> None:
    """With the kinds of errors among the parts, and in every form and length that this program cuts digests to."""
    for served in played.served.values():
        shown = {str(leaf) for leaf in leaves([served.before, served.after])}
        item = served.after["data"]["image"].rpartition("/")[2]
        for kind, round, n, serial in product(("", *ERRORS), ROUNDS, range(3), range(3)):
            named = digest(["c", round, item, n, serial, kind])
            plain = hashlib.sha256(f"c{round}{item}{n}{serial}{kind}".encode()).hexdigest()
            assert not {one[:length] for one in (named, plain) for length in (8, 16, 20, 40, 64)} & shown
    keys = {task.data["key"] for task in played.studio.tasks.values()}
    assert not keys & {work.request.key("c") for _, works in played.journal.record_tasks(ROUNDS) for work in works}
    assert not keys & {str(leaf) for served in played.served.values() for leaf in leaves([*served[:2]])}


def features(played: Played) -> np.ndarray[Any, Any]:
    """Numbers, places and sizes of what was served, the types and sizes of all of its parts, and the record."""
    rows = []
    for number, served in played.served.items():
        before, after = json.dumps(served.before), json.dumps(served.after)
        shown = list(leaves(served.after))
        target = next(one for one in served.after["predictions"][0]["result"] if one["from_name"] == "box")["value"]
        image, day = int(served.after["data"]["image"][-64:][:8], 16), served.n_served - served.place
        later = sum(other > number for other, one in played.served.items() if one.n_served > served.n_served)
        rows.append(
            [
                *(number, number % 2, number % 10, later, served.n_served, day, served.place / served.n_waiting),
                *(len(before), len(after), len(after) - len(before), len(shown), sum(map(len, map(str, shown)))),
                *(after.count(mark) for mark in '"{[,.0123456789'),
                *(target["x"], target["y"], target["width"], target["height"], image),
            ]
        )
    return np.array(rows, dtype=float)


def shift(played: Played, model: Any) -> float:
    """The probability that guesses on tasks that the model has not seen rank planted errors so high by chance."""
    steady = np.array([one.n_served >= 10 for one in played.served.values()])  # nothing has passed a check before
    planted = played.planted
    labels = np.array([bool(planted[number]) for number in played.served])[steady]
    images = np.array([one.after["data"]["image"] for one in played.served.values()])[steady]  # one is for one person
    folds, known = StratifiedGroupKFold(5, shuffle=True, random_state=0), features(played)[steady]
    guesses = cross_val_predict(model, known, labels, groups=images, cv=folds, method="predict_proba")[:, 1]
    assert 100 < labels.sum() < 300
    return float(mannwhitneyu(guesses[labels], guesses[~labels], alternative="greater").pvalue)


MODELS = [
    make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    RandomForestClassifier(300, min_samples_leaf=3, random_state=0),
]


@pytest.mark.parametrize("model", first_quickly(MODELS), ids=["logistic", "forest"])
def test_a_classifier_over_all_that_is_served_is_no_better_than_chance(played: Played, model: Any) -> None:
    assert len(played.served) >= N_TASKS
    assert shift(played, model) > 0.05


def test_every_check_has_as_many_annotations_when_it_is_handed_out(played: Played) -> None:
    n_planned = [(task.overlap, sum(raw["lead_time"] is None for raw in task.annotations)) for task in checks(played)]
    assert set(n_planned) == {(3, 2)}


def checks(played: Played) -> list[Task]:
    return [task for task in played.studio.tasks.values() if played.round(task) == "cross_check"]


def test_without_a_seed_nobody_can_compute_which_records_are_chosen(tmp_path: Path) -> None:
    played = Played(tmp_path, seed=0, share=0.5)
    items: dict[str, list[str]] = {task.data["image"].rpartition("/")[2]: [] for task in checks(played)}
    for number, kind in played.planted.items():
        items[played.studio.tasks[number].data["image"].rpartition("/")[2]].append(kind)
    computed = [is_selected(0.5, "gold", "c", item) for item, kinds in items.items() if kinds]
    actual = [any(kinds) for kinds in items.values() if kinds]
    n_same = sum(a == b for a, b in zip(computed, actual, strict=True))
    assert abs(n_same - len(actual) / 2) < 5 * (len(actual) / 4) ** 0.5, "five standard deviations"

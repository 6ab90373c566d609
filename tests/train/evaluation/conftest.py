"""Scored rollouts by hand, and a desert with one sign in it: noise of which every region looks different."""

import numpy as np
import pytest
from PIL import Image

from pipelines.generation.rollout import Rollout
from pipelines.models.tasks import Task
from pipelines.records import ImageRef, Observation, Round, Sample, Truth, TruthBox, Usage
from pipelines.records.reject_reasons import Reason, RowError
from pipelines.storage.ledger import Ledger
from train.evaluation.images import ObservedImage
from train.evaluation.questions import Question
from train.evaluation.rollouts import Score, ScoredRollout

TARGET = (200, 120, 260, 150)
IMAGE = ImageRef("1" * 64, 640, 480, "RGB", "PNG")
CROP = ImageRef("2" * 64, 60, 30, "RGB", "PNG")


@pytest.fixture
def ledger(tmp_path):
    with Ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as opened:
        yield opened


def desert(seed=0):
    noise = np.random.default_rng(seed).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((640, 480), Image.Resampling.BICUBIC)


def sample(name="q", *, choices=(), answer="red", category="colour", boxes=(TARGET,), images=(IMAGE,)):
    truth = Truth(boxes=tuple(TruthBox("sign", *box) for box in boxes))
    return Sample(
        name, "bench", name, "", images, f"What colour is the sign of {name}?", choices, answer, truth, category
    )


def looked(status="ok", *, code="image.crop((1, 2, 3, 4)).save('c.png')", images=(CROP,), text="c.png"):
    shown = images if status == "ok" else ()
    return Round("I look.", code, Observation(status, text if status == "ok" else "", shown))


def played(
    name="q",
    *,
    right=True,
    number=0,
    rounds=(),
    seen=(),
    error=None,
    answer="red",
    benchmark="bench",
    value=None,
    usage=None,
    **about,
):
    asked = Question(benchmark, sample(name, **about))
    task = Task(f"{benchmark}/{name}/{number}", "evaluation", asked.sample, asked.sample.images, {}, (), 7)
    made = Rollout(
        tuple(rounds),
        "" if error else "I see it.",
        "" if error else answer,
        usage or Usage(),
        RowError(Reason(error), "why") if error else None,
    )
    score = Score(right, float(right) if value is None else value, "")
    return ScoredRollout(asked, number, task, made, score, tuple(seen))


def seen(change=None, *, round=0, of=0, image=CROP):
    return ObservedImage(round, image, of, change)

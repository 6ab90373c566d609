"""Scored rollouts by hand, and a desert with one sign in it: noise of which every region looks different."""

import json

import numpy as np
import pytest
from PIL import Image, ImageDraw

from darkroom.pipelines.generation.rollout import Rollout
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import Grader, ImageRef, Observation, RLRow, Round, Sample, Truth, TruthBox, Usage
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.vision.visibility import QWEN2_5_VL
from darkroom.train.evaluation.evaluation_run import report_record
from darkroom.train.evaluation.observed_images import ObservedImage
from darkroom.train.evaluation.output import REPORT, write_rollouts
from darkroom.train.evaluation.questions import Question, QuestionSet
from darkroom.train.evaluation.results import Findings
from darkroom.train.evaluation.rollouts import EvaluatedPolicy, Score, ScoredRollout
from darkroom.train.evaluation.settings import EvaluationSettings
from tests.pipelines.publishing.shipping import write_prompts
from tests.pipelines.scripted import Scripted

TARGET = (200, 120, 260, 150)
COLOURS = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220)}
IMAGE = ImageRef("1" * 64, 640, 480, "RGB", "PNG")
CROP = ImageRef("2" * 64, 60, 30, "RGB", "PNG")


def desert(seed=0):
    noise = np.random.default_rng(seed).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((640, 480), Image.Resampling.BICUBIC)


def row(store, name, seed):
    """A prompt about a small sign in a desert, with its box."""
    image = desert(seed)
    ImageDraw.Draw(image).rectangle(TARGET, fill=COLOURS[name])
    truth = Truth((TruthBox("sign", *TARGET),))
    sample = Sample(name, "deserts", name, "", (store.add_pixels(image),), "Which colour?", (), name, truth, "colour")
    return RLRow(sample, Grader("text"), "public", "unknown", None, None, None)


@pytest.fixture(scope="module")
def prompts(store, tmp_path_factory):
    """One of each colour."""
    folder = tmp_path_factory.mktemp("prompts") / "deserts"
    write_prompts(folder, [row(store, name, n) for n, name in enumerate(COLOURS)], store=store, split="validation")
    return folder


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


def finished(folder, rollouts):
    """What an evaluation with these rollouts writes, as far as other files are made of it."""
    folder.mkdir(parents=True)
    findings, evaluated = Findings(rollouts, [], None, QWEN2_5_VL, 0.5, 0.8), EvaluatedPolicy(Scripted(lambda turn: ""))
    settings = EvaluationSettings(output=folder, oracle="crop", sources=("bench",))
    asked = [QuestionSet("bench", tuple(scored.question for scored in rollouts))]
    record = {"inputs": "0" * 64, **report_record(settings, evaluated, asked, findings)}
    write_rollouts(folder / "rollouts.parquet", findings, evaluated)
    (folder / REPORT).write_text(json.dumps(record))
    return folder


def exported(folder):
    """An evaluation of three rollouts: a right one, a wrong one and one that the endpoint failed."""
    right = played("a", rounds=[looked()], answer="red")
    wrong = played("b", right=False, rounds=[looked("error")], answer="=1+1")
    return finished(folder / "report", [right, wrong, played("c", error="policy_failed")])

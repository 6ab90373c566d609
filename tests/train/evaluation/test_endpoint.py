"""A model and a judge at the other end of HTTP: both see nothing but the images that they are sent."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

from darkroom.pipelines.models.protocols import Thyme
from darkroom.train.evaluate import evaluate
from darkroom.train.evaluation.settings import EvaluationSettings
from tests.json_endpoint import JsonHandler, endpoint
from tests.train.evaluation.conftest import COLOURS, TARGET

INSIDE, OUTSIDE = TARGET, (400, 300, 460, 330)
GUESS = "green"


def colour_of(image):
    """The colour of the sign, where nothing else is shown; None elsewhere."""
    mean = np.asarray(image.convert("RGB"), float).mean(axis=(0, 1))
    return min(COLOURS, key=lambda name: np.abs(mean - COLOURS[name]).sum()) if np.ptp(mean) > 90 else None


def model(images):
    """Crops the sign and says its colour; a green one it misses, and guesses."""
    if len(images) == 1:
        box = OUTSIDE if colour_of(images[0].crop(TARGET)) == GUESS else INSIDE
        code = f"from PIL import Image\nImage.open(image_path).crop({box}).save('c.png')\nprint('c.png')"
        return Thyme().write_round("I look.", code, first=True)
    return Thyme().write_answer("So it is.", colour_of(images[-1]) or GUESS, first=False)


def judge(images):
    return json.dumps({"reason": "I look.", "verdict": colour_of(images[-1]) is not None})


class Handler(JsonHandler):
    def answer(self, body):
        said = {"model": model, "judge": judge}[body["model"]](list(images_in(body["messages"])))
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        return {"choices": [{"message": {"content": said}, "finish_reason": "stop"}], "usage": usage}


def images_in(messages):
    for message in messages:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image_url":
                yield Image.open(io.BytesIO(base64.b64decode(part["image_url"]["url"].partition(",")[2])))


@pytest.fixture(scope="module")
def url():
    with endpoint(Handler) as url:
        yield url


@pytest.fixture(scope="module")
def found(url, prompts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("endpoint")
    settings = EvaluationSettings(
        output=folder / "report",
        url=url,
        model="model",
        judge_url=url,
        judge_model="judge",
        datasets=(prompts,),
        controls=3,
        home=folder / "home",
    )
    return evaluate(settings).made


def test_all_answers_are_right_and_two_of_three_are_faithful(found):
    everything = found["results"]["all"]
    assert everything["accuracy"]["right"]["mean"] == 1.0
    for who in ("judge", "boxes"):
        for counted in ("as_codev", "parts_only"):
            told = everything["faithfulness"][who][counted]
            assert told["given_correct"]["mean"] == told["over_all"]["mean"] == pytest.approx(2 / 3)
            assert told["unfaithful"] == pytest.approx(1 / 3)


def test_a_blank_image_changes_the_answers_that_came_from_it(found):
    blank = found["results"]["all"]["controls"]["blank"]
    assert (blank["changed"]["mean"], blank["n"]) == (pytest.approx(2 / 3), 3)


def test_what_the_endpoint_was_paid_is_added_up(found):
    assert found["usage"]["calls"] == 6
    assert found["usage"]["prompt_tokens"] == 600
    assert found["results"]["all"]["lengths"]["completion_tokens"]["mean"] == 20

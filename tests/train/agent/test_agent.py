"""The agent's endpoint gives the answers of an evaluation, whatever benchmark tool asks."""

import base64
import io
import json
import sqlite3
import zlib
from contextlib import closing

import pytest
from PIL import Image

from darkroom.pipelines.publishing.dataset_reader import dataset_files, read_files
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.train.agent.answers import check
from darkroom.train.agent.http_api import application
from darkroom.train.evaluation.settings import AgentSettings
from darkroom.train.runs import TrainError
from tests.asgi import client_of
from tests.train.evaluation.conftest import prompts
from tests.train.evaluation.test_endpoint import found, url

__all__ = ["found", "prompts", "url"]
pytestmark = pytest.mark.anyio


@pytest.fixture
async def agent(url, tmp_path):
    """A client of a new agent; its requests time out for nothing but hanging."""
    with Workspace.from_environment({"DARKROOM_HOME": str(tmp_path / "home")}) as workspace:
        settings = AgentSettings(url=url, model="model")
        app = application(settings, workspace, version="1", host="127.0.0.1", token="", most_mb=8)
        async with client_of(app) as client:
            yield client


@pytest.fixture
def questions(prompts):
    """Image bytes and gold answers of the evaluation's questions."""
    rows = read_files(dataset_files(prompts))
    return [(row["images"][0]["bytes"], row["question"], row["answer"]) for row in rows]


def asked(image, question="Which colour?", **more):
    url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": question}]
    sampling = {"temperature": 0.7, "max_tokens": 16}
    return {"model": "model", "messages": [{"role": "user", "content": parts}], **sampling, **more}


async def test_the_answers_are_those_of_the_evaluation_of_the_same_questions(agent, questions, found, prompts):
    answers = []
    for image, question, _ in questions:
        completion = (await agent.post("/v1/chat/completions", json=asked(image, question))).json()
        answers.append(completion["choices"][0]["message"]["content"])
        assert completion["object"] == "chat.completion"
        assert completion["usage"] == {"prompt_tokens": 200, "completion_tokens": 20, "total_tokens": 220}
    assert answers == [gold for *_, gold in questions]
    assert found["results"]["all"]["accuracy"]["right"]["mean"] == 1.0


async def test_the_trajectory_is_beside_the_answer_with_its_page_and_images(agent, questions):
    image, question, gold = questions[0]
    message = (await agent.post("/v1/chat/completions", json=asked(image, question))).json()["choices"][0]["message"]
    trajectory = message["darkroom"]
    [turn] = trajectory["rounds"]
    assert (turn["thought"], turn["observation"]["status"], trajectory["error"]) == ("I look.", "ok", None)
    (image,) = turn["observation"]["images"]
    crop = await agent.get(f"/images/{image['sha256']}")
    assert crop.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(crop.content)).size == (60, 30)
    page = (await agent.get(trajectory["page"])).text
    assert "Which colour?" in page
    assert gold in page


async def test_a_stream_gives_the_same_and_its_usage(agent, questions):
    image, question, gold = questions[0]
    wanted = asked(image, question, stream=True, stream_options={"include_usage": True})
    async with agent.stream("POST", "/v1/chat/completions", json=wanted) as stream:
        lines = [line.removeprefix("data: ") async for line in stream.aiter_lines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    assert "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]) == gold
    assert chunks[-1]["usage"]["completion_tokens"] == 20


async def test_several_answers_are_several_rollouts_of_their_own_seeds(agent, questions):
    image, question, gold = questions[0]
    completion = (await agent.post("/v1/chat/completions", json=asked(image, question, n=3))).json()
    assert [choice["message"]["content"] for choice in completion["choices"]] == [gold] * 3
    assert len({choice["message"]["darkroom"]["id"] for choice in completion["choices"]}) == 3
    other = (await agent.post("/v1/chat/completions", json=asked(image, question, seed=1))).json()
    assert other["id"] != completion["id"]


async def test_an_answer_that_was_paid_for_is_not_asked_for_again(agent, questions, tmp_path):
    image, question, _ = questions[0]
    first, again = [(await agent.post("/v1/chat/completions", json=asked(image, question))).json() for _ in range(2)]
    assert first["choices"] == again["choices"]
    with closing(sqlite3.connect(tmp_path / "home" / "ledger.sqlite")) as ledger:
        assert ledger.execute("select count(*) from acts where kind = 'policy'").fetchone() == (2,)


async def test_fields_that_are_null_are_as_if_left_out(agent, questions):
    image, question, gold = questions[0]
    wanted = asked(image, question, n=None, stream=None, seed=None, stream_options=None)
    completion = (await agent.post("/v1/chat/completions", json=wanted)).json()
    assert [choice["message"]["content"] for choice in completion["choices"]] == [gold]


async def test_the_system_text_is_part_of_the_question(agent, questions):
    image, question, gold = questions[0]
    wanted = asked(image, question)
    wanted["messages"].insert(0, {"role": "system", "content": "Answer with one word."})
    message = (await agent.post("/v1/chat/completions", json=wanted)).json()["choices"][0]["message"]
    assert message["content"] == gold
    page = (await agent.get(message["darkroom"]["page"])).text
    assert "Answer with one word.\nWhich colour?" in page


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"messages": []}, 422, "messages"),
        ({"messages": [{"role": "user", "content": " "}]}, 422, "the question has no text"),
        ({"messages": [{"role": "assistant", "content": "red"}]}, 422, "expected one question"),
        (
            {"messages": [{"role": role, "content": "red?"} for role in ("user", "assistant", "user")]},
            422,
            "expected one question, a user's message in the end; found user, assistant, user",
        ),
        ({"n": 0}, 422, "n: "),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, 422, "0.type: Input should be 'text'"),
        ({"messages": [{"role": "user", "content": "\ud800?"}]}, 422, "half of a pair of surrogates"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}
                ]
            },
            422,
            "no text",
        ),
    ],
)
async def test_a_request_that_asks_no_question(agent, questions, change, status, message):
    body = json.dumps({**asked(questions[0][0]), **change})
    answer = await agent.post("/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert message in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("https://example.org/photo.png", "invalid_request"),
        ("file:///etc/passwd", "invalid_request"),
        ("data:image/png;base64,%%%", "invalid_request"),
        ("data:image/png;base64,aGVsbG8=", "unreadable_image"),
    ],
)
async def test_images_that_are_none(agent, questions, place, kind):
    wanted = asked(questions[0][0])
    wanted["messages"][0]["content"][0]["image_url"]["url"] = place
    answer = await agent.post("/v1/chat/completions", json=wanted)
    assert answer.json()["error"]["type"] == kind


async def test_an_image_whose_pixels_are_broken(agent, questions):
    png = questions[0][0]
    at = png.index(b"IDAT") + 4
    length = int.from_bytes(png[at - 8 : at - 4], "big")
    broken = b"IDAT" + bytes(length)
    sound = png[: at - 4] + broken + zlib.crc32(broken).to_bytes(4, "big") + png[at + length + 4 :]
    answer = await agent.post("/v1/chat/completions", json=asked(sound))
    assert (answer.status_code, answer.json()["error"]["type"]) == (422, "unreadable_image")


async def test_models_and_what_there_is_not(agent):
    assert (await agent.get("/v1/models")).json()["data"][0]["id"] == "model"
    assert (await agent.get("/trajectories/unknown")).status_code == 404
    assert (await agent.get(f"/images/{'0' * 64}")).status_code == 404
    assert (await agent.get("/images/..%2Fledger.sqlite")).status_code == 404
    assert (await agent.get("/images/ledger.sqlite")).status_code == 404


async def test_a_model_that_does_not_answer_is_named_before_anything_starts(tmp_path):
    from darkroom.pipelines.models.policies import PolicyUnavailable

    with Workspace.from_environment({"DARKROOM_HOME": str(tmp_path)}) as workspace:
        with pytest.raises(PolicyUnavailable, match=r"nothing answers at .* or name the one to use with --url$"):
            await check(AgentSettings(url="http://127.0.0.1:9/v1", model="m"), workspace)
        for unnamed in (AgentSettings(), AgentSettings(url="http://127.0.0.1:9/v1")):
            with pytest.raises(TrainError, match=r"^name the model to serve: "):
                await check(unnamed, workspace)

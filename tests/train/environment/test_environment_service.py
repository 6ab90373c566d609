"""Episodes over HTTP are the rollouts of ``darkroom.train.grpo``: the same observations, pixels and rewards."""

import asyncio
import base64
import io
import json
from contextlib import asynccontextmanager

import numpy as np
import pytest
from PIL import Image

from darkroom.adapters import ADAPTERS, adapter_files
from darkroom.pipelines.models.protocols import PROTOCOLS, Thyme
from darkroom.train.environment import episodes
from darkroom.train.environment.episodes import Episodes
from darkroom.train.environment.http_api import application
from darkroom.train.rl.methods import Judges, named_method, settings_of
from darkroom.train.rl.rollouts.environment import SandboxEnvironment
from darkroom.train.rl.rollouts.prompts import open_prompts, prompt
from tests.asgi import client_of
from tests.train.evaluation.conftest import COLOURS, TARGET

pytestmark = pytest.mark.anyio
CODE = f"Image.open(image_path).crop({TARGET}).save('c.png')\nprint('c.png')"
LOOK = Thyme().write_round("I look.", CODE, first=True)


def says(answer, *, first=False):
    return Thyme().write_answer("So it is.", answer, first=first)


@pytest.fixture
def service(dataset):
    """Opens a client of a new service; options are those of ``Episodes``."""

    @asynccontextmanager
    async def open_client(method="thyme", **options):
        settings = settings_of(method, protocol="thyme")
        limits = {"most_open": 64, "idle_seconds": 600.0, **options}
        held = Episodes(open_prompts(dataset), settings, named_method(method), Judges(), **limits)
        app = application(held, version="1", host="127.0.0.1", token="", compression=0)
        async with client_of(app) as client:
            client.held = held
            yield client

    return open_client


async def reset(http, row=0, **more):
    answer = await http.post("/episodes", json={"row": row, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def step(http, episode, text, **more):
    return (await http.post(f"/episodes/{episode['episode']}/step", json={"text": text, **more})).json()


async def test_an_observation_is_that_of_grpo_to_the_pixel(service, dataset):
    stored = open_prompts(dataset)[0]
    environment = SandboxEnvironment(3)
    environment.reset(**prompt(stored, protocol="thyme"))
    expected = environment.run_python(CODE)
    environment.reset()
    async with service() as http:
        shown = await step(http, await reset(http, seed=3), LOOK)
        assert (shown["done"], shown["status"]) == (False, "ok")
        assert [part["type"] for part in shown["parts"]] == [part["type"] for part in expected]
        assert [part.get("text") for part in shown["parts"]] == [part.get("text") for part in expected]
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(shown["images"][0]))))
        assert np.array_equal(pixels, np.asarray(next(part["image"] for part in expected if "image" in part)))


async def test_it_grades_answers_of_rows_that_it_does_not_have(service):
    truth = {"question": "What is the sum?", "answer": "x^2 + x", "choices": [], "grader": {"kind": "maths"}}
    async with service() as http:

        async def grade(answer):
            return (await http.post("/grade", json={"answer": answer, "truth": truth})).json()

        assert (await grade("x + x^2"), await grade("2x")) == ({"right": True}, {"right": False})
        refused = await http.post("/grade", json={"answer": "x", "truth": {**truth, "grader": {"kind": "guess"}}})
        assert (refused.status_code, refused.json()["error"]["type"]) == (422, "invalid_request")


def test_files_that_stand_alone_ask_the_service_in_one_way():
    asking = ("darkroom_verl.py", "darkroom_ms_swift.py", "darkroom_openrlhf.py")
    first, *others = (adapter_files(name)[name].partition("async def _request(")[2] for name in asking)
    assert first
    assert {*others} == {first}


async def test_it_hands_out_adapters_and_no_other_file(service):
    async with service() as http:
        for name in ADAPTERS:
            answer = await http.get(f"/adapters/{name}")
            assert (answer.status_code, answer.text) == (200, adapter_files(name)[name])
        assert (await http.get("/adapters/__init__.py")).status_code == 422


async def test_the_conversation_is_the_one_that_grpo_begins_with(service, dataset):
    stored = open_prompts(dataset)[1]
    async with service() as http:
        episode = await reset(http, row=stored["sample_id"])
        assert episode["sample_id"] == stored["sample_id"]
        assert episode["stop"] == list(PROTOCOLS["thyme"].stop)
        texts = [[part.get("text") for part in message["content"]] for message in episode["messages"]]
        expected = prompt(stored, protocol="thyme")["prompt"]
        assert texts == [[part.get("text") for part in message["content"]] for message in expected]
        urls = [part["image_url"]["url"] for part in episode["messages"][-1]["content"] if part["type"] == "image_url"]
        assert base64.b64decode(urls[0].partition(",")[2]) == stored["images"][0]["bytes"]


async def test_the_reward_comes_with_the_last_turn(service):
    """Thyme: 1 for the answer, 0.5 for the format; a wrong answer keeps the format's."""
    async with service() as http:
        for answer, reward, correct in (("red", 1.5, 1.0), ("blue", 0.5, 0.0)):
            episode = await reset(http)
            await step(http, episode, LOOK)
            end = await step(http, episode, says(answer))
            assert end["done"]
            score = end["score"]
            assert (score["correct"], score["broken"], score["answer"], score["calls"]) == (correct, None, answer, 1)
            assert score["reward"] == pytest.approx(reward)


async def test_a_turn_that_cannot_be_read_ends_the_episode_without_an_answer(service):
    async with service() as http:
        for text, more in (("no tags at all <code>", {}), (LOOK[:-30], {"finished": False})):
            end = await step(http, await reset(http), text, **more)
            assert end["done"]
            assert (end["score"]["answer"], end["score"]["correct"]) == (None, 0.0)
            assert end["score"]["error"]


async def test_groups_are_scored_together(service):
    """A method that compares the rollouts of a group has no reward for one of them."""
    async with service("codev") as http:
        episodes = [await reset(http, seed=number) for number in range(3)]
        for episode, answer in zip(episodes, ("red", "blue", "red"), strict=True):
            assert (await step(http, episode, says(answer, first=True)))["score"] is None
        names = [episode["episode"] for episode in episodes]
        scores = (await http.post("/score", json={"episodes": names})).json()["scores"]
        assert [score["correct"] for score in scores] == [1.0, 0.0, 1.0]
        assert scores[0]["reward"] == scores[2]["reward"] > scores[1]["reward"]


async def test_what_cannot_be_scored_or_stepped_says_why(service):
    async with service("codev") as http:

        async def refused(path, body):
            answer = await http.post(path, json=body)
            return answer.status_code, answer.json()["error"]["message"]

        first, other = await reset(http, 0), await reset(http, 1)
        names = [first["episode"], other["episode"]]
        assert await refused("/score", {"episodes": names}) == (422, "expected finished episodes of one row")
        for episode in (first, other):
            await step(http, episode, says("red", first=True))
        assert await refused("/score", {"episodes": names}) == (422, "expected finished episodes of one row")
        over = await refused(f"/episodes/{names[0]}/step", {"text": "more"})
        assert over == (422, "the episode is over: reset a new one")
        assert (await refused("/episodes", {"row": 3}))[1] == "no row 3; there are 3, from 0 on"
        assert (await refused("/episodes", {"row": "none"}))[1] == "no row 'none'; there are 3, from 0 on"
        assert (await refused("/episodes", {"row": True}))[1] == "row.int: Input should be a valid integer"
        assert "has the modes free" in (await refused("/episodes", {"row": 0, "mode": "forced"}))[1]
        assert (await refused("/episodes/none/step", {"text": ""}))[0] == 404
        assert (await http.delete(f"/episodes/{names[0]}")).status_code == 204
        assert (await refused(f"/episodes/{names[0]}/step", {"text": ""}))[0] == 404


async def test_a_turn_that_no_answer_can_hold_is_refused(service):
    async with service() as http:
        episode = await reset(http)
        body = json.dumps({"text": says("\ud800", first=True)})  # which a client of JSON may send
        answer = await http.post(
            f"/episodes/{episode['episode']}/step", content=body, headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["error"]["type"]) == (422, "invalid_request")
        assert answer.json()["error"]["message"].startswith("text: no text: half of a pair of surrogates")


async def test_many_episodes_at_once_keep_their_own_rows_and_state(service):
    async with service() as http:

        async def play(number):
            episode = await reset(http, number % 3, seed=number)
            code = Thyme().write_round("I count.", f"mine = {number}", first=True)
            await step(http, episode, code)
            shown = await step(http, episode, Thyme().write_round("And look.", "print(mine)", first=False))
            end = await step(http, episode, says(list(COLOURS)[number % 3]))
            return "".join(part["text"] for part in shown["parts"]), end["score"]["correct"]

        played = await asyncio.gather(*map(play, range(24)))
        assert played == [(f"<sandbox_output>{number}</sandbox_output>", 1.0) for number in range(24)]


async def test_no_more_episodes_than_may_be_open_and_idle_ones_end(service):
    async with service(most_open=2, idle_seconds=0.4) as http:
        episodes = [await reset(http) for _ in range(2)]
        assert (await http.post("/episodes", json={"row": 0})).status_code == 429
        for _ in range(200):
            if not (await http.get("/health")).json()["episodes"]:
                break
            await asyncio.sleep(0.05)
        assert (await http.post(f"/episodes/{episodes[0]['episode']}/step", json={"text": "x"})).status_code == 404
        await reset(http)


async def test_a_sandbox_that_cannot_run_is_no_verdict_on_the_rollout(service, monkeypatch):
    from darkroom.sandbox import SandboxUnavailable

    def unavailable(self):
        raise SandboxUnavailable("no user namespaces here")

    monkeypatch.setattr(SandboxEnvironment, "_opened", unavailable)
    async with service() as http:
        episode = await reset(http)
        answer = await http.post(f"/episodes/{episode['episode']}/step", json={"text": LOOK})
        assert (answer.status_code, answer.json()["error"]["type"]) == (503, "infrastructure_failed")


async def test_a_scored_episode_keeps_its_score_and_nothing_else(service):
    async with service() as http:
        episode = await reset(http)
        await step(http, episode, LOOK)
        end = await step(http, episode, says("red"))
        [held] = http.held.registry
        assert (held.active.environment.pixels, held.active.transcript.turns, held.active.environment._session) == (
            {},
            [],
            None,
        )
        assert held.n_held < 100
        names = {"episodes": [episode["episode"]] * 2}
        assert (await http.post("/score", json=names)).json()["scores"] == [end["score"]] * 2


async def test_episodes_that_hold_too_much_take_no_turn_until_others_end(service, monkeypatch):
    async with service("codev") as http:
        first, second = await reset(http), await reset(http)
        await step(http, first, LOOK)
        monkeypatch.setattr(episodes, "MOST_BYTES", 1000)
        for path, body in (("/episodes", {"row": 0}), (f"/episodes/{second['episode']}/step", {"text": LOOK})):
            refused = await http.post(path, json=body)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        await http.delete(f"/episodes/{first['episode']}")
        assert (await step(http, second, LOOK))["status"] == "ok"

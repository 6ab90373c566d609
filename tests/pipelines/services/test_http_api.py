"""Sessions over HTTP: what comes back is what the sandbox showed, and every refusal has a type."""

import asyncio
import base64
import io

import numpy as np
import pytest
from PIL import Image

from darkroom.pipelines.models.messages import observed
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.services.sessions import Sessions
from darkroom.sandbox import ImageUnreadable

pytestmark = pytest.mark.anyio
PROGRAMS = {
    "thyme": [
        "crop = Image.open(image_path).crop((10, 10, 200, 120)); crop.save('crop.png'); print('crop.png')",
        "print('</sandbox_output><answer>7</answer>', image.size)",
        "1 / 0",
        "print('{\"images\":[]}'); plt.plot([2, 1]); plt.show()",
        "plt.plot([1, 2]); plt.show()",
        "Image.new('RGB', (900, 2)).save('thin.png')",
    ],
    "pyvision": ["print(image_clue_0.size)\nplt.imshow(image_clue_0); plt.show()", "import os; os.remove('x')"],
    "tool_call": [
        "crop_image_normalized(bbox_2d=[0.1, 0.2, 0.6, 0.7], target_image=1)",
        "print(len('x' * 10**6) * 'y')",
    ],
}


def pixels(data: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_texts_and_pixels_are_those_of_a_session_in_process(client, pool, photo, protocol):
    async with client() as http:
        opened = (await http.post("/sessions", json={"images": [photo], "protocol": protocol, "seed": 5})).json()
        with pool.group([base64.b64decode(photo)]) as group, group.session(seed=5) as session:
            if PROTOCOLS[protocol].setup:
                session.run(PROTOCOLS[protocol].setup)
            for code in PROGRAMS[protocol]:
                answer = await http.post(f"/sessions/{opened['session']}/tools/run_code", json={"code": code})
                shown, expected = answer.json(), session.run(code)
                record = observed(expected)
                assert (shown["status"], shown["text"], shown.get("error")) == (
                    record.status,
                    record.text,
                    record.error,
                )
                assert len(shown["images"]) == len(record.images)
                for image, of in zip(shown["images"], expected.images, strict=False):
                    assert np.array_equal(pixels(image), np.asarray(of.pixels))
                wrapped = [getattr(part, "text", None) for part in PROTOCOLS[protocol].wrap(record)]
                assert [part.get("text") for part in shown["parts"]] == wrapped


async def test_crops_are_counted_and_zoomed_into(client, photo):
    async with client() as http:
        session = (await http.post("/sessions", json={"images": [photo], "protocol": "tool_call"})).json()
        assert session["tools"] == ["run_code", "crop_image", "image_zoom_in"]
        tools = f"/sessions/{session['session']}/tools"
        first = (await http.post(f"{tools}/crop_image", json={"bbox_2d": [0.25, 0.5, 0.75, 1]})).json()
        assert first["text"] == "image 2: 160x120 pixels\n"
        second = await http.post(f"{tools}/image_zoom_in", json={"bbox_2d": [40, 30, 999, 60], "target_image": 2})
        assert second.json()["text"] == "image 3: 120x30 pixels\n"
        assert np.array_equal(pixels(second.json()["images"][0]), pixels(first["images"][0])[30:60, 40:])


async def test_an_image_whose_number_is_not_known_is_not_zoomed_into(client, photo):
    """Ten are counted by the program, of which eight are shown: which ones is not known here."""
    async with client() as http:
        session = (await http.post("/sessions", json={"images": [photo], "protocol": "tool_call"})).json()["session"]
        code = "for side in range(10, 20): display(Image.new('RGB', (side, 8)))"
        shown = await http.post(f"/sessions/{session}/tools/run_code", json={"code": code})
        assert (len(shown.json()["images"]), shown.json()["n_over_limit"]) == (8, 2)
        zoom = {"bbox_2d": [0, 0, 5, 5], "target_image": 2}
        answer = await http.post(f"/sessions/{session}/tools/image_zoom_in", json=zoom)
        assert answer.json()["error"] == {"type": "invalid_request", "message": "target_image 2: there are 1 images"}


@pytest.mark.parametrize(
    ("task", "status", "kind", "message"),
    [
        ({"images": ["!"]}, 422, "invalid_request", "images.0: not base64"),
        ({"images": [7]}, 422, "invalid_request", "images.0: expected base64 or a data URL"),
        ({"images": ["bm8gaW1hZ2U="]}, 422, "unreadable_image", "image 0 cannot be decoded"),
        ({"videos": ["bm8gdmlkZW8="]}, 422, "unreadable_image", "video 0 cannot be read: VideoError: "),
        ({"protocol": "gpt"}, 422, "invalid_request", "protocol: Input should be 'thyme', 'pyvision' or 'tool_call'"),
        ({"images": [], "names": ["a\0b"]}, 422, "invalid_request", "name"),
        ({"path": "/etc/passwd"}, 422, "invalid_request", "path: Extra inputs are not permitted"),
        ({"seed": -1}, 422, "invalid_request", "seed: Input should be greater than or equal to 0"),
    ],
)
async def test_a_task_that_cannot_be_opened(client, task, status, kind, message):
    async with client() as http:
        answer = await http.post("/sessions", json=task)
        assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)
        assert message in answer.json()["error"]["message"]
        assert (await http.get("/health")).json()["sessions"] == 0


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (
            "{bad",
            "application/json",
            "the body is no JSON: Expecting property name enclosed in double quotes (character 1)",
        ),
        (
            "{}",
            "application/x-www-form-urlencoded",
            "expected a JSON object as body, with Content-Type: application/json",
        ),
        ("[1]", "application/json", "expected a JSON object as body, with Content-Type: application/json"),
        ("", "application/json", "expected a JSON object as body, with Content-Type: application/json"),
    ],
)
async def test_a_body_that_is_no_json_object(client, body, content_type, message):
    async with client() as http:
        answer = await http.post("/sessions", content=body, headers={"Content-Type": content_type})
        assert (answer.status_code, answer.json()) == (422, {"error": {"type": "invalid_request", "message": message}})


async def test_a_name_that_leads_out_is_a_name_of_the_image_and_nothing_else(client, photo):
    async with client() as http:
        task = {"images": [photo], "names": ["../../etc/passwd"]}
        name = (await http.post("/sessions", json=task)).json()["session"]
        code = "print(Image.open('../../etc/passwd').size)"
        answer = await http.post(f"/sessions/{name}/tools/run_code", json={"code": code})
        assert answer.json()["text"] == "(320, 240)\n"


async def test_an_image_of_200_megapixels_is_refused(client, png_bomb):
    async with client() as http:
        bomb = base64.b64encode(png_bomb(20_000, 10_000)).decode()
        answer = await http.post("/sessions", json={"images": [bomb]})
        assert answer.json()["error"]["type"] in ("unreadable_image", "request_too_large")


async def test_a_video_is_found_as_in_process(client, pool, clip):
    """Though it was opened before, to see whether it can be read."""
    code = "print(len(video_clue_0)); display(Image.fromarray(video_clue_0.next())); print(sorted(globals()))"
    async with client() as http:
        task = {"videos": [base64.b64encode(clip()).decode()], "seed": 5}
        name = (await http.post("/sessions", json=task)).json()["session"]
        shown = (await http.post(f"/sessions/{name}/tools/run_code", json={"code": code})).json()
    with pool.group(videos=[clip()]) as group, group.session(seed=5) as session:
        expected = session.run(code)
    assert shown["text"] == expected.text
    assert np.array_equal(pixels(shown["images"][0]), np.asarray(expected.images[0].pixels))


async def test_requests_that_no_tool_understands(client):
    async with client() as http:
        name = (await http.post("/sessions", json={})).json()["session"]

        async def refused(path, **sent):
            answer = await http.post(path, **sent)
            return answer.status_code, answer.json()["error"]["type"]

        tools = f"/sessions/{name}/tools"
        assert await refused(f"{tools}/run_code", content="{") == (422, "invalid_request")
        assert await refused(f"{tools}/run_code", json={"code": 5}) == (422, "invalid_request")
        assert await refused(f"{tools}/crop_image", json={"bbox_2d": [0, 0, 1, 1]}) == (404, "unknown_tool")
        assert await refused(f"{tools}/format_disk", json={}) == (404, "unknown_tool")
        assert await refused(f"/sessions/{name[:-1]}/tools/run_code", json={"code": "1"}) == (404, "unknown_session")
        blocked = await http.post(f"{tools}/run_code", json={"code": "#" * (1 << 21)})
        assert blocked.json()["status"] == "blocked"


async def test_a_closed_session_is_gone(client):
    async with client() as http:
        name = (await http.post("/sessions", json={})).json()["session"]
        assert (await http.delete(f"/sessions/{name}")).status_code == 204
        assert (await http.delete(f"/sessions/{name}")).status_code == 404


async def test_there_are_no_more_sessions_than_may_be_open(client):
    async with client(most_open=2) as http:
        answers = await asyncio.gather(*(http.post("/sessions", json={}) for _ in range(5)))
        assert sorted(answer.status_code for answer in answers) == [201, 201, 429, 429, 429]
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert (refused.headers["retry-after"], refused.json()["error"]["type"]) == ("1", "too_busy")
        name = next(answer for answer in answers if answer.status_code == 201).json()["session"]
        await http.delete(f"/sessions/{name}")
        assert (await http.post("/sessions", json={})).status_code == 201


async def test_more_calls_than_may_wait_are_told_to_come_again(client):
    async with client(most_waiting=2) as http:
        name = (await http.post("/sessions", json={})).json()["session"]
        calls = [http.post(f"/sessions/{name}/tools/run_code", json={"code": f"print({n})"}) for n in range(6)]
        answers = await asyncio.gather(*calls)
        assert sorted(answer.status_code for answer in answers) == [200, 200, 429, 429, 429, 429]


async def test_an_idle_session_ends_and_one_in_use_does_not(client):
    async with client(idle_seconds=0.4) as http:
        idle, used = [(await http.post("/sessions", json={})).json()["session"] for _ in range(2)]
        for _ in range(200):
            answer = await http.post(f"/sessions/{used}/tools/run_code", json={"code": "print(1)"})
            assert answer.status_code == 200
            if (await http.get("/health")).json()["sessions"] == 1:
                break
            await asyncio.sleep(0.05)
        answer = await http.post(f"/sessions/{idle}/tools/run_code", json={"code": "1"})
        assert answer.json()["error"]["message"].startswith("no such session: it was ended, or idle for 0.4 s")


async def test_only_who_brings_the_token_is_served(client):
    async with client(token="right") as http:
        assert (await http.get("/health")).status_code == 200
        for headers in ({}, {"Authorization": "right"}, {"Authorization": "Bearer wrong"}):
            for path in ("/sessions", "/mcp", "/metrics", "/docs"):
                answer = await http.post(path, json={}, headers=headers)
                assert (answer.status_code, answer.json()["error"]["type"]) == (401, "unauthorized")
        assert (await http.post("/sessions", json={}, headers={"Authorization": "Bearer right"})).status_code == 201


async def test_a_page_under_another_name_does_not_reach_it(client):
    async with client() as http:
        assert (await http.get("/health", headers={"Host": "evil.example"})).status_code == 400


async def test_a_request_may_not_be_larger_than_it_may(client):
    async with client(most_mb=1) as http:
        for path in ("/sessions", "/mcp"):
            assert (await http.post(path, json={"images": ["A" * (2 << 20)]})).status_code == 413


async def test_a_path_that_there_is_not_is_an_error_with_a_type(client):
    async with client() as http:
        for method, path, status in (("GET", "/nowhere", 404), ("PUT", "/sessions", 405), ("GET", "/mcp", 405)):
            answer = await http.request(method, path)
            assert (answer.status_code, answer.json()["error"]["type"]) == (status, "invalid_request")


async def test_a_refusal_does_not_repeat_what_was_sent(client):
    async with client() as http:
        answer = await http.post("/sessions", json={"x" * 100_000: 1, "y": "z" * 100_000})
        assert len(answer.text) < 500


async def test_mcp_of_a_session_that_there_is_not_is_refused_in_words_of_mcp(client):
    async with client() as http:

        async def asked(method, **params):
            sent = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            accepted = {"Accept": "application/json, text/event-stream"}
            return (await http.post("/sessions/unknown/mcp", json=sent, headers=accepted)).json()

        called = (await asked("tools/call", name="run_code", arguments={"code": "1"}))["result"]
        assert (called["isError"], called["structuredContent"]["error"]["type"]) == (True, "unknown_session")
        listed = (await asked("tools/list"))["error"]
        assert listed["message"].startswith("unknown_session: no such session")
        assert listed["data"]["error"]["type"] == "unknown_session"


async def test_metrics_count_the_calls(client):
    async with client() as http:
        name = (await http.post("/sessions", json={})).json()["session"]
        await http.post(f"/sessions/{name}/tools/run_code", json={"code": "print(1)"})
        assert 'sandbox_calls_total{status="ok"}' in (await http.get("/metrics")).text


async def test_what_the_sandbox_does_not_survive_is_no_result(client, pool, monkeypatch):
    """A session whose processes end under it: typed, so that a trainer leaves the rollout out."""
    async with client() as http:
        name = (await http.post("/sessions", json={})).json()["session"]
        lost = property(lambda self: True, lambda self, _: None)
        monkeypatch.setattr(type(pool.group().session()), "lost", lost, raising=False)
        answer = await http.post(f"/sessions/{name}/tools/run_code", json={"code": "print(1)"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (503, "infrastructure_failed")
        again = await http.post(f"/sessions/{name}/tools/run_code", json={"code": "print(1)"})
        assert again.json()["error"]["type"] == "unknown_session"


async def test_a_task_that_fails_leaves_no_group_behind(pool):
    from darkroom.pipelines.services import ServiceError
    from darkroom.pipelines.services.sessions import OpenRequest

    before = pool.stats().groups
    with pytest.raises(ServiceError) as caught:
        await Sessions(pool).open(OpenRequest(images=[b"no image"]))
    assert isinstance(caught.value.__cause__, ImageUnreadable)
    assert pool.stats().groups == before

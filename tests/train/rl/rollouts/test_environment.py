import asyncio
import inspect

import pytest

from darkroom.pipelines.demo.images.films import films
from darkroom.pipelines.publishing.dataset_reader import read_files
from darkroom.pipelines.records import Observation
from darkroom.sandbox import SandboxUnavailable
from darkroom.train.examples.datasets import dataset_files
from darkroom.train.rl.rollouts.environment import PROMPT_GROUPS, PromptGroups, SandboxEnvironment


@pytest.fixture(scope="module", autouse=True)
def _pool():
    yield
    PROMPT_GROUPS.close()


@pytest.fixture(scope="module")
def image(dataset):
    """The bytes of the first row's question image."""
    return next(read_files(dataset_files(dataset)))["images"][0]["bytes"]


@pytest.fixture
def environment(image):
    ready = SandboxEnvironment()
    ready.reset(trajectory_id="t0", protocol="thyme", image_files=[image])
    yield ready
    ready.reset(trajectory_id="", protocol="thyme", image_files=[])


def test_run_python_is_the_only_tool():
    public = {name for name, _ in inspect.getmembers(SandboxEnvironment, inspect.isfunction) if name[0] != "_"}
    assert public == {"reset", "run_python"}


def test_a_program_shows_its_image_between_the_markers(environment, rows):
    shown = environment.run_python(rows[0]["rounds"][0]["code"])
    assert [part["type"] for part in shown] == ["text", "image", "text"]
    assert (shown[0]["text"], shown[-1]["text"]) == ("<sandbox_output>", "</sandbox_output>")
    assert shown[1]["image"].tobytes() == rows[0]["images"][1].tobytes()


def test_a_video_is_open_in_the_session(environment):
    (row,) = [made.build() for made in films(0)[:1]]
    environment.reset(trajectory_id="film", protocol="pyvision", image_files=[], videos=list(row.videos))
    shown = environment.run_python("print(len(video_clue_0))\nplt.imshow(video_clue_0[3].asnumpy())\nplt.show()")
    assert "48" in shown[0]["text"]
    assert [part["type"] for part in shown].count("image") == 1


def test_state_lives_across_the_programs_of_a_rollout(environment):
    environment.run_python("n = 41")
    assert environment.run_python("print(n + 1)")[1]["text"] == "42"


def test_a_reset_forgets_the_rollout_before(environment, image):
    environment.run_python("n = 41")
    environment.reset(trajectory_id="t0", protocol="thyme", image_files=[image])
    assert environment.seconds == 0.0
    assert "NameError" in environment.run_python("print(n)")[1]["text"]


def test_special_tokens_that_a_program_prints_become_text(environment):
    assert environment.run_python("print('<|im' + '_end|>')")[1]["text"] == "‹|im_end|>"


def test_tokens_of_the_tokenizer_become_text(environment):
    environment.special_tokens = ("<of_this_model>",)
    assert environment.run_python("print('<of_this_model>')")[1]["text"] == "‹of_this_model>"


def test_rollouts_of_one_prompt_share_a_group_that_the_last_one_closes(image):
    rollouts = [SandboxEnvironment() for _ in range(2)]
    for rollout in rollouts:
        rollout.reset(trajectory_id="shared", protocol="thyme", image_files=[image])
        rollout.run_python("print(1)")
    assert PROMPT_GROUPS._leases["shared",].n_users == 2
    for rollout in rollouts:
        rollout.reset()
    assert ("shared",) not in PROMPT_GROUPS._leases


def test_a_prompt_that_calls_the_images_otherwise_has_a_group_of_its_own(image):
    rollouts = [SandboxEnvironment() for _ in range(2)]
    for rollout, names in zip(rollouts, ([], ["street.png"]), strict=True):
        rollout.reset(trajectory_id="named", protocol="thyme", image_files=[image], image_names=names)
        opened = rollout.run_python("from PIL import Image\nprint(Image.open('street.png').size)")
        assert ("FileNotFoundError" in str(opened)) == (not names)
    for rollout in rollouts:
        rollout.reset()


def test_a_rollout_that_writes_no_code_opens_nothing():
    groups = PromptGroups()
    groups.close()
    assert groups._threads is None


def test_a_sandbox_that_fails_is_kept_as_the_error_of_the_rollout(environment, monkeypatch):
    def unavailable(*_):
        raise SandboxUnavailable("no namespaces")

    monkeypatch.setattr(PromptGroups, "acquire", unavailable)
    shown = environment.run_python("print(1)")
    assert "SandboxUnavailable: no namespaces" in shown[1]["text"]
    assert isinstance(environment.error, SandboxUnavailable)


def test_the_tool_of_the_rows_protocol_is_there(image):
    rollout = SandboxEnvironment()
    rollout.reset(trajectory_id="crops", protocol="tool_call", image_files=[image])
    shown = rollout.run_python("crop_image_normalized(bbox_2d=[0, 0, 0.5, 0.5], target_image=1)")
    assert [part["type"] for part in shown] == ["text", "image", "text"]
    assert shown[0]["text"] == "<tool_response>\nimage 2: 70x56 pixels\n"
    rollout.reset()


def test_an_image_that_no_model_takes_is_an_error_that_the_model_is_told(environment):
    shown = environment.run_python("Image.new('RGB', (500, 2)).save('thin.png')")
    assert [part["type"] for part in shown] == ["text", "text", "text"]
    assert "an image of 500x2 pixels is too thin to be shown" in shown[1]["text"]


class Noting(SandboxEnvironment):
    """Notes code in place of executing it."""

    def _execute(self, code: str) -> Observation:
        self.ran = [*getattr(self, "ran", ()), code]
        return Observation("ok", f"{code} is number {len(self.ran)}")


@pytest.mark.parametrize(
    ("begun", "texts"),
    [
        (None, ["a is number 1", "a is number 2"]),
        ("a", ["a is number 1", "a is number 2"]),
        ("b", ["a is number 2", "a is number 3"]),
    ],
)
def test_code_that_was_begun_is_awaited_once_and_other_code_is_run(begun, texts):
    async def run():
        return [(await environment._run("a")).text for _ in texts]

    environment = Noting()
    if begun:
        environment._begin(begun)
        environment._ahead[1].result()
    assert asyncio.run(run()) == texts

"""Every layout holds every kind of row: images, roles, words, loss."""

from __future__ import annotations

import copy
import io
import re
from typing import Any, NamedTuple

import pytest
from PIL import Image

from darkroom.pipelines.publishing.layouts import LAYOUTS, Unfit, Unrenderable
from darkroom.pipelines.publishing.layouts.exporter import write_records
from darkroom.pipelines.publishing.layouts.record_writer import RecordWriter, placeholders, verify
from darkroom.pipelines.publishing.layouts.turns import opening, turns, unescaped
from tests.pipelines.publishing.layouts.conftest import N_IMAGES, UGLY

SFT = [name for name, layout in LAYOUTS.items() if not layout.prompts_only and layout.media != "none"]
RL = [name for name, layout in LAYOUTS.items() if layout.prompts_only]
QUESTION_IMAGES = dict.fromkeys(N_IMAGES, 1) | {"two_images": 2, "text_only": 0}


class Written(NamedTuple):
    record: dict[str, Any]
    group: str


class Collector(RecordWriter):
    """Keeps the records, with their groups, instead of writing them."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.rows: list[Written] = []

    def row(self, record: dict[str, Any], *, group: str = "", grader: str = "") -> None:
        self.rows.append(Written(record, group))


@pytest.fixture
def rendered(mixed, tmp_path):
    """The records of a layout, by the trajectory that they are of."""

    def render(name):
        with Collector(tmp_path, LAYOUTS[name], "train") as writer:
            write_records(mixed, LAYOUTS[name], writer)
        return {(r.record.get("trajectory_id") or r.record["extra_info"]["trajectory_id"]): r for r in writer.rows}

    return render


def said(layout, record):
    """Role and text of every message, images as ``<image>``."""
    for message in record[LAYOUTS[layout].messages]:
        content = message.get("content", message.get("value"))
        if not isinstance(content, str):
            content = "".join(part.get("text", "<image>") for part in content)
        yield message.get("role", message.get("from")), content


@pytest.mark.parametrize("name", SFT)
def test_every_row_shows_its_images(rendered, name):
    made = rendered(name)
    assert {key: len(value.record["images"]) for key, value in made.items()} == N_IMAGES
    for value in made.values():
        assert placeholders(value.record["messages" if name != "llama_factory" else "conversations"]) == len(
            value.record["images"]
        )


@pytest.mark.parametrize("name", RL)
def test_every_prompt_shows_the_images_of_its_question(rendered, name):
    made = rendered(name)
    assert set(made) == set(N_IMAGES)
    for key, value in made.items():
        assert placeholders(value.record["prompt"]) == len(value.record["images"]) == QUESTION_IMAGES[key]


@pytest.mark.parametrize("name", [*SFT, *RL])
def test_the_system_prompt_of_the_rows_mode_opens_it(rendered, name, mixed):
    by_id = {row["trajectory_id"]: row for row in mixed.rows()}
    for key, value in rendered(name).items():
        system = value.record.get("system") or next(text for role, text in said(name, value.record) if role == "system")
        assert system == opening(by_id[key])[0].parts[0].text


@pytest.mark.parametrize("name", [name for name in SFT if "trl" not in name])
def test_ugly_words_come_back_unchanged(rendered, name, mixed):
    row = next(row for row in mixed.rows() if row["trajectory_id"] == "ugly")
    words = "".join(text for role, text in said(name, rendered(name)["ugly"].record) if role != "system")
    expected = "".join(
        getattr(part, "text", "<image>") for turn in turns(row) if turn.role != "system" for part in turn.parts
    )
    found = unescaped(words.replace("<image>", "", 1))
    assert re.sub(r"\s", "", found) == re.sub(r"\s", "", expected.replace("<image>", "", 1))


@pytest.mark.parametrize("name", [name for name in SFT if "trl" not in name])
def test_no_trainer_finds_an_image_in_ugly_words(rendered, name):
    words = "".join(text for _, text in said(name, rendered(name)["ugly"].record))
    assert words.count("<image>") == 1
    assert not re.search(r"<(video|audio|bbox|img)>", words)
    assert "<|" not in words.replace("<| ", "")


def test_an_answer_that_holds_a_placeholder_is_escaped_and_what_a_rule_compares_is_not(rendered):
    assert rendered("verl_rl")["ugly"].record["reward_model"]["ground_truth"] == "<image> 7"


@pytest.mark.parametrize("name", ["llama_factory", "verl_sft"])
def test_rows_lie_in_groups_by_what_their_loss_policy_trains(rendered, name):
    groups = {key: value.group for key, value in rendered(name).items()}
    assert groups == dict.fromkeys(N_IMAGES, "all_rounds") | {"last_round": "last_round"}


@pytest.mark.parametrize("name", ["ms_swift", "ms_swift_inline"])
def test_every_assistant_message_of_ms_swift_says_whether_it_is_trained(rendered, name):
    made = rendered(name)
    flags = [message.get("loss") for message in made["last_round"].record["messages"] if message["role"] == "assistant"]
    assert flags == ([False, False, True] if name == "ms_swift" else [False, False, False, False, True])
    own = [message["loss"] for message in made["two_images"].record["messages"] if message["role"] == "assistant"]
    assert own == ([True] * 3 if name == "ms_swift" else [True, False, True, False, True])


def test_no_observation_of_an_inline_row_is_trained(rendered):
    for value in rendered("ms_swift_inline").values():
        for message in value.record["messages"]:
            if re.match(r"<(sandbox_output|interpreter|tool_response)>", message["content"]):
                assert message["loss"] is False
                assert message["content"].endswith(">\n")


@pytest.mark.parametrize("name", ["trl_turns", "trl_inline"])
def test_parts_of_trl_say_whether_they_are_trained(rendered, name):
    parts = [p for m in rendered(name)["last_round"].record["messages"] for p in m["content"] if p.get("train")]
    assert [part["text"] for part in parts] == ["It says STOP.</think>\n<answer>STOP</answer>"]


def test_errors_and_edits_read_as_the_protocol_wraps_them(rendered):
    words = "".join(text for _, text in said("ms_swift", rendered("ms_swift")["last_round"].record))
    assert "<sandbox_output>NameError: name 'crop' (line 1)</sandbox_output>" in words
    assert "import numpy" not in words


@pytest.mark.parametrize("name", [*SFT, *RL])
def test_image_values_are_the_bytes_that_came_in_or_relative_paths(rendered, name):
    for value in rendered(name).values():
        for image in value.record["images"]:
            if isinstance(image, str):
                assert re.fullmatch(r"images/[0-9a-f]{64}\.png", image)
            else:
                data = image if isinstance(image, bytes) else image["bytes"]
                Image.open(io.BytesIO(data)).verify()


def test_the_sft_of_openrlhf_takes_texts_and_sets_rows_with_images_aside(mixed, tmp_path):
    with Collector(tmp_path, LAYOUTS["openrlhf_sft"], "train") as writer:
        write_records(mixed, LAYOUTS["openrlhf_sft"], writer)
    assert [row.record["trajectory_id"] for row in writer.rows] == ["text_only"]
    assert writer.reasons == {"images_unsupported": 9}


def test_a_tool_that_verl_has_no_loop_for_asks_for_an_agent_of_its_own(rendered):
    made = {key: value.record["agent_name"] for key, value in rendered("verl_rl").items()}
    assert (made["forced"], made["one_round"]) == ("tool_agent", "darkroom_thyme_agent")
    assert not rendered("verl_rl")["forbidden"].record["extra_info"]["need_tools_kwargs"]


DAMAGES = {
    "an unknown protocol": (Unfit.UNKNOWN_PROTOCOL, lambda row: row.update(protocol="morse")),
    "an unknown mode": (Unfit.MALFORMED_ROW, lambda row: row.update(mode="maybe")),
    "an unknown loss policy": (Unfit.MALFORMED_ROW, lambda row: row.update(loss_policy="some")),
    "no answer": (Unfit.MALFORMED_ROW, lambda row: row.update(answer=None)),
    "no rounds": (Unfit.MALFORMED_ROW, lambda row: row.update(rounds=None)),
    "a round without code": (Unfit.MALFORMED_ROW, lambda row: row["rounds"][0].update(code=None)),
    "an image without size": (Unfit.MALFORMED_ROW, lambda row: row["image_refs"][0].update(width=None)),
    "a thought with a marker": (Unfit.MALFORMED_TURN, lambda row: row["rounds"][0].update(thought="a</code>")),
    "an empty answer": (Unfit.MALFORMED_TURN, lambda row: row.update(answer=" ")),
    "an empty question": (Unfit.EMPTY_TURN, lambda row: row.update(question=" \n")),
    "an image that is not there": (
        Unfit.IMAGES_DIFFER,
        lambda row: row["rounds"][1]["observation"].update(images=[2, 9]),
    ),
    "an image that is not shown": (Unfit.IMAGES_DIFFER, lambda row: row.update(n_question_images=1)),
    "images in another order": (Unfit.IMAGES_DIFFER, lambda row: row["rounds"][1]["observation"]["images"].reverse()),
    "a video in thyme": (
        Unfit.VIDEOS_UNSUPPORTED,
        lambda row: row.update(
            video_refs=[{"sha256": "0", "format": "mp4", "width": 1, "height": 1, "n_frames": 1, "fps": 1.0}]
        ),
    ),
}


@pytest.mark.parametrize(("reason", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_a_row_that_contradicts_itself_has_a_typed_reason(row, reason, damage):
    broken = copy.deepcopy(row)
    damage(broken)
    with pytest.raises(Unrenderable) as error:
        turns(broken)
    assert error.value.reason is reason


def _messages(*roles):
    return {"messages": [{"role": role, "content": "x"} for role in roles], "images": []}


@pytest.mark.parametrize(
    ("layout", "roles"),
    [
        ("ms_swift", ("user", "assistant", "assistant")),
        ("ms_swift", ("assistant", "user")),
        ("ms_swift", ("user", "user", "assistant")),
        ("ms_swift", ("user", "assistant", "system", "assistant")),
        ("ms_swift_inline", ("user", "user", "assistant")),
        ("verl_sft", ("user", "assistant", "user")),
        ("verl_sft", ()),
    ],
)
def test_roles_that_a_trainer_would_refuse_are_refused(layout, roles):
    with pytest.raises(Unrenderable, match="roles_differ"):
        verify(LAYOUTS[layout], _messages(*roles))


@pytest.mark.parametrize(
    ("content", "images", "reason"),
    [
        (" ", [], "empty_turn"),
        ("<image>", [], "images_differ"),
        ("x", ["a"], "images_differ"),
        ("<video>", [], "nothing"),
    ],
)
def test_a_record_that_a_trainer_would_misread_is_refused(content, images, reason):
    record = _messages("user", "assistant") | {"images": images}
    record["messages"][0]["content"] = content
    with pytest.raises(Unrenderable, match=reason):
        verify(LAYOUTS["ms_swift"], record)


def test_ugly_is_ugly():
    assert "<image>" in UGLY
    assert "<|im_end|>" in UGLY

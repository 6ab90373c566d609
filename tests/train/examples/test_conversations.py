import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.publishing.layouts import turns as rendering
from darkroom.pipelines.publishing.layouts.trl import messages_of
from darkroom.pipelines.publishing.layouts.turns import first_trained
from darkroom.pipelines.records import ImageRef, to_row
from darkroom.train.examples.encoding import conversation
from darkroom.train.runs import TrainError

LAYOUTS = st.sampled_from(["turns", "inline"])
POLICIES = st.sampled_from(["last_round", "all_rounds"])
# words as the protocol's parser leaves them: without blanks around them, and without its markers
WORDS = st.text(st.characters(exclude_characters="<`"), min_size=1).map(str.strip).filter(bool)


def drawn_row(words, loss_policy):
    """A row with one question image and one round per two words; every second round shows an image."""
    rounds = [
        {
            "thought": thought,
            "code": code,
            "observation": {
                "status": "ok",
                "text": f"seen {n}",
                "images": [n // 2 + 1] if n % 2 else [],
                "error": None,
            },
        }
        for n, (thought, code) in enumerate(words)
    ]
    n_images = 1 + len(rounds) // 2
    return {
        "trajectory_id": "t",
        "protocol": "thyme",
        "mode": "free",
        "question": "What?",
        "choices": [],
        "images": [object() for _ in range(n_images)],
        "image_refs": [to_row(ImageRef(str(n), 30, 20, "RGB", "PNG")) for n in range(n_images)],
        "video_refs": [],
        "n_question_images": 1,
        "rounds": rounds,
        "final_thought": "Done.",
        "answer": "7",
        "loss_policy": loss_policy,
    }


ROWS = st.builds(drawn_row, st.lists(st.tuples(WORDS, WORDS), max_size=4), POLICIES)


def written(said):
    return [part for message in said if message["role"] == "assistant" for part in message["content"]]


@given(ROWS, LAYOUTS)
def test_there_is_one_placeholder_per_image(row, layout):
    said = conversation(row, layout=layout)
    placeholders = [part for message in said for part in message["content"] if part["type"] == "image"]
    assert len(placeholders) == len(row["images"])


@given(ROWS, LAYOUTS)
def test_the_answer_is_always_trained_and_comes_last(row, layout):
    last = written(conversation(row, layout=layout))[-1]
    assert last["train"]
    assert last["text"].endswith("</think>\n<answer>7</answer>")


@given(ROWS, LAYOUTS)
def test_as_many_programs_are_trained_as_the_loss_policy_says(row, layout):
    n_rounds = len(row["rounds"])
    parts = [part for part in written(conversation(row, layout=layout)) if part.get("train")]
    expected = 0 if row["loss_policy"] == "last_round" and n_rounds >= 2 else n_rounds
    assert len(parts) == expected + 1
    assert expected == n_rounds - first_trained(n_rounds, row["loss_policy"])


@given(ROWS)
def test_the_inline_layout_is_one_assistant_turn_with_the_words_of_the_turns(row):
    inline, turns = conversation(row, layout="inline"), conversation(row, layout="turns")
    assert [message["role"] for message in inline] == ["system", "user", "assistant"]
    said = [part.get("text", "") for part in inline[-1]["content"]]
    parts = [part.get("text", "") for message in turns[2:] for part in message["content"]]
    assert "".join(said).replace("\n", "") == "".join(parts).replace("\n", "")


@given(ROWS)
def test_no_observation_is_trained_and_the_newline_after_it_is_part_of_it(row):
    inside = False
    for part in conversation(row, layout="inline")[-1]["content"]:
        inside = inside or part.get("text") == "<sandbox_output>"
        assert not (inside and part.get("train"))
        inside = inside and part.get("text") != "\n"
    assert not inside


@given(ROWS)
def test_every_observation_is_a_user_turn_in_the_layout_of_turns(row):
    roles = [message["role"] for message in conversation(row, layout="turns")]
    assert roles == ["system", "user", *["assistant", "user"] * len(row["rounds"]), "assistant"]


def test_the_question_is_followed_by_its_choices():
    row = drawn_row([], "all_rounds") | {"choices": ["A. 1", "B. 2"]}
    assert "What?\nA. 1\nB. 2\n" in messages_of(rendering.opening(row))[1]["content"][-1]["text"]


def test_the_opening_shows_the_question_images_only():
    row = drawn_row([("a", "b"), ("c", "d")], "all_rounds")
    assert [part["type"] for part in messages_of(rendering.opening(row))[1]["content"]] == ["image", "text"]


def test_an_unknown_protocol_is_named_with_the_row():
    with pytest.raises(TrainError, match=r"row t: unknown protocol 'morse'; known: .*thyme"):
        conversation(drawn_row([], "all_rounds") | {"protocol": "morse"}, layout="turns")


def test_words_that_no_turn_can_hold_are_an_error_of_their_row():
    with pytest.raises(TrainError, match=r"row t: thyme cannot hold these words: .*</code> without its partner"):
        conversation(drawn_row([("a</code>", "print(1)")], "all_rounds"), layout="turns")


@pytest.mark.parametrize("name", ["pyvision", "tool_call"])
def test_rows_of_any_protocol_are_conversations(name):
    row = drawn_row([("I look.", "print(1)"), ("I look.", "print(2)")], "all_rounds") | {"protocol": name}
    said = conversation(row, layout="turns")
    assert [message["role"] for message in said[2:]] == ["assistant", "user", "assistant", "user", "assistant"]


def test_an_observation_that_names_a_missing_image_is_an_error_of_its_row():
    row = drawn_row([("a", "b")], "all_rounds")
    row["rounds"][0]["observation"]["images"] = [5]
    with pytest.raises(TrainError, match=r"row t: an observation names images \[5\], the row has 1"):
        conversation(row, layout="turns")

"""The reward file beside an export: by itself stricter than Darkroom, with Darkroom the same; read by every trainer."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, strategies as st

from darkroom.adapters import reward
from darkroom.pipelines.publishing.layouts import PROMPT_LAYOUTS
from darkroom.pipelines.publishing.layouts.exporter import REWARD, export
from darkroom.pipelines.records import Grader, Sample, Truth, to_row
from darkroom.pipelines.records.answers import final_answer
from darkroom.pipelines.verification.grading import grade
from tests.pipelines.publishing.layouts.rl_rows import WRONG
from tests.pipelines.verification.grading.cases import KINDS, Said, said

ALONE = ("choice", "number", "text")
"""The kinds of graders that ``reward.py`` implements itself."""
ADVERSARIAL = [one for kind in ALONE for group in ("wrong", "right", "refused") for one in said(kind, group)]


def truth(one: Said) -> dict:
    sample = one.sample
    return {
        "answer": sample.answer,
        "question": sample.question,
        "choices": list(sample.choices),
        "grader": to_row(one.grader),
    }


@pytest.mark.parametrize("kind", ALONE)
def test_alone_it_accepts_no_adversarial_answer(kind):
    assert [one.given for one in said(kind, "wrong") if reward.alone(one.given, truth(one))] == []


def test_alone_it_accepts_only_what_darkroom_accepts():
    accepted = [one for one in ADVERSARIAL if reward.alone(one.given, truth(one))]
    assert len(accepted) > 0.4 * sum(len(said(kind, "right")) for kind in ALONE)
    assert [one.given for one in accepted if not grade(one.given, one.sample, one.grader).right] == []


LETTERS = st.text(st.sampled_from("aAbBdreu.,()$ \\{}\t\n\x1c\u200b\u00a0％5½"), max_size=8)
NUMBERS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "-", "+", "0", "$", "≈"]),
    st.one_of(st.integers(0, 3000).map(str), st.floats(0, 50).map("{:.2f}".format), st.sampled_from(["1,200", "1,20"])),
    st.sampled_from(["", " cm", "cm", " m", "%", " apples", ".", " or 5", " cm "]),
)


@given(
    said=NUMBERS,
    answer=NUMBERS,
    tolerance=st.sampled_from([0.0, 0.05]),
    unit=st.sampled_from(["", "cm"]),
    question=st.sampled_from(["How many cm?", "How many apples?", "Round to two decimal places."]),
)
def test_alone_a_number_is_right_only_where_darkroom_says_so(said, answer, tolerance, unit, question):
    one = Said(said, sample(question, answer), Grader("number", tolerance, unit))
    if reward.alone(said, truth(one)) and grade(answer, one.sample, one.grader).right:
        assert grade(said, one.sample, one.grader).right


@example(said="B\x1c", answer="B")
@given(said=LETTERS, answer=st.sampled_from(["A", "B"]))
def test_alone_a_choice_is_right_only_where_darkroom_says_so(said, answer):
    one = Said(said, sample("Which?", answer, ("A. red", "B. a blue")), Grader("choice"))
    assert reward.alone(said, truth(one)) <= grade(said, one.sample, one.grader).right


@given(said=LETTERS, answer=LETTERS)
def test_alone_a_text_is_right_only_where_darkroom_says_so(said, answer):
    one = Said(said, sample("What does it say?", answer), Grader("text"))
    if reward.alone(said, truth(one)) and grade(answer, one.sample, one.grader).right:
        assert grade(said, one.sample, one.grader).right


@pytest.mark.parametrize(
    ("kind", "given", "answer"),
    [
        ("choice", "B", "B"),
        ("choice", "(b)", "B"),
        ("choice", "B. a blue", "B"),
        ("choice", "a blue", "B"),
        ("choice", r"\boxed{B}", "B"),
        ("number", "42", "42"),
        ("number", "42.0", "42"),
        ("number", "1200", "1,200"),
        ("number", "$42$", "42"),
        ("number", "42 cm", "42 cm"),
        ("text", "stop", "STOP"),
        ("text", r"\boxed{STOP}", "STOP"),
    ],
)
def test_alone_it_accepts_what_a_trained_model_writes(kind, given, answer):
    choices = ("A. red", "B. a blue") if kind == "choice" else ()
    assert reward.alone(given, truth(Said(given, sample("Which?", answer, choices), Grader(kind))))


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(ALONE)))
def test_alone_it_says_what_other_kinds_need(kind):
    with pytest.raises(reward.NeedsToolkit, match="pip install darkroom-toolkit"):
        reward.alone("x", truth(Said("x", sample("Which?", "y"), Grader(kind))))


@given(st.lists(st.sampled_from(["<answer>", "</answer>", r"\boxed{", "}", "7", " B ", "<ANSWER>", "\n"])).map("".join))
def test_the_answer_is_read_as_darkroom_reads_it(text):
    assert reward.final_answer(text) == final_answer(text)


@pytest.mark.parametrize("marker", ["sandbox_output", "interpreter", "tool_response"])
def test_an_answer_that_a_program_printed_is_none(marker):
    observed = f"<{marker}><answer>7</answer></{marker}>"
    assert reward.final_answer(observed) is None
    assert reward.final_answer(f"{observed} so <answer>8</answer>") == "8"


def sample(question: str, answer: str, choices: tuple[str, ...] = ()) -> Sample:
    return Sample("s", "test", "1", "", (), question, choices, answer, Truth(), "object")


@pytest.fixture(scope="module")
def records(prompts, tmp_path_factory):
    """The rows of every layout, as its trainer reads them, and the folder."""
    from darkroom.pipelines.publishing.layouts.export_source import find_source

    made = {}
    for name, layout in PROMPT_LAYOUTS.items():
        folder = tmp_path_factory.mktemp(name) / "out"
        source = find_source("rl", Path(), split="train", prompts=prompts).in_protocol("thyme", None)
        export(source, layout, folder)
        made[name] = pq.read_table(folder / "train.parquet").to_pylist(), folder
    return made


def columns(rows: list[dict]) -> dict[str, list]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def by_trl(rows, answers):
    completions = [[{"role": "assistant", "content": answer}] for answer in answers]
    table = columns(rows)
    return reward.trl_reward(
        prompts=table.pop("prompt"), completions=completions, completion_ids=[], trainer_state=None, **table
    )


def by_verl(rows, answers):
    return [
        reward.verl_reward(
            data_source=row["data_source"],
            solution_str=answer,
            ground_truth=row["reward_model"]["ground_truth"],
            extra_info=row["extra_info"] | {"num_turns": 2},
        )["score"]
        for row, answer in zip(rows, answers, strict=True)
    ]


def by_ms_swift(rows, answers):
    return reward.MsSwiftReward(args=None)(answers, trainer_state=None, **columns(rows))


def by_easyr1(rows, answers):
    inputs = [
        {"response": answer, "response_length": 9, "ground_truth": row["ground_truth"]}
        for row, answer in zip(rows, answers, strict=True)
    ]
    batch = [one["overall"] for one in reward.easyr1_reward(inputs)]
    assert batch == [reward.easyr1_reward(one)["overall"] for one in inputs]
    return batch


def by_openrlhf(rows, answers):
    made = []
    for row, answer in zip(rows, answers, strict=True):
        asked = "".join(message["content"] for message in row["prompt"]) + "<|im_end|>\n<|im_start|>assistant\n"
        query = asked.replace("<image>", "<|image_pad|>" * 4) + answer + "<|im_end|>"
        made.append(reward.reward_func([query], [asked], [row["ground_truth"]])["rewards"])
    return made


BY = {
    "trl_grpo": by_trl,
    "verl_rl": by_verl,
    "ms_swift_grpo": by_ms_swift,
    "easyr1": by_easyr1,
    "openrlhf_rl": by_openrlhf,
}


def answer_of(row: dict) -> str:
    return row.get("answer") or row.get("solution") or row.get("label") or row["reward_model"]["ground_truth"]


def id_of(row: dict) -> str:
    return row.get("sample_id") or row["extra_info"]["sample_id"]


@pytest.mark.parametrize("name", PROMPT_LAYOUTS)
def test_every_trainer_rewards_the_right_answer_of_every_kind_and_no_wrong_one(records, name):
    rows, _ = records[name]
    thought = "<think>I look.</think>\n<answer>{}</answer>".format
    assert BY[name](rows, [thought(answer_of(row)) for row in rows]) == [1.0] * len(rows)
    assert BY[name](rows, [thought(WRONG[id_of(row)]) for row in rows]) == [0.0] * len(rows)
    assert BY[name](rows, ["I do not know."] * len(rows)) == [0.0] * len(rows)


@pytest.mark.parametrize("name", PROMPT_LAYOUTS)
@pytest.mark.parametrize("has_toolkit", [True, False])
def test_every_trainer_rewards_the_other_answers_that_a_row_accepts(records, name, has_toolkit, monkeypatch):
    monkeypatch.setattr(reward, "has_toolkit", lambda: has_toolkit)
    rows = [row for row in records[name][0] if id_of(row) == "placed"]
    answers = {"no": 1.0, "red": 1.0, "7": 1.0, "blue": 0.0, "8": 0.0, "red or no": 0.0}
    assert {answer: BY[name](rows, [f"<answer>{answer}</answer>"])[0] for answer in answers} == answers


def test_a_service_is_told_the_other_answers_that_a_row_accepts(records, monkeypatch):
    sent = []
    monkeypatch.setattr(reward, "has_toolkit", lambda: False)
    monkeypatch.setattr(reward.urllib.request, "urlopen", lambda request, timeout: sent.append(request.data) or open_())
    monkeypatch.setenv("DARKROOM_ENVIRONMENT_URL", "http://127.0.0.1:1")
    open_ = lambda: io.BytesIO(b'{"right": true}')  # noqa: E731
    rows, _ = records["trl_grpo"]
    assert by_trl(rows, ["<answer>x</answer>"] * len(rows)) == [1.0] * len(rows)
    graders = {json.loads(data)["truth"]["question"]: json.loads(data)["truth"]["grader"] for data in sent}
    assert graders["Is <image> in <image>?"]["accepted"] == ["red", "7"]
    assert "accepted" not in graders["What does the sign say?"]


def test_a_rollout_that_ends_in_an_observation_has_no_answer(records):
    rows, _ = records["trl_grpo"]
    seen = [{"role": "assistant", "content": "<answer>7</answer>"}, {"role": "tool", "content": "7"}]
    table = columns(rows[-1:])
    assert reward.trl_reward(completions=[seen], **table) == [0.0]


def test_the_prompt_of_openrlhf_is_no_part_of_its_response(records):
    """The system words of thyme show how an answer is written."""
    rows, _ = records["openrlhf_rl"]
    asked = "".join(message["content"] for message in rows[0]["prompt"])
    assert "<answer>" in asked
    with pytest.raises(ValueError, match="does not hold the end of its prompt"):
        reward.reward_func(["something else"], [asked], [rows[0]["ground_truth"]])


PROGRAM = """
import json, sys
sys.path.insert(0, {folder!r})
import reward
assert not reward.has_toolkit()
for line in sys.stdin:
    truth = json.loads(line)
    try:
        print(truth["grader"]["kind"], reward.score("<answer>" + truth["answer"] + "</answer>", truth))
    except reward.NeedsToolkit as fault:
        print(truth["grader"]["kind"], "pip install darkroom-toolkit" in str(fault))
"""


def test_the_file_runs_with_nothing_installed(records):
    rows, folder = records["easyr1"]
    assert (folder / "reward.py").read_bytes() == REWARD.read_bytes()
    lines = "\n".join(row["ground_truth"] for row in rows)
    command = [sys.executable, "-I", "-S", "-c", PROGRAM.format(folder=str(folder))]
    made = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    kinds = [json.loads(row["ground_truth"])["grader"]["kind"] for row in rows]
    assert made == [f"{kind} {1.0 if kind in ALONE else True}" for kind in kinds]


def test_ms_swift_finds_it_under_its_name_when_it_loads_it_as_a_plug_in(tmp_path):
    (tmp_path / "swift" / "rewards").mkdir(parents=True)
    (tmp_path / "swift" / "__init__.py").write_text("")
    (tmp_path / "swift" / "rewards" / "__init__.py").write_text("orms = {}\n")
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(REWARD.parent)!r}]\n"
        "import swift, reward\nfrom swift.rewards import orms\n"
        "assert orms['darkroom'] is reward.MsSwiftReward"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)

import json
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from pipelines.export import write_dataset
from sandbox import SandboxUnavailable
from tests.train.conftest import CROP, sign, sum_without_image
from train.environment import WORKSHOP
from train.faults import TrainFault
from train.grpo import Arguments, build_trainer, main, outcome_rewards, prompt, reinforce, written
from train.masks import segments
from train.models import load_processor
from train.rows import open_dataset

pytestmark = pytest.mark.filterwarnings(
    # TRL 1.16 reads the name that transformers 5.23 deprecates
    "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
)


@pytest.fixture(scope="module", autouse=True)
def _pool():
    yield
    WORKSHOP.close()


FIRST_TURNS = [
    f"<think>I crop.\n<code>\n```python\n{CROP}\n```\n</code><|im_end|>",
    "<think>I add.\n<code>\n```python\nprint(6 * 7)\n```\n</code><|im_end|>",
    "<think>I fail.\n<code>\n```python\nprint(nothing)\n```\n</code><|im_end|>",
    "<think>I guess.</think>\n<answer>blue</answer><|im_end|>",
]
SECOND_TURN = "It is red.</think>\n<answer>red</answer><|im_end|>"


class Scripted:
    """A logits processor that makes the model write a script: real generation, known words."""

    def __init__(self, tokenizer, n_prompt, scripts):
        self.n_prompt = n_prompt
        self.scripts = [tokenizer(script)["input_ids"] for script in scripts]

    def __call__(self, ids, scores):
        at = ids.shape[1] - self.n_prompt
        for row, script in enumerate(self.scripts):
            token = script[min(at, len(script) - 1)]
            scores[row] = -float("inf")
            scores[row, token] = 0.0
        return scores


def scripted_step(trainer, processor, first_turns):
    """One training step whose rollouts follow the script; returns what TRL computed for the batch."""
    from transformers import LogitsProcessorList

    generate, score = trainer.model.generate, trainer._generate_and_score_completions
    batch = {}

    def scripted(**inputs):
        ids = inputs["input_ids"]
        again = "</sandbox_output><|im_end|>" in processor.tokenizer.decode(ids[0])
        scripts = [SECOND_TURN] * ids.shape[0] if again else first_turns
        rules = LogitsProcessorList([Scripted(processor.tokenizer, ids.shape[1], scripts)])
        return generate(**inputs, logits_processor=rules)

    def captured(inputs):
        batch.update(score(inputs))
        return dict(batch)

    trainer.model.generate = scripted
    trainer._generate_and_score_completions = captured
    trainer.train()
    return batch


def rollout_segments(processor, batch, row):
    ids = batch["completion_ids"][row]
    mask = (batch["completion_mask"] * batch["tool_mask"])[row].bool()
    n_tokens = int(batch["completion_mask"][row].sum())
    labels = ids.masked_fill(~mask, -100)
    return segments(processor.tokenizer, ids[:n_tokens].tolist(), labels[:n_tokens].tolist())


@pytest.fixture(scope="module")
def one_sign(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dataset") / "one"
    write_dataset(folder, [sign(store, 0)], store=store)
    return folder


@pytest.fixture(scope="module")
def step(one_sign, tiny, tmp_path_factory):
    """One scripted step: a crop, a print, an error and a guess, each in the real sandbox."""
    processor = load_processor(tiny)
    arguments = Arguments(max_steps=1, max_tokens=400, repetition_penalty=1.0)
    trainer = build_trainer(open_dataset(one_sign), tiny, processor, arguments, steps=tmp_path_factory.mktemp("grpo"))
    batch = scripted_step(trainer, processor, FIRST_TURNS)
    return SimpleNamespace(processor=processor, batch=batch, log=trainer.state.log_history[0], trainer=trainer)


def test_what_the_model_wrote_is_trained_and_what_the_sandbox_showed_is_not(step):
    crop, number, failure, guess = (rollout_segments(step.processor, step.batch, row) for row in range(4))
    assert [segment.trained for segment in crop] == [True, False, True]
    assert crop[0].text == FIRST_TURNS[0]
    assert crop[1].text == (
        "\n<|im_start|>user\n<sandbox_output><|vision_start|><|image_pad|>×4<|vision_end|></sandbox_output><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert crop[2].text == number[2].text == SECOND_TURN
    assert "<sandbox_output>42</sandbox_output>" in number[1].text
    assert "NameError" in failure[1].text
    assert [(segment.text, segment.trained) for segment in guess] == [(FIRST_TURNS[3], True)]


def test_the_image_of_the_sandbox_reaches_the_model(step):
    assert step.batch["num_images"] == [2, 1, 1, 1]
    pixels, grid = step.batch["pixel_values"], step.batch["image_grid_thw"]
    assert grid.shape == (5, 3)
    assert pixels.shape[0] == int(grid.prod(dim=1).sum())


def test_image_tokens_line_up_with_their_types(step):
    """They do not with right padding, and TRL does not say so."""
    import torch

    ids = torch.cat([step.batch["prompt_ids"], step.batch["completion_ids"]], dim=1)
    assert ((ids == step.processor.image_token_id).long() == step.batch["mm_token_type_ids"]).all()


def test_rewards_and_their_parts_are_logged(step):
    assert step.log["accuracy"] == 0.75
    assert step.log["formatted"] == 1.0
    assert step.log["reward"] == pytest.approx(0.75 + 0.5)
    assert step.log["tool_calls"] == 0.75
    assert step.log["executable_rate"] == pytest.approx(2 / 3)
    assert step.log["broken_rate"] == 0.0


def test_the_step_changes_the_model(step):
    assert step.log["grad_norm"] > 0


def test_prompts_with_and_without_images_train_in_one_batch(store, tiny, tmp_path):
    pairs = [sign(store, 0), sum_without_image(7)]
    write_dataset(tmp_path / "mixed", pairs, store=store)
    processor = load_processor(tiny)
    arguments = Arguments(max_steps=1, generations=2, max_tokens=400, repetition_penalty=1.0, beta=0.0)
    trainer = build_trainer(open_dataset(tmp_path / "mixed"), tiny, processor, arguments, steps=tmp_path / "steps")
    batch = scripted_step(trainer, processor, [FIRST_TURNS[0]] * 4)
    assert sorted(batch["num_images"]) == [0, 0, 2, 2]
    assert trainer.state.log_history[0]["executable_rate"] == 0.5


def test_prompts_without_any_image_train(store, tiny, tmp_path):
    write_dataset(tmp_path / "sums", [sum_without_image(7)], store=store)
    processor = load_processor(tiny)
    arguments = Arguments(max_steps=1, max_tokens=400, repetition_penalty=1.0)
    trainer = build_trainer(open_dataset(tmp_path / "sums"), tiny, processor, arguments, steps=tmp_path / "steps")
    scripted_step(trainer, processor, [FIRST_TURNS[1]] * 4)
    assert trainer.state.log_history[0]["executable_rate"] == 1.0


def test_a_prompt_is_the_opening_with_the_question_images(rows):
    shown = prompt(rows[0])
    assert [message["role"] for message in shown["prompt"]] == ["system", "user"]
    assert len(shown["images"]) == 1
    assert (shown["answer"], shown["protocol"], shown["trajectory_id"]) == ("red", "thyme", "t0")


def test_a_prompt_brings_its_videos_for_the_sandbox_alone(rows):
    film = {"bytes": b"film", "path": "0.mp4"}
    assert prompt(rows[0])["videos"] == []
    shown = prompt({**rows[0], "videos": [film]})
    assert shown["videos"] == [b"film"]
    assert "film" not in str(shown["prompt"])


def test_a_sample_with_several_trajectories_is_one_prompt(store, tiny, tmp_path):
    from train.grpo import _one_per_sample

    write_dataset(tmp_path / "twice", [sign(store, 0), sign(store, 1), sign(store, 0)], store=store)
    assert list(_one_per_sample(open_dataset(tmp_path / "twice"))["sample_id"]) == ["s0", "s1"]


CALL = {"type": "function", "function": {"name": "run_python", "arguments": {"code": "print(1)"}}}
UNFINISHED = [{"role": "assistant", "content": "<think>I look.", "tool_calls": [CALL]}]


def test_what_was_written_is_the_turns_with_their_code():
    answer = {"role": "assistant", "content": "One.</think>\n<answer>1</answer>"}
    turns = [*UNFINISHED, {"role": "tool", "content": "1"}, answer]
    assert written(turns) == (
        "<think>I look.\n<code>\n```python\nprint(1)\n```\n</code>\nOne.</think>\n<answer>1</answer>"
    )


def rewarded(completions, environments):
    logged = {}
    rewards = outcome_rewards(
        completions,
        environments,
        answer=["1"] * len(completions),
        choices=[[]] * len(completions),
        protocol=["thyme"] * len(completions),
        log_metric=logged.__setitem__,
    )
    return rewards, logged


def test_a_rollout_without_an_answer_is_broken_and_earns_nothing():
    idle = SimpleNamespace(n_executions=0, n_ok=0, fault=None)
    cut_off = [{"role": "assistant", "content": "<think>I lo"}]
    shown = [*UNFINISHED, {"role": "tool", "content": "1"}]
    rewards, logged = rewarded([cut_off, UNFINISHED, shown], [idle] * 3)
    assert rewards == [0.0, 0.0, 0.0]
    assert logged == {"accuracy": 0.0, "formatted": 0.0, "broken_rate": 1.0, "tool_calls": 0.0}


def test_a_machine_that_cannot_execute_stops_the_training():
    broken = SimpleNamespace(n_executions=1, n_ok=0, fault=SandboxUnavailable("no namespaces"))
    with pytest.raises(TrainFault, match="no program can be executed here: no namespaces"):
        rewarded([UNFINISHED], [broken])


def test_rollouts_of_a_prompt_must_fit_a_batch(dataset, tiny, tmp_path):
    with pytest.raises(TrainFault, match="which is no multiple of 3 generations"):
        reinforce(dataset, tiny, tmp_path / "out", Arguments(generations=3))


def test_the_program_writes_a_checkpoint_that_it_knows_again(dataset, tiny, tmp_path):
    program = typer.Typer()
    program.command()(main)
    flags = ["--dataset", str(dataset), "--model", str(tiny), "--output", str(tmp_path / "out")]
    short = ["--max-steps", "1", "--max-tokens", "16"]
    first = CliRunner().invoke(program, [*flags, *short])
    assert first.exit_code == 0, first.output
    assert "step 1/1" in first.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"model.safetensors", "training.json", "reward.png", "chat_template.jinja"} <= names
    made = json.loads((tmp_path / "out" / "training.json").read_text())
    assert {"reward", "accuracy", "formatted", "tool_calls", "broken_rate", "loss"} <= made["steps"][0].keys()
    assert (tmp_path / "out" / "chat_template.jinja").read_text() == (tiny / "chat_template.jinja").read_text()
    assert "response_template" not in json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    second = CliRunner().invoke(program, [*flags, *short])
    assert "nothing to do" in second.output

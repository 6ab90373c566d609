import json
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from darkroom.pipelines.command_line.errors import program_of
from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.train.grpo import main, reinforce
from darkroom.train.models.loading import load_processor
from darkroom.train.rl.methods import METHODS, RolloutScore, named_method, settings_of
from darkroom.train.rl.rollouts.environment import PROMPT_GROUPS
from darkroom.train.rl.rollouts.prompts import open_prompts
from darkroom.train.rl.rollouts.sample_log import SampleLog
from darkroom.train.rl.rollouts.trainer import SandboxGRPOTrainer
from darkroom.train.rl.rollouts.training import build_trainer
from darkroom.train.runs import JudgeDown, TrainError
from tests.train.conftest import CROP, sign, sum_without_image
from tests.train.scripted import FIRST_TURNS, SECOND_TURN, rollout_segments, scripted_step

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings(
        # TRL 1.16 reads the name that transformers 5.23 deprecates
        "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
    ),
]


@pytest.fixture(scope="module", autouse=True)
def _pool():
    yield
    PROMPT_GROUPS.close()


def trained(folder, model, steps, method, first_turns, *, sample_log=None, **given):
    """Scripted steps of a method; the batch, the log and the processor."""
    processor = load_processor(model)
    given = {"max_steps": 1, "max_tokens": 600, "repetition_penalty": 1.0, **given}
    arguments = settings_of(method, **given)
    trainer = build_trainer(
        open_prompts(folder),
        model,
        processor,
        arguments,
        method=named_method(method),
        steps=steps,
        sample_log=sample_log,
    )
    batch = scripted_step(trainer, processor, first_turns)
    return SimpleNamespace(processor=processor, batch=batch, log=trainer.state.log_history, trainer=trainer)


@pytest.fixture(scope="module")
def one_sign(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dataset") / "one"
    write_trajectories(folder, [sign(store, 0)], store=store)
    return folder


@pytest.fixture(scope="module", params=["qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe"])
def step(request, one_sign, tinies, tmp_path_factory):
    """One scripted step: a crop, a print, an error and a guess, each in the real sandbox."""
    folder = tmp_path_factory.mktemp("grpo")
    sample_log = SampleLog(folder / "rollouts")
    made = trained(one_sign, tinies[request.param], folder, "thyme", FIRST_TURNS, sample_log=sample_log)
    made.shown = folder / "rollouts"
    return made


def test_what_the_model_wrote_is_trained_and_what_the_sandbox_showed_is_not(step):
    crop, number, failure, guess = (rollout_segments(step.processor, step.batch, row) for row in range(4))
    assert [segment.trained for segment in crop] == [True, False, True]
    assert crop[0].text == FIRST_TURNS[0].removesuffix("<|im_end|>")
    n_tokens = step.batch["image_grid_thw"][1].prod().item() // 4
    assert crop[1].text == (
        f"<|im_end|>\n<|im_start|>user\n<sandbox_output><|vision_start|><|image_pad|>×{n_tokens}<|vision_end|>"
        "</sandbox_output><|im_end|>\n<|im_start|>assistant\n"
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
    log = step.log[0]
    assert log["accuracy"] == 0.75
    assert log["parts/format"] == 1.0
    assert log["reward"] == pytest.approx(0.75 + 0.5)
    assert log["tool_calls"] == 0.75
    assert log["executable_rate"] == pytest.approx(2 / 3)
    assert log["broken_rate"] == 0.0
    assert log["turns"] == 1.75
    assert log["group_std"] == pytest.approx(0.75**0.5 / 2)
    assert {"kl", "entropy", "tokens", "sandbox/waiting_share", "positive_with_negative_advantage"} <= log.keys()


def test_length_counts_what_the_model_wrote_alone(step):
    n_trained = (step.batch["completion_mask"] * (step.batch["tool_mask"] > 0)).sum(dim=1).tolist()
    assert step.log[0]["tokens"] == sum(n_trained) / 4
    assert step.log[0]["completions/mean_length"] == sum(n_trained) / 4


def test_advantages_are_those_of_the_papers_formula(step):
    """Rewards 1.5, 1.5, 1.5 and 0.5; thyme divides by the standard deviation."""
    assert step.batch["advantages"].tolist() == pytest.approx([3**-0.5] * 3 + [-(3**0.5)])


def test_the_step_changes_the_model(step):
    assert step.log[0]["grad_norm"] > 0


def test_rollouts_can_be_looked_at(step):
    shown = json.loads((step.shown / "000001.json").read_text())
    assert [rollout["answer"] for rollout in shown] == ["red", "red", "red", "blue"]
    assert shown[0]["rounds"][0]["code"] == CROP
    assert (step.shown / "images" / shown[0]["rounds"][0]["images"][0]).is_file()
    assert (step.shown / "images" / shown[0]["question_images"][0]).is_file()
    assert shown[3]["reward"] == 0.5
    assert shown[3]["advantage"] == pytest.approx(-(3**0.5))


def test_prompts_with_and_without_images_train_in_one_batch(store, tiny, tmp_path):
    write_trajectories(tmp_path / "mixed", [sign(store, 0), sum_without_image(7)], store=store)
    made = trained(
        tmp_path / "mixed", tiny, tmp_path, "thyme", [FIRST_TURNS[0]] * 4, generations=2, batch_size=4, beta=0.0
    )
    assert sorted(made.batch["num_images"]) == [0, 0, 2, 2]
    assert made.log[0]["executable_rate"] == 0.5


def test_prompts_without_any_image_train(store, tiny, tmp_path):
    write_trajectories(tmp_path / "sums", [sum_without_image(7)], store=store)
    made = trained(tmp_path / "sums", tiny, tmp_path, "thyme", [FIRST_TURNS[1]] * 4)
    assert made.log[0]["executable_rate"] == 1.0


WRITTEN_IN = {
    "thyme": FIRST_TURNS[0],
    "pyvision": "I look.\n<code>\nplt.imshow(image_clue_0.crop((56, 28, 112, 84)))\nplt.show()\n</code><|im_end|>",
    "tool_call": (
        'I look.\n<tool_call>\n{"name": "crop_image_normalized", "arguments": {"bbox_2d": [0.4, 0.25, 0.8, 0.75], '
        '"target_image": 1}}\n</tool_call><|im_end|>'
    ),
}
ANSWERED_IN = {
    "thyme": SECOND_TURN,
    "pyvision": "It is red.\n<answer>\n\\boxed{red}\n</answer><|im_end|>",
    "tool_call": "It is red.\n\\boxed{red}<|im_end|>",
}
GUESSED_IN = {
    "thyme": FIRST_TURNS[3],
    "pyvision": "I guess.\n<answer>\n\\boxed{blue}\n</answer><|im_end|>",
    "tool_call": "I guess.\n\\boxed{blue}<|im_end|>",
}


@pytest.fixture(scope="module")
def rl_signs(store, tmp_path_factory):
    """RL rows about signs."""
    from darkroom.pipelines.records import Grader, RLRow
    from tests.pipelines.publishing.shipping import write_prompts

    folder = tmp_path_factory.mktemp("rl")
    rows = [RLRow(sign(store, index)[0], Grader("text"), "public", "unknown", None, None, None) for index in range(4)]
    write_prompts(folder, rows, store=store, split="train")
    return folder


@pytest.mark.parametrize("name", ["thyme", "pyvision", "codev", "adaptive", "figr"])
def test_each_method_trains_two_steps_with_images_from_code(name, rl_signs, tiny, tmp_path):
    protocol = named_method(name).protocol

    def half_look(texts):
        return [(WRITTEN_IN, GUESSED_IN)[row % 2][protocol] for row in range(len(texts))]

    processor = load_processor(tiny)
    arguments = settings_of(name, max_steps=2, max_tokens=600, repetition_penalty=1.0, generations=4, batch_size=4)
    trainer = build_trainer(
        open_prompts(rl_signs), tiny, processor, arguments, method=named_method(name), steps=tmp_path
    )
    batch = scripted_step(trainer, processor, half_look, ANSWERED_IN[protocol])
    first, second = trainer.state.log_history[:2]
    assert first["images_shown"] == second["images_shown"] == 0.5
    assert first["executable_rate"] == 1.0
    assert first["broken_rate"] == 0.0
    assert max(first["grad_norm"], second["grad_norm"]) > 0
    assert sum(batch["num_images"]) == 6
    assert {key for key in first if key.startswith("parts/")}


def test_without_visual_feedback_the_model_sees_text_alone(rl_signs, tiny, tmp_path):
    """Images of code are paid for and logged; the trained conversation has those of the questions."""
    name = "figr_without_visual_feedback"
    protocol = named_method(name).protocol
    made = trained(rl_signs, tiny, tmp_path, name, lambda texts: [WRITTEN_IN[protocol]] * len(texts), generations=2)
    assert made.log[0]["images_shown"] == 1.0
    assert sum(made.batch["num_images"]) == 2


def test_every_rollout_is_asked_in_its_mode(rl_signs, tiny, tmp_path):
    modes = []

    def told(texts):
        modes.extend("forced" if "must" in text else "other" for text in texts)
        return [GUESSED_IN["tool_call"]] * len(texts)

    made = trained(rl_signs, tiny, tmp_path, "adaptive", told, generations=4)
    assert len(modes) == 4
    assert made.log[0]["parts/instruction_forced"] == -1.0
    assert made.log[0]["parts/instruction_forbidden"] == 1.2
    assert made.log[0]["parts/necessity"] == 0.0


@pytest.mark.e2e
def test_a_papers_prompt_is_asked_and_code_opens_the_image_by_the_name_that_it_tells(rl_signs, tiny, tmp_path):
    code = 'from PIL import Image\nImage.open("image_0.png").crop((56, 28, 112, 84)).save("c.png")\nprint("c.png")'
    asked = []

    def told(texts):
        asked.extend(texts)
        return [f"<think>I look.\n<code>\n```python\n{code}\n```\n</code><|im_end|>"] * len(texts)

    made = trained(rl_signs, tiny, tmp_path, "thyme", told, generations=2, prompt="thyme_paper")
    assert all("User Image Path: image_0.png" in text for text in asked)
    assert made.log[0]["executable_rate"] == 1.0
    assert made.log[0]["images_shown"] == 1.0


def test_a_broken_rollout_is_out_of_the_update_and_counted(one_sign, tiny, tmp_path, caplog):
    """PyVision-RL takes a program's error for a broken rollout. TRL's log of it has the row's image and answer."""
    first = [FIRST_TURNS[2], FIRST_TURNS[0], FIRST_TURNS[0], FIRST_TURNS[3]]
    made = trained(one_sign, tiny, tmp_path, "pyvision", first, generations=4, oversample=1.0)
    assert made.log[0]["broken_rate"] == 0.25
    assert "returned None" not in caplog.text
    assert not made.batch["tool_mask"][0].any()
    assert made.batch["advantages"][0] == 0.0
    # 1.1, 1.1 and 0 about their own mean
    assert made.batch["advantages"][1:].tolist() == pytest.approx([1.1 / 3, 1.1 / 3, -2.2 / 3])
    kept = (made.batch["completion_mask"] * made.batch["tool_mask"]).sum()
    assert made.batch["num_items_in_batch"] == kept


@pytest.mark.parametrize("loss_type", ["grpo", "group", "dapo"])
def test_trl_computes_the_loss_that_was_chosen(loss_type, one_sign, tiny, tmp_path):
    """The policy has not moved yet: every token's loss is its rollout's advantage, negative."""
    first = [FIRST_TURNS[0], FIRST_TURNS[3], FIRST_TURNS[3], FIRST_TURNS[3]]
    made = trained(one_sign, tiny, tmp_path, "pyvision", first, generations=4, oversample=1.0, loss_type=loss_type)
    advantages, mask = made.batch["advantages"], made.batch["completion_mask"] * (made.batch["tool_mask"] > 0)
    lengths = mask.sum(1)
    assert lengths[0] > 1.5 * lengths[1]
    expected = {"grpo": advantages.mean(), "group": (advantages * lengths).sum() / lengths.sum()}
    assert made.log[0]["loss"] == pytest.approx(-expected.get(loss_type, expected["group"]).item(), abs=1e-4)


def test_of_oversampled_groups_those_with_most_spread_are_trained(store, tiny, tmp_path):
    """Four prompts: all wrong, all right, one of four right, two of four right; two are kept."""
    pairs = [sign(store, index) for index in (0, 4, 8, 12)]
    write_trajectories(tmp_path / "four", pairs, store=store)
    right, wrong = FIRST_TURNS[3].replace("blue", "red"), FIRST_TURNS[3]
    first = [wrong] * 4 + [right] * 4 + [right, wrong, wrong, wrong] + [right, right, wrong, wrong]
    made = trained(tmp_path / "four", tiny, tmp_path, "pyvision", first, generations=4, batch_size=8, oversample=2.0)
    assert made.batch["advantages"].shape == (8,)
    assert made.batch["advantages"].tolist() == pytest.approx([0.5, 0.5, -0.5, -0.5, 0.75, -0.25, -0.25, -0.25])
    assert made.log[0]["groups/no_spread"] == 0.5
    assert made.batch["completion_ids"].shape[0] == len(made.batch["num_images"]) == 8


def test_where_too_few_groups_are_worth_it_others_fill_the_batch_and_teach_nothing(store, tiny, tmp_path):
    write_trajectories(tmp_path / "two", [sign(store, 0), sign(store, 4)], store=store)
    made = trained(
        tmp_path / "two", tiny, tmp_path, "pyvision", [FIRST_TURNS[3]] * 4, generations=2, batch_size=2, oversample=2.0
    )
    assert not made.batch["tool_mask"].any()
    assert made.log[0]["grad_norm"] == 0.0


def test_a_rollout_ends_where_no_token_is_left_for_an_observation(one_sign, tiny, tmp_path):
    n_code = len(load_processor(tiny).tokenizer(FIRST_TURNS[0])["input_ids"])
    made = trained(one_sign, tiny, tmp_path, "thyme", [FIRST_TURNS[0]] * 4, max_tokens=n_code + 3)
    assert made.log[0]["answered"] == 0.0
    assert made.log[0]["turns"] == 1.0
    assert made.batch["completion_ids"].shape[1] <= n_code + 3


def test_turns_are_written_in_one_order_however_long_programs_take(one_sign, tiny, tmp_path, monkeypatch):
    batches, next_turns = [], SandboxGRPOTrainer._next_turns

    def watched(trainer, players):
        batches.append([player.environment._slot for player in players])
        return next_turns(trainer, players)

    monkeypatch.setattr(SandboxGRPOTrainer, "_next_turns", watched)
    turns = [
        f"<think>I wait.\n<code>\n```python\nimport time\ntime.sleep({seconds})\n```\n</code><|im_end|>"
        for seconds in (0.9, 0.6, 0.3, 0.0)
    ]
    trained(one_sign, tiny, tmp_path, "thyme", turns, generations=4)
    (batch,) = batches
    assert len(batch) == 4
    assert batch == sorted(batch)


def test_a_rollout_gets_no_more_programs_than_it_may_run(one_sign, tiny, tmp_path):
    made = trained(one_sign, tiny, tmp_path, "thyme", lambda texts: [FIRST_TURNS[1]] * len(texts), max_rounds=1)
    assert made.log[0]["tool_calls"] == 1.0


def test_a_training_that_a_judge_broke_off_goes_on_as_if_nothing_had_been(one_sign, model, tmp_path, monkeypatch):
    calls, down = [], [2]

    class Judged(METHODS["thyme"]):
        async def score(self, group, judges):
            calls.append(len(group))
            if len(calls) in down:
                raise JudgeDown("judge-32b", "no answer")
            return [RolloutScore(float(place), 0.0, {}) for place in range(len(group))]

    monkeypatch.setitem(METHODS, "judged", Judged)
    arguments = settings_of("judged", max_steps=3, max_tokens=16, generations=2, learning_rate=1e-3)
    with pytest.raises(JudgeDown, match="run the same command again: it goes on where it stopped"):
        reinforce(one_sign, model, tmp_path / "broken", arguments)
    made = reinforce(one_sign, model, tmp_path / "broken", arguments)
    assert (made["n_steps"], len(calls)) == (3, 4)
    whole = reinforce(one_sign, model, tmp_path / "whole", arguments)
    assert [step["reward"] for step in made["steps"]] == [step["reward"] for step in whole["steps"]]
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("broken", "whole")]
    assert weights[0] == weights[1]


def test_an_interrupted_training_resumes_with_more_steps_and_names_and_not_with_another_judge(
    rl_signs, tiny, tmp_path, monkeypatch
):
    given = {"max_steps": 2, "max_tokens": 16, "generations": 2, "batch_size": 4, "judge": "judge-32b"}

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("darkroom.train.models.loading.save_checkpoint", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reinforce(rl_signs, tiny, tmp_path / "out", settings_of("thyme", **given), save_steps=1)
    with pytest.raises(
        TrainError, match=r"\.out\.part has a restart point .*judge: 'judge-32b', now 'judge-7b'.*--restart"
    ):
        reinforce(rl_signs, tiny, tmp_path / "out", settings_of("thyme", **given | {"judge": "judge-7b"}))
    lines, changed = [], given | {"max_steps": 3, "batch_size": 2, "accumulation": 2}
    monkeypatch.setattr("darkroom.train.runs.reporting.RunReporter.line", lambda _, text: lines.append(text))
    settings = settings_of("thyme", **changed, options=["trainer.run_name=again"])
    made = reinforce(rl_signs, tiny, tmp_path / "out", settings)
    assert (made["n_steps"], len(list((tmp_path / "out" / "rollouts").glob("*.json")))) == (3, 3)
    assert made["resumed_with"][0].keys() == {"max_steps", "batch_size", "accumulation", "trainer.run_name"}


def test_an_unknown_method_is_named_with_the_known_ones():
    with pytest.raises(TrainError, match=r"unknown method 'ppo'; known: thyme"):
        settings_of("ppo")


def test_a_group_that_cannot_be_divided_is_refused(one_sign, tiny, tmp_path):
    with pytest.raises(TrainError, match="divides a group into quarters"):
        reinforce(one_sign, tiny, tmp_path / "out", settings_of("adaptive", generations=6))


def test_fewer_prompts_than_a_step_takes_are_refused(one_sign, tiny, tmp_path):
    two = settings_of("thyme", generations=2, batch_size=4, max_steps=1)
    with pytest.raises(TrainError, match="1 prompts, and a step takes 2: lower --batch-size or --accumulation"):
        reinforce(one_sign, tiny, tmp_path / "out", two)
    assert not (tmp_path / "out").exists()


def test_what_is_not_given_is_the_papers():
    assert settings_of("thyme").learning_rate == 5e-7
    assert settings_of("pyvision").oversample == 2.0
    assert settings_of("adaptive").generations == 16
    assert settings_of("thyme", learning_rate=1e-3).learning_rate == 1e-3


def test_the_program_writes_a_checkpoint_that_it_knows_again(dataset, tiny, tmp_path):
    program = program_of(main)
    flags = ["--dataset", str(dataset), "--model", str(tiny), "--output", str(tmp_path / "out")]
    short = ["--max-steps", "1", "--max-tokens", "16"]
    first = CliRunner().invoke(program, [*flags, *short])
    assert first.exit_code == 0, first.output
    assert "step 1/1" in first.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"model.safetensors", "training.json", "reward.png", "chat_template.jinja", "rollouts"} <= names
    made = json.loads((tmp_path / "out" / "training.json").read_text())
    assert {"reward", "accuracy", "parts/format", "tool_calls", "broken_rate", "loss"} <= made["steps"][0].keys()
    assert (tmp_path / "out" / "chat_template.jinja").read_text() == (tiny / "chat_template.jinja").read_text()
    assert "response_template" not in json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    second = CliRunner().invoke(program, [*flags, *short])
    assert "nothing to do" in second.output


def test_grpo_trains_with_arguments_of_the_trainer(one_sign, tiny, tmp_path):
    given = ["trainer.epsilon_high=0.28", "trainer.num_iterations=2", "trainer.weight_decay=0.1"]
    settings = settings_of("thyme", max_steps=2, max_tokens=12, generations=2, options=given)
    record = reinforce(one_sign, tiny, tmp_path / "out", settings)
    assert record["n_steps"] == 2
    assert record["inputs"]["arguments"]["trainer"]["num_iterations"] == 2
    with pytest.raises(TrainError, match="--save-steps 1: each answer is trained in 2 steps"):
        reinforce(one_sign, tiny, tmp_path / "odd", settings, save_steps=1)

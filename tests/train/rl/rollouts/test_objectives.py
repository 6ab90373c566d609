"""Loss and gradient of every method against its paper's objective, written out here and differentiated by torch.

Rollouts are planted, of unequal lengths, with observations within, and so are their rewards. All that is made of both
is the trainer's own: advantages, the exclusion of broken rollouts, weights, accumulated batches, loss.
"""

from dataclasses import fields
from pathlib import Path
from statistics import fmean, pstdev
from typing import NamedTuple

import pytest
import torch
import yaml
from transformers import TrainerCallback
from trl.trainer.grpo_config import GRPOConfig

from darkroom.train.models.loading import load_model, load_processor
from darkroom.train.rl import methods
from darkroom.train.rl.methods import named_method, settings_of
from darkroom.train.rl.rollouts.environment import PROMPT_GROUPS
from darkroom.train.rl.rollouts.generation import RolloutGenerator
from darkroom.train.rl.rollouts.prompts import open_prompts
from darkroom.train.rl.rollouts.scoring import Scores
from darkroom.train.rl.rollouts.training import build_trainer
from darkroom.train.runs.options import FIXED
from tests.matrices import first_quickly
from tests.train.scripted import FIRST_TURNS, scripted_step

pytestmark = pytest.mark.filterwarnings(
    # TRL 1.16 reads the name that transformers 5.23 deprecates
    "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
)

FIELDS = yaml.safe_load(Path(methods.__file__).with_name("loss.yaml").read_text())
SIZE = 4
LENGTHS = [3, 40, 17, 8, 25, 1, 9, 30, 6, 12, 2, 21]
REWARDS = [1.5, 0.5, None, 0.0, 2.0, 1.0, 0.0, 0.0, None, 1.2, 0.0, None]
"""Of three groups; None is broken. A malformed rollout has a reward like any other."""
EPSILON, BETA, LONGEST = 0.2, 0.05, 64


class Tokens(NamedTuple):
    """The arguments of an objective: (rollouts, tokens), advantages (rollouts, 1)."""

    new: torch.Tensor
    """Log-probabilities of the policy in training; ``old`` of the one that rolled out, ``ref`` of the reference."""
    old: torch.Tensor
    ref: torch.Tensor
    entropy: torch.Tensor
    advantage: torch.Tensor
    written: torch.Tensor
    """1 for the model's tokens of rollouts that are not broken."""


def surrogate(tokens, ratio=None):
    """Clipped as in CodeV eq. 4, FIGR eq. 10 and GRPO, which the others name (on policy the ratio is 1: Thyme §4.2)."""
    ratio = (tokens.new - tokens.old).exp() if ratio is None else ratio
    return torch.minimum(ratio * tokens.advantage, ratio.clamp(1 - EPSILON, 1 + EPSILON) * tokens.advantage)


def divergence(tokens):
    """The KL of each token as GRPO estimates it (Shao et al. 2024, eq. 4); the papers name no other estimator."""
    return (tokens.ref - tokens.new).exp() - (tokens.ref - tokens.new) - 1


def over_group(values, written):
    """Thyme §4.2: 1 / Σ|τ| of a group, then the mean of groups."""
    groups = zip(values.split(SIZE), written.split(SIZE), strict=True)
    return torch.stack([(value * mask).sum() / mask.sum() for value, mask in groups]).mean()


def over_rollouts(values, written):
    """FIGR eq. 9: 1 / G Σ 1 / |τ|, G without the broken ones."""
    lengths, rows = written.sum(1), (values * written).sum(1)
    means = [
        row[length > 0] / length[length > 0] for row, length in zip(rows.split(SIZE), lengths.split(SIZE), strict=True)
    ]
    return torch.stack([of_group.mean() for of_group in means]).mean()


def over_tokens(values, written):
    """CodeV eq. 4: over rollouts and tokens at once."""
    return (values * written).sum() / written.sum()


def objective(tokens, mean, beta):
    return mean(surrogate(tokens) - beta * divergence(tokens), tokens.written)


def advantages(rewards, *, scaled):
    """A = r - mean of the group, divided by its deviation where the method says so; broken rollouts are in neither."""
    of_rows = []
    for start in range(0, len(rewards), SIZE):
        group = rewards[start : start + SIZE]
        whole = [reward for reward in group if reward is not None]
        spread = pstdev(whole) if scaled else 1.0
        of_rows += [0.0 if reward is None else (reward - fmean(whole)) / spread for reward in group]
    return torch.tensor(of_rows).unsqueeze(1)


@pytest.fixture(scope="module")
def planted(tiny):
    """The batch as TRL hands it on, without weights: old and reference policies are other ones than the tiny model."""
    torch.manual_seed(0)
    n_rows, width = len(LENGTHS), max(LENGTHS)
    completion_mask = (torch.arange(width) < torch.tensor(LENGTHS).unsqueeze(1)).long()
    observed = torch.rand(n_rows, width) < 0.3
    observed[:, 0] = False
    batch = {
        "prompt_ids": torch.randint(10, 200, (n_rows, 5)),
        "prompt_mask": torch.ones(n_rows, 5, dtype=torch.long),
        "completion_ids": torch.randint(10, 200, (n_rows, width)),
        "completion_mask": completion_mask,
        "tool_mask": (~observed).long(),
        "advantages": torch.zeros(n_rows),
        "num_items_in_batch": (completion_mask * ~observed).sum(),
    }
    new, _ = scored(load_model(tiny), batch, 1.0)
    batch["old_per_token_logps"] = new.detach() + 0.1 + 0.4 * torch.randn(new.shape)
    batch["ref_per_token_logps"] = new.detach() + 0.4 * torch.randn(new.shape)
    return batch


def scored(model, batch, temperature):
    """Log-probability and entropy of each token of the completions."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    start = batch["prompt_ids"].shape[1] - 1
    images = {name: batch[name] for name in ("pixel_values", "image_grid_thw", "mm_token_type_ids") if name in batch}
    logits = model(input_ids=ids, attention_mask=mask, **images).logits[:, start:-1]
    logprobs = (logits / temperature).log_softmax(-1)
    of_tokens = logprobs.gather(-1, batch["completion_ids"].unsqueeze(-1)).squeeze(-1)
    return of_tokens, -(logprobs.exp() * logprobs).sum(-1)


@pytest.fixture
def compare(planted, signs, tiny, tmp_path, monkeypatch):
    """A function that trains one step on the planted batch and compares loss and gradient with ``-objective``."""
    monkeypatch.setattr(RolloutGenerator, "_generate_and_score_completions", lambda *_: dict(planted), raising=False)

    def compared(name, value, *, accumulation=1, **given):
        given = {"generations": SIZE, "oversample": 1.0, "max_tokens": LONGEST, "beta": BETA, **given}
        settings = settings_of(name, batch_size=12 // accumulation, accumulation=accumulation, **given)
        method, processor = named_method(name), load_processor(tiny)
        trainer = build_trainer(open_prompts(signs), tiny, processor, settings, method=method, steps=tmp_path)
        broken = tuple("timeout" if reward is None else None for reward in REWARDS)
        trainer._scores = Scores((None,) * 12, broken, tuple(REWARDS), (1.0,) * 12, ({},) * 12)
        trainer.current_gradient_accumulation_steps = accumulation
        rows, loss = [{"mode": mode} for mode in method.modes(SIZE)] * 3, 0.0
        trainer.model.train()
        for _ in range(accumulation):
            part = trainer.compute_loss(trainer.model, trainer._prepare_inputs(rows))
            part.backward()
            loss, trainer._step = loss + part.item(), trainer._step + 1

        model = load_model(tiny)
        new, entropy = scored(model, planted, settings.temperature)
        written = planted["completion_mask"] * planted["tool_mask"]
        written = written * torch.tensor([reward is not None for reward in REWARDS]).unsqueeze(1)
        old, ref = planted["old_per_token_logps"], planted["ref_per_token_logps"]
        expected = -value(
            Tokens(new, old, ref, entropy, advantages(REWARDS, scaled=settings.scale == "group"), written)
        )
        expected.backward()
        assert loss == pytest.approx(expected.item(), rel=1e-4)
        found, wanted = gradient(trainer.model), gradient(model)
        assert (found - wanted).norm() < 1e-4 * wanted.norm()
        return trainer

    return compared


def gradient(model):
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


OFF_POLICY = {"generations": 4, "batch_size": 4, "accumulation": 2, "max_steps": 2, "max_tokens": 600, "beta": BETA}
OFF_POLICY |= {"learning_rate": 3e-3, "repetition_penalty": 1.0, "schedule": "constant"}
MEANS = {
    "thyme": over_group,
    "pyvision": over_tokens,  # the paper names GRPO and gives no objective
    "codev": over_tokens,
    "adaptive": over_rollouts,  # the paper gives no objective
    "figr": over_rollouts,
}


@pytest.mark.parametrize("accumulation", first_quickly([2, 1, 4]))
@pytest.mark.parametrize("name", MEANS)
def test_loss_and_gradient_are_the_papers_off_policy_with_clip_and_kl(name, accumulation, compare):
    trainer = compare(name, lambda tokens: objective(tokens, MEANS[name], BETA), accumulation=accumulation)
    assert max(trainer._metrics["train"]["clip_ratio/region_mean"]) > 0.05
    assert min(trainer._metrics["train"]["kl"]) > 0


@pytest.mark.e2e
def test_a_training_with_greedy_code_images_and_a_broken_rollout_takes_the_papers_steps(
    signs, tiny, tmp_path, monkeypatch
):
    """Thyme's, as it trains: code in the sandbox, its images in the rollout, two updates on one batch."""
    settings = settings_of("thyme", **OFF_POLICY, options=["trainer.num_iterations=2", "trainer.max_grad_norm=0"])
    assert settings.adaptive_temperature
    rewards = REWARDS[:8]

    async def planted_scores(outcomes, *_, **__):
        return Scores(tuple(outcomes), (None,) * 8, tuple(rewards), (1.0,) * 8, ({},) * 8)

    monkeypatch.setattr("darkroom.train.rl.rollouts.trainer.scored", planted_scores)
    processor = load_processor(tiny)
    trainer = build_trainer(
        open_prompts(signs), tiny, processor, settings, method=named_method("thyme"), steps=tmp_path
    )
    losses, steps, compute = [], [], trainer.compute_loss

    def recorded(*given, **options):
        losses.append(compute(*given, **options))
        return losses[-1]

    class Kept(TrainerCallback):
        def on_pre_optimizer_step(self, *_, model, **__):
            weights = {name: value.clone() for name, value in model.state_dict().items()}
            steps.append((sum(part.item() for part in losses), gradient(model), weights))
            losses.clear()

    trainer.compute_loss = recorded
    trainer.add_callback(Kept())
    batch = scripted_step(trainer, processor, FIRST_TURNS[1:] + FIRST_TURNS[:2] + FIRST_TURNS[1:])
    PROMPT_GROUPS.close()
    assert sum(batch["num_images"]) > 8
    assert trainer.state.log_history[1]["clip_ratio/region_mean"] > 0.05

    written = batch["completion_mask"] * (batch["tool_mask"] > 0)
    assert [row for row in range(8) if not written[row].any()] == [2]
    first = scored(load_model(tiny), batch, settings.temperature)[0].detach()
    for loss, found, weights in steps:
        model = load_model(tiny)
        model.load_state_dict(weights)
        new, entropy = scored(model, batch, settings.temperature)
        tokens = Tokens(new, first, first, entropy, advantages(rewards, scaled=True), written)
        expected = -objective(tokens, over_group, BETA)
        expected.backward()
        assert loss == pytest.approx(expected.item(), rel=1e-3, abs=1e-6)
        assert (found - gradient(model)).norm() < 1e-3 * gradient(model).norm()


LOSS_TYPES = {"group": over_group, "grpo": over_rollouts, "dapo": over_tokens}


def of_rollouts(values, written):
    return (values * written).sum(1, keepdim=True) / written.sum(1, keepdim=True).clamp(min=1)


@pytest.mark.parametrize("accumulation", first_quickly([4, 1]))
@pytest.mark.parametrize("loss_type", first_quickly(LOSS_TYPES))
def test_a_ratio_of_whole_rollouts_is_the_mean_of_theirs(loss_type, accumulation, compare):
    """GSPO (Zheng et al. 2025, eq. 7), whatever the tokens weigh."""

    def value(tokens):
        ratio = of_rollouts(tokens.new - tokens.old, tokens.written).exp()
        return LOSS_TYPES[loss_type](surrogate(tokens, ratio) - BETA * divergence(tokens), tokens.written)

    options = ["trainer.importance_sampling_level=sequence", "trainer.epsilon_high=0.2"]
    compare("codev", value, accumulation=accumulation, loss_type=loss_type, options=options)


@pytest.mark.parametrize("loss_type", first_quickly(LOSS_TYPES))
def test_rollouts_far_from_the_policy_are_masked_by_the_mean_of_their_tokens(loss_type, compare):
    """DeepSeek-V3.2, eq. 9; of the KL they stay a part, as in TRL."""
    masked = []

    def value(tokens):
        far = of_rollouts(tokens.old - tokens.new, tokens.written) > 0.05
        kept = 1.0 - (far & (tokens.advantage < 0)).float()
        masked.append(int((kept == 0).sum()))
        return LOSS_TYPES[loss_type](kept * surrogate(tokens) - BETA * divergence(tokens), tokens.written)

    compare("codev", value, accumulation=2, loss_type=loss_type, options=["trainer.off_policy_mask_threshold=0.05"])
    assert masked[0] > 1


@pytest.mark.parametrize("loss_type", first_quickly(LOSS_TYPES))
def test_of_the_tokens_the_fifth_with_most_entropy_is_trained_whatever_they_weigh(loss_type, compare):
    def value(tokens):
        least = tokens.entropy[tokens.written > 0].quantile(0.8)
        uncertain = (tokens.entropy >= least).float()
        return LOSS_TYPES[loss_type](uncertain * surrogate(tokens) - BETA * divergence(tokens), tokens.written)

    compare("codev", value, loss_type=loss_type, options=["trainer.top_entropy_quantile=0.2"])


@pytest.mark.parametrize("loss_type", first_quickly(LOSS_TYPES))
def test_an_entropy_bonus_weighs_tokens_as_the_loss_does(loss_type, compare):
    def value(tokens):
        mean = LOSS_TYPES[loss_type]
        return objective(tokens, mean, BETA) + 0.1 * mean(tokens.entropy, tokens.written)

    compare("codev", value, loss_type=loss_type, options=["trainer.entropy_coef=0.1"])


def test_two_sided_clips_and_other_bounds_reach_the_loss(compare):
    def value(tokens):
        ratio = (tokens.new - tokens.old).exp()
        inside = ratio.clamp(1 - EPSILON, 1.3)
        clip = torch.minimum(ratio.clamp(max=1.5) * tokens.advantage, inside * tokens.advantage)
        return over_group(clip - BETA * divergence(tokens), tokens.written)

    compare("thyme", value, options=["trainer.epsilon_high=0.3", "trainer.delta=1.5"])


@pytest.mark.parametrize("name", MEANS)
def test_no_default_of_trls_enters_the_loss(name, signs, tiny, tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr("darkroom.train.rl.rollouts.training.GRPOConfig", lambda **all_: given.append(all_) or 1 / 0)
    settings, processor = settings_of(name, options=["trainer.delta=4"]), load_processor(tiny)
    with pytest.raises(ZeroDivisionError):
        build_trainer(open_prompts(signs), tiny, processor, settings, method=named_method(name), steps=tmp_path)
    assert FIELDS["set"].keys() | set(FIELDS["options"]) <= given[0].keys()
    assert given[0]["use_bias_correction_kl"] is False
    assert given[0]["delta"] == 4


def test_every_field_of_trls_configuration_is_on_the_list():
    """A field of a new version may enter the loss: decide in ``methods/loss.yaml``, or refuse it."""
    of_trl = {field.name for field in fields(GRPOConfig)}
    outside = {name for names in FIELDS["outside"].values() for name in names}
    lists = [FIELDS["set"].keys(), set(FIELDS["options"]), outside, FIXED["grpo"].keys() - set(FIELDS["options"])]
    assert of_trl - set().union(*lists) == set()
    assert set().union(*lists[:3]) - of_trl == set()
    assert sum(map(len, lists)) == len(set().union(*lists))

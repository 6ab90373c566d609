import pytest
import torch
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.train.models.loading import load_model
from darkroom.train.models.planning import Load, cache_bytes, memory, shape_of, step_seconds
from darkroom.train.runs import TrainError

IDS = torch.arange(5, 37).view(1, -1)
PUBLISHED = {"3B": 3.75, "7B": 8.29, "qwen3-vl-8b": 8.77, "qwen3-vl-32b": 33.4}


def n_bytes(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def test_weights_gradients_moments_and_cache_are_those_of_real_tensors(model):
    loaded = load_model(model, keeps_float32=True)
    weights = list(loaded.parameters())
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    optimizer = torch.optim.AdamW(weights)
    optimizer.step()
    moments = [state[name] for state in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]
    shape = shape_of(str(model))
    parts = memory(shape, Load(n_gpus=1, rows=1, tokens=32), sharded=False)
    assert shape.n_parameters == loaded.num_parameters()
    assert parts["weights"] == n_bytes(weights)
    assert parts["gradients"] == n_bytes(weight.grad for weight in weights)
    assert parts["optimiser"] == n_bytes(moments)
    cache = loaded(input_ids=IDS, use_cache=True).past_key_values
    held = n_bytes(tensor for layer in cache.layers for tensor in (layer.keys, layer.values))
    assert cache_bytes(shape, IDS.numel(), width=4) == held


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_have_as_many_parameters_as_their_cards_say(name):
    assert shape_of(name).n_parameters / 1e9 == pytest.approx(PUBLISHED[name], rel=0.003)


def test_sharding_divides_what_is_kept_and_takes_longer_to_generate():
    shape, load = shape_of("7B"), Load(n_gpus=8, rows=4, tokens=8192, n_generated=4096, with_reference=True)
    whole, sharded = (memory(shape, load, sharded=sharded) for sharded in (False, True))
    for part in ("weights", "gradients", "optimiser", "reference model"):
        assert sharded[part] == whole[part] // 8
    assert sharded["activations"] == whole["activations"]
    assert step_seconds(shape, load, sharded=True)[1] > step_seconds(shape, load, sharded=False)[1]


def test_an_unknown_size_is_one_line_with_the_known_ones():
    with pytest.raises(TrainError, match=r"no model '9B': a folder with config\.json, or one of qwen2\.5-vl-3b"):
        shape_of("9B")


def test_the_command_says_what_fits():
    told = CliRunner().invoke(app, ["train", "plan", "--model", "7B", "--gpus", "8", "--tokens", "4096"]).output
    assert "8.29 billion parameters; sft on 8 GPU(s)" in told
    assert "ddp.yaml: 1" in told
    assert "DOES NOT FIT into 72" in told
    assert told.count("fits") == 1
    assert CliRunner().invoke(app, ["train", "plan", "--model", "9B"]).exit_code == 1

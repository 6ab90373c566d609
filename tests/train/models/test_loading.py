import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from darkroom.train.models import loading
from darkroom.train.models.loading import check_weights, load_model, require_model, score_only_trained_tokens
from darkroom.train.runs import TrainError


@pytest.mark.parametrize(("keeps_float32", "least", "most"), [(True, 0.95, 1.0), (False, 0.0, 0.1)])
def test_at_the_papers_rates_weights_move_only_in_float32(keeps_float32, least, most, tiny, monkeypatch):
    """20 steps of AdamW at 1e-6, computed in bfloat16 as on a GPU."""
    monkeypatch.setattr(loading, "has_gpu", lambda: True)
    model = load_model(tiny, keeps_float32=keeps_float32)
    weights = [weight for name, weight in model.named_parameters() if "layers" in name and weight.ndim == 2]
    before = [weight.detach().clone() for weight in weights]
    optimizer = torch.optim.AdamW(weights, lr=1e-6, weight_decay=0.0)
    ids = torch.arange(5, 37).view(1, -1)
    for _ in range(20):
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    pairs = [(old, new.detach()) for old, new in zip(before, weights, strict=True)]
    moved = sum((old != new).sum().item() for old, new in pairs) / sum(old.numel() for old, _ in pairs)
    assert least <= moved <= most


def test_only_trained_tokens_are_scored_with_the_same_loss_and_gradients(tiny, monkeypatch):
    from trl.kernels import chunked_logprob
    from trl.trainer import utils

    scored = []
    ids, labels = torch.arange(5, 37).view(2, 16), torch.full((2, 16), -100)
    labels[0, 3:6], labels[1, 9:] = ids[0, 3:6], ids[1, 9:]
    apply = utils._ChunkedLogProbFunction.apply
    monkeypatch.setattr(
        utils._ChunkedLogProbFunction,
        "apply",
        lambda hidden, *others: scored.append(len(hidden)) or apply(hidden, *others),
    )
    found = []
    monkeypatch.setattr(utils, "_use_triton", chunked_logprob._use_triton)  # another test may have begun a training
    for everything in (True, False):
        model = load_model(tiny)
        if not everything:
            score_only_trained_tokens()
        utils.add_fused_lm_head(model)
        loss = model(input_ids=ids, labels=labels, fused_lm_head=True).loss
        loss.backward()
        found.append((loss.detach(), [weight.grad for weight in model.parameters() if weight.grad is not None]))
    assert scored == [30, 10]
    torch.testing.assert_close(*found)


def half_a_file(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def sharded(folder, *, n_missing):
    """As a model of several files, of which the last are not there."""
    names = [f"model-0000{n}-of-00003.safetensors" for n in range(1, 4)]
    for name in names[: 3 - n_missing]:
        shutil.copy(folder / "model.safetensors", folder / name)
    (folder / "model.safetensors").unlink()
    weights = {f"weight.{n}": name for n, name in enumerate(names)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))


def quantised(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "awq"}}))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), r"model\.safetensors is missing: download"),
        (
            lambda folder: half_a_file(folder / "model.safetensors"),
            r"is cut off, with [\d,]+ of [\d,]+ bytes: download",
        ),
        (
            lambda folder: (folder / "model.safetensors").write_text(
                "version https://git-lfs.github.com/spec/v1\noid sha256:0"
            ),
            r"is a pointer of Git LFS, not the weights: download",
        ),
        (lambda folder: (folder / "model.safetensors").write_bytes(b""), "is no safetensors file, or its beginning"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\xff" * 99), "is no safetensors file, or its be"),
        (lambda folder: sharded(folder, n_missing=1), r"model-00003-of-00003\.safetensors is missing: download"),
        (
            lambda folder: (folder / "tokenizer.json").unlink(),
            r"has no tokenizer\.json or vocab\.json or tokenizer\.model: download",
        ),
        (
            lambda folder: [path.unlink() for path in folder.glob("*processor_config.json")],
            r"has no preprocessor_config\.json or processor_config\.json: download",
        ),
        (lambda folder: half_a_file(folder / "tokenizer.json"), r"tokenizer\.json is no JSON \(.*: download"),
        (
            lambda folder: (folder / "tokenizer.json").write_text("version https://git-lfs.github.com/spec/v1\n"),
            r"tokenizer\.json is no JSON \(.*: download",
        ),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text('{"weight_map": {'),
            r"index\.json is no JSON \(.*: download",
        ),
        (quantised, r"is quantised: .*gptqmodel.*\. Take the model that it was made of, or serve this one with vLLM"),
    ],
    ids=[
        *("none", "cut", "pointer", "empty", "noise", "a shard", "tokenizer", "processor"),
        *("half a tokenizer", "a tokenizer's pointer", "half an index", "quantised"),
    ],
)
def test_half_a_download_is_said_before_anything_is_loaded(damage, said, tiny, tmp_path):
    folder = shutil.copytree(tiny, tmp_path / "model")
    require_model(folder)
    damage(folder)
    with pytest.raises(TrainError, match=said) as error:
        require_model(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("shape", [None, (3, 3)])
def test_weights_of_which_one_lacks_or_has_another_shape_are_said_before_they_are_read(shape, tiny, tmp_path, capfd):
    folder = shutil.copytree(tiny, tmp_path / "model")
    check_weights(folder)
    weights = load_file(folder / "model.safetensors")
    name = "model.layers.0.mlp.down_proj.weight"
    del weights[name]
    if shape:
        weights[name] = torch.zeros(shape)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    require_model(folder)
    capfd.readouterr()
    with pytest.raises(TrainError, match=r"lacks 1 weights of its model, or .*0\.mlp\.down_proj\.weight: download"):
        check_weights(folder)
    assert "MISS" not in capfd.readouterr().err


def test_whole_models_of_several_files_and_of_other_formats_pass(tiny, tmp_path):
    folder = shutil.copytree(tiny, tmp_path / "model")
    sharded(folder, n_missing=0)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": None}))
    require_model(folder)
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    (folder / "pytorch_model.bin").write_bytes(b"weights of torch")
    require_model(folder)


def test_whoever_may_read_a_models_settings_may_read_its_weights(tiny):
    modes = {path.name: path.stat().st_mode & 0o777 for path in tiny.iterdir()}
    assert set(modes.values()) == {modes["config.json"]}

import pytest
import torch

from darkroom.train.models import loading
from darkroom.train.models.loading import load_model, score_only_trained_tokens


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

from statistics import fmean

import pytest
import torch

from darkroom.train.rl.methods import named_method
from darkroom.train.rl.rollouts.loss import rows_of_groups, weight_tokens


@pytest.fixture
def batch():
    """Four rollouts in groups of two; the second and fourth have an image each, the fourth two."""
    return {
        "prompt_ids": torch.arange(8).view(4, 2),
        "completion_mask": torch.ones(4, 3, dtype=torch.long),
        "tool_mask": torch.tensor([[1, 1, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]]),
        "advantages": torch.tensor([0.5, -0.5, 1.0, -1.0]),
        "pixel_values": torch.arange(12.0).view(12, 1),
        "image_grid_thw": torch.tensor([[1, 2, 2], [1, 2, 2], [1, 2, 2]]),
        "num_images": [0, 1, 0, 2],
        "num_items_in_batch": torch.tensor(10),
    }


def weighed(batch, dropped=(False,) * 4, **given):
    return weight_tokens(batch, dropped, **{"size": 2, "longest": 3, "loss_type": "dapo", **given})


def test_a_row_that_is_out_has_no_token_in_the_loss(batch):
    left = weighed(batch, [False, True, False, False])
    assert left["tool_mask"].tolist() == [[1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 1, 1]]
    assert left["num_items_in_batch"] == 8


def test_where_no_row_is_out_each_written_token_is_in_the_loss(batch):
    assert weighed(batch)["tool_mask"].tolist() == batch["tool_mask"].tolist()


def test_a_batch_without_observations_gets_a_mask(batch):
    del batch["tool_mask"]
    assert weighed(batch, [True, False, False, False])["num_items_in_batch"] == 9


@pytest.mark.parametrize("loss_type", ["grpo", "group", "dapo"])
def test_the_weights_of_a_rollout_add_up_to_one_or_more(batch, loss_type):
    """By less TRL would not divide."""
    rows = weighed(batch, [False, False, True, False], loss_type=loss_type)["tool_mask"].sum(1)
    assert [row >= 1 for row in rows] == [True, True, False, True]
    assert rows[2] == 0


def test_chosen_groups_take_their_images_along(batch):
    chosen = rows_of_groups(batch, [1], size=2)
    assert chosen["prompt_ids"].tolist() == [[4, 5], [6, 7]]
    assert chosen["num_images"] == [0, 2]
    assert chosen["pixel_values"].flatten().tolist() == [float(n) for n in range(4, 12)]
    assert chosen["image_grid_thw"].shape == (2, 3)


def test_chosen_groups_come_in_their_order(batch):
    chosen = rows_of_groups(batch, [1, 0], size=2)
    assert chosen["advantages"].tolist() == [1.0, -1.0, 0.5, -0.5]
    assert chosen["pixel_values"].flatten().tolist() == [*map(float, range(4, 12)), *map(float, range(4))]


def test_chosen_groups_without_any_image_have_no_pixels(batch):
    batch["num_images"] = [1, 2, 0, 0]
    chosen = rows_of_groups(batch, [1], size=2)
    assert not {"pixel_values", "image_grid_thw", "num_images"} & chosen.keys()


def of_thyme(groups):
    """§4.2: over all tokens of the group."""
    return fmean(sum(map(sum, group)) / sum(map(len, group)) for group in groups)


def of_figr(groups):
    """Eq. 9: over the tokens of each rollout, then over the group."""
    return fmean(fmean(map(fmean, group)) for group in groups)


def of_codev(groups):
    """Eq. 4: over rollouts and their tokens at once."""
    return fmean(token for group in groups for rollout in group for token in rollout)


@pytest.mark.parametrize(
    ("method", "objective"),
    [
        ("thyme", of_thyme),
        ("pyvision", of_codev),  # the paper gives no objective
        ("codev", of_codev),
        ("adaptive", of_figr),  # the paper names GRPO and gives no objective
        ("figr", of_figr),
    ],
)
def test_the_loss_is_the_papers_on_rollouts_of_unequal_lengths(method, objective):
    """Two groups of four: lengths as they come, tokens of observations between them, one rollout broken."""
    lengths, broken = [50, 500, 200, 100, 7, 1, 30, 90], 2
    torch.manual_seed(0)
    losses, seen = torch.randn(8, 500, dtype=torch.float64), torch.rand(8, 500) < 0.3
    seen[:, 0] = False
    written = torch.arange(500) < torch.tensor(lengths).unsqueeze(1)
    batch = {
        "completion_mask": written.long(),
        "tool_mask": (~seen).long(),
        "advantages": torch.zeros(8),
    }
    terms = named_method(method).terms
    batch = weighed(batch, [row == broken for row in range(8)], size=4, longest=500, loss_type=terms.loss_type)

    found = (losses * batch["completion_mask"] * batch["tool_mask"]).sum() / batch["num_items_in_batch"]
    rows = [losses[row][written[row] & ~seen[row]].tolist() for row in range(8)]
    groups = [[rows[row] for row in group if row != broken] for group in (range(4), range(4, 8))]
    assert found.item() == pytest.approx(objective(groups), rel=1e-5)


@pytest.mark.parametrize("loss_type", ["grpo", "group", "dapo"])
def test_a_group_without_a_whole_rollout_is_in_no_mean(batch, loss_type):
    alone = weighed(rows_of_groups(batch, [0], size=2), [False] * 2, loss_type=loss_type)
    both = weighed(batch, [False, False, True, True], loss_type=loss_type)
    assert both["num_items_in_batch"] == alone["num_items_in_batch"]
    assert both["tool_mask"][:2].tolist() == alone["tool_mask"].tolist()
    assert not both["tool_mask"][2:].any()

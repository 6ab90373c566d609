import pytest
import torch

from train.rl.rollouts.scoring import n_trained, rows_of_groups, with_advantages, without_rows


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


def test_a_row_that_is_out_has_no_token_in_the_loss(batch):
    left = without_rows(batch, [False, True, False, False])
    assert left["tool_mask"].tolist() == [[1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 1, 1]]
    assert left["advantages"].tolist() == [0.5, 0.0, 1.0, -1.0]
    assert n_trained(left) == 8


def test_where_no_row_is_out_the_batch_is_the_same(batch):
    assert without_rows(batch, [False] * 4) is batch


def test_a_batch_without_observations_gets_a_mask(batch):
    del batch["tool_mask"]
    assert n_trained(without_rows(batch, [True, False, False, False])) == 9


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


def test_advantages_are_replaced(batch):
    assert with_advantages(batch, [1, 2, 3, 4])["advantages"].tolist() == [1.0, 2.0, 3.0, 4.0]

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from PIL import Image

from darkroom.sandbox import ImageUnreadable, SandboxPool
from darkroom.train.rl.rollouts.environment import PromptGroups
from tests.image_files import encoded


@pytest.fixture
def groups():
    prompt_groups = PromptGroups()
    yield prompt_groups
    prompt_groups.close()


@pytest.fixture
def image():
    return encoded(Image.new("RGB", (40, 30), "teal"))


@pytest.fixture
def opening(monkeypatch):
    """Groups of two images wait to be opened until ``let`` is set; ``begun`` tells that one waits."""
    begun, let, group = Event(), Event(), SandboxPool.group

    def slow(pool, images=(), **given):
        if len(images) == 2:
            begun.set()
            assert let.wait(120)
        return group(pool, images=images, **given)

    monkeypatch.setattr(SandboxPool, "group", slow)
    yield begun, let
    let.set()


def test_nobody_waits_for_the_group_of_another_prompt(groups, opening, image):
    begun, let = opening
    with ThreadPoolExecutor(1) as other:
        slow = other.submit(groups.acquire, "slow", [image, image], (), ())
        assert begun.wait(120)
        assert groups.threads.submit(int).result(120) == 0
        assert groups.acquire("quick", [image], (), ()).session().run("print(1)").text.strip() == "1"
        assert not slow.done()
        let.set()
        assert slow.result(120).session().run("print(2)").text.strip() == "2"


def test_rollouts_that_come_while_a_group_is_opened_get_the_same(groups, opening, image):
    begun, let = opening
    with ThreadPoolExecutor(3) as others:
        futures = [others.submit(groups.acquire, "shared", [image, image], (), ()) for _ in range(3)]
        assert begun.wait(120)
        let.set()
        first, second, third = [future.result(120) for future in futures]
    assert first is second is third
    assert groups._leases["shared"].n_users == 3


def test_a_group_that_cannot_be_opened_is_tried_again_by_the_next(groups, image):
    with pytest.raises(ImageUnreadable):
        groups.acquire("prompt", [b"no picture"], (), ())
    assert groups.acquire("prompt", [image], (), ()).session().run("print(1)").ok


def test_closed_groups_begin_anew(groups, image):
    groups.acquire("prompt", [image], (), ())
    groups.close()
    groups.release("prompt")
    assert groups.acquire("prompt", [image], (), ()).session().run("print(1)").ok

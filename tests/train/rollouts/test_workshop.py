import io
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from PIL import Image

from sandbox import ImageUnreadable, SandboxPool
from train.rollouts.workshop import Workshop


@pytest.fixture
def workshop():
    opened = Workshop()
    yield opened
    opened.close()


@pytest.fixture
def picture():
    file = io.BytesIO()
    Image.new("RGB", (40, 30), "teal").save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def opening(monkeypatch):
    """Groups of two pictures wait to be opened until ``let`` is set; ``begun`` tells that one waits."""
    begun, let, group = Event(), Event(), SandboxPool.group

    def slow(pool, images=(), **given):
        if len(images) == 2:
            begun.set()
            assert let.wait(30)
        return group(pool, images=images, **given)

    monkeypatch.setattr(SandboxPool, "group", slow)
    yield begun, let
    let.set()


def test_nobody_waits_for_the_group_of_another_prompt(workshop, opening, picture):
    begun, let = opening
    with ThreadPoolExecutor(1) as other:
        slow = other.submit(workshop.take, "slow", [picture, picture])
        assert begun.wait(30)
        assert workshop.threads.submit(int).result(30) == 0
        assert workshop.take("quick", [picture]).session().run("print(1)").text.strip() == "1"
        assert not slow.done()
        let.set()
        assert slow.result(30).session().run("print(2)").text.strip() == "2"


def test_rollouts_that_come_while_a_group_is_opened_get_the_same(workshop, opening, picture):
    begun, let = opening
    with ThreadPoolExecutor(3) as others:
        taken = [others.submit(workshop.take, "shared", [picture, picture]) for _ in range(3)]
        assert begun.wait(30)
        let.set()
        groups = [one.result(30) for one in taken]
    assert groups[0] is groups[1] is groups[2]
    assert workshop._leases["shared"].n_users == 3


def test_a_group_that_cannot_be_opened_is_tried_again_by_the_next(workshop, picture):
    with pytest.raises(ImageUnreadable):
        workshop.take("prompt", [b"no picture"])
    assert workshop.take("prompt", [picture]).session().run("print(1)").ok


def test_a_closed_workshop_begins_anew(workshop, picture):
    workshop.take("prompt", [picture])
    workshop.close()
    workshop.give_back("prompt")
    assert workshop.take("prompt", [picture]).session().run("print(1)").ok

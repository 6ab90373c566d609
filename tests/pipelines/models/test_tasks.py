"""What a question calls its images: read from its text, and opened by the code of its sessions."""

import asyncio

import pytest
from PIL import Image

from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.models.tasks import image_names


@pytest.mark.parametrize(
    ("question", "names"),
    [
        (
            "What is on the sign?\n\nUser Image Path: hr_bench_4k/179.jpg\n\nUser Image Size: 9x9",
            ("hr_bench_4k/179.jpg",),
        ),
        ('Question: how many?\n### User Image Path:** "12.jpg "\n### User Image Size:** "9x9"', ("12.jpg",)),
        ("User Image Path (just for code reference): `/data/a.png`", ("/data/a.png",)),
        ("Image path 1: a/1.png\nImage path 2: b/1.png", ("a/1.png", "b/1.png")),
        ("Which image path leads to the door?", ()),
        ("What does 179.jpg show?", ()),
    ],
)
def test_names_are_read_where_a_question_states_a_path(question: str, names: tuple[str, ...]) -> None:
    assert image_names(question) == names


def test_a_session_opens_the_names_and_the_ledger_keeps_them_apart(workspace) -> None:
    sandboxes = Sandboxes(workspace.images, workspace.ledger)
    image = workspace.images.add_pixels(Image.new("RGB", (30, 20)))
    code = "image_path = 'hr_bench_4k/179.jpg'\nprint(Image.open(image_path).size)"

    async def run(*names: str) -> tuple[str, str]:
        async with sandboxes.session((image,), seed=1, names=names) as session:
            observation = await session.run(code)
            return observation.status, observation.text

    assert asyncio.run(run()) == ("error", "")
    assert asyncio.run(run("hr_bench_4k/179.jpg")) == ("ok", "(30, 20)\n")
    assert asyncio.run(run()) == ("error", "")
    assert sandboxes.n_executed == 2

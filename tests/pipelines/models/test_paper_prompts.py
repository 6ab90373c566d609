"""The papers' prompts: what each shows as its paper prints it, and which turns it asks for."""

import json
import re

import pytest

from darkroom.pipelines.models.messages import ImagePart, Text
from darkroom.pipelines.models.paper_prompts import paper_prompt, paper_prompts
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.models.protocols.tool_call import CODE_TOOL, CROP_TOOL
from darkroom.pipelines.records import ImageRef, VideoRef
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.sandbox.errors import UserError

IMAGE = ImageRef("1" * 64, 640, 480, "RGB", "PNG")
OTHER = ImageRef("2" * 64, 80, 60, "RGB", "JPEG")
FILM = VideoRef("3" * 64, "mp4", 320, 240, 100, 25.0)


def texts(name, *, images=(IMAGE,), videos=(), mode="free"):
    system, user = paper_prompt(name).opening("What does it say?", images, videos, mode=mode)
    assert (system.role, user.role) == ("system", "user")
    assert [part.image for part in user.parts if isinstance(part, ImagePart)] == list(images)
    return tuple("".join(part.text for part in said.parts if isinstance(part, Text)) for said in (system, user))


def test_the_five_papers_prompts_are_there_with_their_sources():
    assert paper_prompts() == ["adaptive_paper", "codev_paper", "figr_paper", "pyvision_paper", "thyme_paper"]
    for name in paper_prompts():
        wording = paper_prompt(name)
        assert wording.protocol in PROTOCOLS
        assert re.search(r"table|template|figure|prompt", wording.record["source"])


def test_thyme_tells_the_path_and_the_size_of_the_image():
    system, user = texts("thyme_paper")
    assert "<sandbox_output></sandbox_output>" in system
    assert "```python" in system
    assert "User's Question: What does it say?" in user
    assert "User Image Path: image_0.png\n\nUser Image Size: 640x480" in user
    assert user.index("<think>") < user.index("</think>") < user.index("<answer>")
    assert "Image Path" not in texts("thyme_paper", images=())[1]


def test_codev_tells_them_in_quotes():
    user = texts("codev_paper", images=(IMAGE, OTHER))[1]
    assert '### User Image Path:** "image_0.png, image_1.jpeg"\n### User Image Size:** "640×480, 80×60"' in user


def test_code_may_open_an_image_by_the_name_that_the_prompt_tells():
    assert paper_prompt("thyme_paper").image_names("What?", (IMAGE, OTHER)) == ("image_0.png", "image_1.jpeg")
    named = "What?\nUser Image Path: hr_bench_4k/179.jpg"
    assert paper_prompt("thyme_paper").image_names(named, (IMAGE,)) == ("hr_bench_4k/179.jpg",)
    assert paper_prompt("figr_paper").image_names("What?", (IMAGE,)) == ()


def test_pyvision_has_images_or_videos_open_and_forbids_pil():
    system, user = texts("pyvision_paper")
    assert "image_clue_i" in system
    assert "video_clue" not in system
    assert "Do not use image processing libraries like cv2 or PIL." in system
    assert "Image Width: 640; Image Height: 480" in user
    system, user = texts("pyvision_paper", images=(), videos=(FILM,))
    assert "video_clue_j" in system
    assert "image_clue" not in system
    assert "*Video Information:*\nvideo_clue_0: 100 frames, 25 frames per second" in user
    assert user.count("\\boxed{") == 2


def signature(system):
    return json.loads(re.search(r"<tools>\s*(\{.*\})\s*</tools>", system, re.DOTALL)[1])["function"]


@pytest.mark.parametrize(("name", "ours"), [("adaptive_paper", CROP_TOOL), ("figr_paper", CODE_TOOL)])
def test_the_tools_that_a_prompt_offers_are_those_that_the_protocol_runs(name, ours):
    tool = signature(texts(name)[0])
    assert tool["name"] == ours["function"]["name"]
    assert tool["parameters"]["properties"].keys() == ours["function"]["parameters"]["properties"].keys()
    assert tool["parameters"]["required"] == ours["function"]["parameters"]["required"]


def test_look_less_forces_leaves_free_and_forbids():
    forced, free, forbidden = (texts("adaptive_paper", mode=mode) for mode in ("forced", "free", "forbidden"))
    assert "You must zoom in" in forced[1]
    assert "Determine whether" in free[1]
    assert "<tools>" not in forbidden[0]
    assert "crop_image" not in "".join(forbidden)
    assert all(user.endswith("put your final answer within \\boxed{}.") for _, user in (forced, free, forbidden))


def test_figr_forbids_by_its_single_turn_prompt_and_forces_never():
    assert "<tools>" not in texts("figr_paper", images=(), mode="forbidden")[0]
    with pytest.raises(ValueError, match="figr_paper has the modes free, forbidden; found 'forced'"):
        texts("figr_paper", mode="forced")


def test_a_prompt_without_videos_does_not_apply_to_them():
    with pytest.raises(RowError) as error:
        texts("thyme_paper", images=(), videos=(FILM,))
    assert error.value.reason is Reason.NOT_APPLICABLE


def written(folder, head, body="# user\n{{ question }}"):
    path = folder / "mine.md"
    path.write_text(f"---\nname: mine\nversion: 1\n{head}\n---\n{body}\n")
    return str(path)


def test_a_prompt_of_ones_own_is_a_file(tmp_path):
    path = written(tmp_path, "protocol: pyvision\nslots: [question]", "# system\nBe brief.\n# user\nQ: {{ question }}")
    system, user = paper_prompt(path).opening("Why?", ())
    assert (system.parts, user.parts) == ((Text("Be brief."),), (Text("Q: Why?"),))


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("slots: [question]", "needs protocol: thyme, pyvision, tool_call; found ''"),
        ("protocol: thyme\nslots: [question]\nmodes: [forced]", "no modes forced of thyme; there are free"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_a_line(tmp_path, head, says):
    with pytest.raises(UserError, match=says):
        paper_prompt(written(tmp_path, head))


def test_a_slot_that_there_is_not_is_refused(tmp_path):
    path = written(tmp_path, "protocol: thyme\nslots: [question, hint]", "# user\n{{ question }} {{ hint }}")
    with pytest.raises(UserError, match="no slots hint; there are question, image_path, sizes, videos, mode"):
        paper_prompt(path)


def test_an_unknown_name_is_refused_with_the_names_that_there_are():
    with pytest.raises(UserError, match="no prompt 'thyme2'; there are adaptive_paper, codev_paper"):
        paper_prompt("thyme2")

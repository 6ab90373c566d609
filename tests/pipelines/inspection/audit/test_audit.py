"""The audit finds what was changed in a dataset, in its row; a dataset that is as it says has no finding."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.pipelines.inspection.audit import AuditReport, audit
from darkroom.pipelines.publishing.dataset_reader import MARKER, DatasetError, read_rows
from darkroom.pipelines.publishing.replay import NotComparable, in_sandbox, replay_row
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.workspace import Workspace
from tests.image_files import encoded
from tests.pipelines.inspection.plain_rows import PlainPython
from tests.pipelines.publishing.shipping import edit_rows

pytestmark = pytest.mark.e2e

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def python() -> Iterator[PlainPython]:
    with PlainPython() as started:
        yield started


@pytest.fixture
def audited(shipped: Path, workspace: Workspace, python: PlainPython) -> Callable[..., AuditReport]:
    def run(change: Change = lambda row: None, *, known: bool = True, n_changed: int = 1) -> AuditReport:
        """The audit in plain Python, after ``change`` of the first rows."""
        changed = [row["trajectory_id"] for row in read_rows([shipped])][:n_changed]
        edit_rows(shipped, lambda row: change(row) if row["trajectory_id"] in changed else None)
        return audit([shipped], execute=python.execute, workspace=workspace if known else None)

    return run


def kinds(report: AuditReport) -> dict[str, int]:
    return dict(report.kinds)


def turn(row: dict[str, Any]) -> Any:
    return row["rounds"][0]


def show(row: dict[str, Any], image: Image.Image) -> None:
    """The first observation shows ``image``, as a row that was written so would say it."""
    data, place = encoded(image), turn(row)["observation"]["images"][0]
    row["images"][place]["bytes"] = data
    row["image_refs"][place] |= {"sha256": digest_bytes(data), "width": image.width, "height": image.height}


def opened(row: dict[str, Any], place: int) -> Image.Image:
    return Image.open(io.BytesIO(row["images"][place]["bytes"]))


def test_a_dataset_that_is_as_it_says_has_no_finding(audited):
    report = audited()
    assert kinds(report) == {}
    assert (report.n_rows, report.n_rounds, report.n_executed, report.n_images) == (4, 4, 4, 4)
    assert report.checked["crop_contains_target"] == report.checked["hint_stays_hidden"] == 4
    assert not report.not_measured


def test_progress_counts_the_rows(shipped, workspace, python):
    seen: list[tuple[int, int]] = []
    audit([shipped], execute=python.execute, workspace=workspace, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(n, 4) for n in range(1, 5)]


def test_without_the_workspace_what_needs_the_truth_is_not_measured_and_the_rest_is(audited):
    report = audited(known=False)
    assert kinds(report) == {}
    checks = ("crop_contains_target", "claims_hold", "place_could_be_known", "print_can_be_read")
    assert report.not_measured == {f"{name}: needs the truth about the sample": 4 for name in checks}
    assert report.checked["crop_is_tight"] == report.checked["executes"] == 4


def change_text(row):
    turn(row)["observation"]["text"] = "/somewhere/else.png\n"


def change_status(row):
    turn(row)["observation"]["status"] = "error"


def change_a_pixel(row):
    pixels = np.array(opened(row, 1))
    pixels[0, 0, 0] ^= 1
    show(row, Image.fromarray(pixels))


def leak(row):
    turn(row)["thought"] = "I was told that the sign says so, so I crop it."


def lean(row):
    row["checks"][0]["n_trials"], row["checks"][0]["score"] = 3, 0.5


def deny(row):
    row["checks"][0] |= {"passed": False, "detail": "it did not run"}


def inflate(row):
    crop = next(check for check in row["checks"] if check["name"] == "crop_is_tight")
    crop["score"] /= 2


def swap_bytes(row):
    row["images"][0]["bytes"] = encoded(opened(row, 0).convert("L"))


def forget_the_question(row):
    row["image_refs"] = row["image_refs"][:1]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (change_text, {"replay: text": 1}),
        (change_status, {"replay: status": 1, "check: executes": 1}),
        (change_a_pixel, {"replay: pixels": 1}),
        (leak, {"check: hint_stays_hidden": 1}),
        (lean, {"votes": 1, "check: executes": 1}),
        (deny, {"stored verdict": 1}),
        (inflate, {"check: crop_is_tight": 1}),
        (forget_the_question, {"malformed row": 1}),
    ],
)
def test_what_was_changed_is_found_in_its_row(audited, shipped, change, expected):
    first = next(read_rows([shipped]))["trajectory_id"]
    report = audited(change)
    assert expected.items() <= kinds(report).items()  # other words have other lengths, which is measured, too
    assert {finding.row for finding in report.findings} == {first}
    assert {finding.dataset for finding in report.findings} == {"crop"}


def test_only_the_chosen_parts_are_audited(shipped, workspace, python):
    def spoil(row):
        change_text(row)
        leak(row)
        lean(row)

    edit_rows(shipped, spoil)
    kinds_of = {
        part: set(audit([shipped], parts=[part], execute=python.execute, workspace=workspace).kinds)
        for part in ("replay", "checks", "counts")
    }
    assert (kinds_of["replay"], kinds_of["counts"]) == ({"replay: text"}, {"votes"})
    assert kinds_of["checks"] >= {"check: hint_stays_hidden", "check: executes"}
    assert all(kind.startswith("check: ") for kind in kinds_of["checks"])


def test_a_replay_counts_the_equal_rows(shipped, python):
    first = next(read_rows([shipped]))["trajectory_id"]
    edit_rows(shipped, lambda row: change_text(row) if row["trajectory_id"] == first else None)
    report = audit([shipped], parts=["replay"], execute=python.execute)
    assert (report.n_replayed, report.n_same, report.rate) == (4, 3, 0.75)
    assert report.n_other_sandbox == 0
    assert report.checked == {}


def test_a_replay_counts_the_rows_of_another_sandbox_whether_they_differ_or_not(shipped, python):
    edit_rows(shipped, lambda row: row["provenance"].update(sandbox_digest="0" * 64))
    report = audit([shipped], parts=["replay"], execute=python.execute)
    assert (report.n_same, report.n_other_sandbox) == (4, 4)


def test_bytes_that_are_not_those_of_the_digest_are_a_finding(audited):
    assert audited(swap_bytes).kinds["changed image"] == 1


def test_a_crop_beside_the_target_is_found_though_it_replays(audited, shipped, workspace):
    def miss(row):
        code = "from PIL import Image\nImage.open(image_path).crop((0, 0, 30, 30)).show()"
        row["rounds"] = [turn(row) | {"code": code}]
        turn(row)["observation"]["text"] = ""
        show(row, opened(row, 0).convert("RGB").crop((0, 0, 30, 30)))

    report = audited(miss)
    assert "check: crop_contains_target" in report.kinds
    assert not any(kind.startswith("replay") for kind in report.kinds)


def test_a_row_that_is_there_twice_is_a_finding_of_the_second(audited, shipped):
    rows = list(read_rows([shipped]))

    def copy(row):
        return rows[0] | {"trajectory_id": "another"} if row["trajectory_id"] == rows[1]["trajectory_id"] else None

    report = audited(copy, n_changed=4)
    assert report.kinds["repeated row"] == 1
    assert [finding.row for finding in report.findings if finding.kind == "repeated row"] == ["another"]


def test_an_image_in_two_splits_is_a_finding(audited, shipped, python):
    (train,) = shipped.glob("*.parquet")
    (shipped / "validation-00000-of-00001.parquet").write_bytes(train.read_bytes())
    first = next(read_rows([shipped]))["trajectory_id"]
    report = audit([shipped], execute=python.execute)
    assert (report.kinds["image in two splits"], report.kinds["repeated row"]) == (4, 4)
    assert first in {finding.row for finding in report.findings}


SAYS = "README.md: says {!r}, which rows and facts do not give"
LACKS = "README.md: does not say {!r}, which rows and facts give"
CARD = """4 trajectories with 8 images, in the `thyme` protocol.

| what | rows |
| --- | --- |
| source small | 4 |
| category OCR | {ocr} |
| with 1 round of code | 4 |
| licence CC0-1.0 | 4 |
| split train | 4 |

| samples | 5 |  |
| drafts | {drafts} | not_applicable 1 |
"""


@pytest.mark.parametrize(
    ("figures", "reasons"),
    [
        ({}, []),
        ({"ocr": 3}, [SAYS.format("| category OCR | 3 |"), LACKS.format("| category OCR | 4 |")]),
        ({"drafts": 5}, ["README.md: drafts: 5 rows and the rejected ones are 6; the stage before has 5"]),
    ],
)
def test_a_cards_figures_are_counted_again(audited, shipped, figures, reasons):
    (shipped / "README.md").write_text(CARD.format(**{"ocr": 4, "drafts": 4} | figures))
    assert [finding.reason for finding in audited().findings] == reasons


def test_a_cards_size_and_a_value_that_it_lacks_are_found(audited, shipped):
    text = (
        CARD.format(ocr=4, drafts=4).replace("4 trajectories", "5 trajectories").replace("source small", "source big")
    )
    (shipped / "README.md").write_text(text)
    assert [finding.reason for finding in audited().findings] == [
        SAYS.format("5 trajectories with 8 images"),
        SAYS.format("| source big | 4 |"),
        LACKS.format("| source small | 4 |"),
        LACKS.format("4 trajectories with 8 images"),
    ]


def test_the_markers_counts_are_compared(audited, shipped):
    (shipped / MARKER).write_text(json.dumps({"n_rows": 5, "n_images": 8}))
    assert [finding.reason for finding in audited().findings] == [f"{MARKER}: n_rows is 5, counted 4"]


def test_a_limit_leaves_the_card_out(shipped, workspace, python):
    (shipped / "README.md").write_text(CARD.format(ocr=99, drafts=4))
    report = audit([shipped], execute=python.execute, workspace=workspace, limit=1)
    assert (report.n_rows, kinds(report)) == (1, {})


def test_a_file_that_is_no_dataset_is_refused(tmp_path, python):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "train.parquet")
    with pytest.raises(DatasetError, match="no shipped dataset"):
        audit([tmp_path], execute=python.execute)


# --- plain Python


def observed(python: PlainPython, row: dict[str, Any], *codes: str) -> list[Any]:
    seen = {"status": None, "text": "", "images": [], "error": None, "edits": []}
    rounds = [{"thought": "", "code": code, "observation": seen} for code in codes]
    return list(python.execute(row | {"rounds": rounds}))


def test_state_lives_across_rounds_and_an_error_names_its_line(shipped, python):
    first, second = observed(python, next(read_rows([shipped])), "kept = 6", "print(kept * 7)\n1 / 0")
    assert (first.status, first.text) == ("ok", "")
    assert (second.status, second.text) == ("error", "42\n")
    assert second.error == "ZeroDivisionError: division by zero (line 2: 1 / 0)"


def test_code_cannot_end_the_audit(shipped, python):
    row = next(read_rows([shipped]))
    with pytest.raises(NotComparable, match="ended in program 1"):
        observed(python, row, "os._exit(3)")


def test_folders_are_called_as_in_the_sandbox(shipped, python):
    row = next(read_rows([shipped]))
    (seen,) = observed(python, row, "print(image_path)\nprint('/mnt/data/temp_processed_images/a.png')")
    assert seen.text == "/mnt/data/input_images/image_0.jpg\n/mnt/data/temp_processed_images/a.png\n"


@pytest.mark.parametrize(
    ("observation", "why"),
    [({"status": "timeout"}, "timeout"), ({"edits": [{"kind": "autopep8", "before": "", "after": ""}]}, "autopep8")],
)
def test_what_only_a_sandbox_does_is_not_measured_and_no_finding(audited, observation, why):
    report = audited(lambda row: turn(row)["observation"].update(observation))
    assert report.n_executed == 3
    assert any(why in reason for reason in report.not_measured)
    assert not any(kind.startswith("replay") for kind in report.kinds)


PROGRAMS = {
    "draws": "plt.plot([1, 2, 3])\nplt.title('a')\nplt.show()",
    "two files": "for n in (2, 1):\n"
    "    cv2.imwrite(f'/mnt/data/temp_processed_images/{n}.png', np.full((9, 9, 3), n, np.uint8))",
    "names a file": "processed_path = image_path",
    "random": "import uuid\nprint(uuid.uuid4(), random.random(), np.random.rand(), np.random.default_rng().random())",
    "raises": "def f():\n    return {}['x']\nf()",
    "syntax": "print(1",
    "tags": "print('<code>', object())",
    "transparent": "display(Image.new('RGBA', (8, 8), (255, 0, 0, 128)))",
    "the same twice": "a = Image.new('RGB', (8, 8))\ndisplay(a)\ndisplay(a)",
    "clue": "print(image_clue_0.size, image_size)",
}


def test_plain_python_and_the_sandbox_observe_the_same(shipped, python):
    """Each program is recorded as plain Python observes it, and replayed in the sandbox."""
    row = next(read_rows([shipped]))
    for name, code in PROGRAMS.items():
        (seen,) = observed(python, row, code)
        images = [{"bytes": encoded(image.pixels)} for image in seen.images]
        observation = {"status": seen.status, "text": seen.text, "error": seen.error, "edits": []}
        observation["images"] = list(range(1, 1 + len(images)))
        rounds = [{"thought": "", "code": code, "observation": observation}]
        found = replay_row(row | {"images": [row["images"][0], *images], "rounds": rounds}, execute=in_sandbox)
        remedies = [each for each in found if each.what == "error" and each.replayed.startswith(f"{each.recorded}; ")]
        assert found == remedies, name


# --- the command


def test_the_exit_status_says_whether_there_are_findings(shipped):
    said = CliRunner().invoke(app, ["audit", "crop"])
    assert (said.exit_code, "0 findings" in said.output) == (0, True), said.output
    edit_rows(shipped, leak)
    said = CliRunner().invoke(app, ["audit", "crop", "--limit", "1", "--json"])
    assert said.exit_code == 1
    report = json.loads(said.stdout)
    assert report["kinds"]["check: hint_stays_hidden"] == 1
    assert any(finding["reason"].startswith("hint_mentioned") for finding in report["findings"])


@pytest.mark.parametrize("arguments", [["nowhere"], []])
def test_bad_usage_ends_with_2(shipped, arguments):
    assert CliRunner().invoke(app, ["audit", *arguments]).exit_code == 2


def test_a_broken_marker_is_a_finding(audited, shipped):
    (shipped / ".darkroom.json").write_text("[]")
    assert [finding.reason for finding in audited().findings] == [".darkroom.json: it is no JSON object"]

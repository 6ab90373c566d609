"""Agentic video, from the demo's films to accepted rows: drafted by the oracle, executed, checked, shipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import datasets
import pytest

from darkroom.pipelines.demo.images.films import films
from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.drafting import task_of
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes.agentic_video import recipe
from darkroom.pipelines.models.policies import oracle_policy
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records import Sample, Trajectory, Truth
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.scripted import run_all, taken_out, turn_by_turn

PARTITION = "films-0000"
N_FILMS = 8
"""Two of each of the four kinds; `make e2e` takes all of the demo's."""


@dataclass(frozen=True)
class Films:
    """The first ``n_films`` of the demo, then rows of the test's own."""

    n_films: int
    extra: tuple[SourceRow, ...] = ()
    name: str = "films"
    n_shards: int = 1
    fingerprint: str = "films"

    def rows(self, shard: int) -> Iterator[SourceRow]:
        yield from (film.build() for film in films(0)[: self.n_films])
        yield from self.extra


def run(workspace: Workspace, source: Films, policy: object = None) -> Family:
    engine.intake(workspace, source, 0, PARTITION)
    family = Family(workspace, recipe, PARTITION)
    run_all(family, policy)
    return family


@pytest.fixture(scope="module")
def workspace_of_films(tmp_path_factory) -> Iterator[Workspace]:
    home = tmp_path_factory.mktemp("films")
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as opened:
        run(opened, Films(N_FILMS))
        yield opened


def kept(workspace: Workspace) -> list[Trajectory]:
    return workspace.tables.read(Family(workspace, recipe, PARTITION).key("trajectories"), Trajectory)


def test_every_film_becomes_an_accepted_row(workspace_of_films):
    assert len(kept(workspace_of_films)) == N_FILMS


def test_no_row_has_more_frames_than_the_oracle_needs(workspace_of_films):
    scores = [
        check.score for made in kept(workspace_of_films) for check in made.checks if "frames_within" in check.name
    ]
    assert all(8 < score <= 20 for score in scores)


def test_the_video_itself_is_never_shown(workspace_of_films):
    for made in kept(workspace_of_films):
        assert made.images == ()
        assert all(len(turn.observation.images) == 1 for turn in made.rounds)


def test_a_shipped_row_holds_its_video_as_it_came(workspace_of_films):
    _, shipped = SftDataset(workspace_of_films, recipe, (PARTITION,)).publish()
    rows = datasets.load_dataset("parquet", data_files=str(shipped.folder / "*.parquet"), split="train")
    row = rows[0]
    assert [digest_bytes(video["bytes"]) for video in row["videos"]] == [ref["sha256"] for ref in row["video_refs"]]
    assert row["videos"][0]["path"].endswith(".mp4")
    assert (row["n_question_images"], row["video_refs"][0]["n_frames"]) == (0, 48)
    assert f"about {N_FILMS} videos" in (shipped.folder / "README.md").read_text()


def test_a_policy_is_told_what_the_video_is_and_not_where_to_look(workspace_of_films):
    family = Family(workspace_of_films, recipe, PARTITION)
    sample = workspace_of_films.tables.read(family.samples_key, Sample)[0]
    prepared = recipe.prepare(sample, workspace_of_films.images)
    policy = oracle_policy(recipe.family, revision=recipe.digest)
    task = task_of(recipe, sample, prepared, policy, prompt=recipe.prompt)
    asked = task.opening[-1].parts[-1].text
    assert asked.startswith("video_clue_0: 48 frames, 8 frames per second, 6.0 seconds, 384x288 pixels")
    assert sample.truth.details not in asked
    assert prepared.hint == {}


def reasons(family: Family) -> dict[str, str]:
    rejects = taken_out(family)
    return {reject.source_row: f"{reject.reason}: {reject.check}".rstrip(": ") for reject in rejects}


def test_samples_without_a_video_and_moments_that_no_video_has_are_rejected(workspace, clip, make_image, encoded):
    row = SourceRow("other/0", (encoded(make_image()),), "Which?", "this")
    wrong = SourceRow(
        *("other/1", (), "When?", "now"),
        truth=Truth(details='{"moments": [{"first": 3, "end": 99}]}'),
        videos=(clip(),),
    )
    assert reasons(run(workspace, Films(0, (row, wrong)))) == {"other/0": "not_applicable", "other/1": "malformed_row"}


SHOW_ONE = """I look at a frame.
<code>
import matplotlib.pyplot as plt
plt.imshow(video_clue_0[{}].asnumpy())
plt.axis("off")
plt.show()
</code>"""
SHOW_ALL = """I look at everything, in one sheet.
<code>
import numpy as np
rows = [np.hstack([video_clue_0[8 * row + column].asnumpy() for column in range(8)]) for row in range(6)]
display(Image.fromarray(np.vstack(rows)).resize((1536, 864)))
</code>"""
ANSWER = r"I know. <answer>\boxed{Kiln Yard}</answer>"


@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        ((SHOW_ONE.format(0), SHOW_ONE.format(30), ANSWER), None),
        ((SHOW_ONE.format(0), SHOW_ONE.format(9), ANSWER), "check_failed: relevant_frames_shown"),
        ((SHOW_ONE.format(30), ANSWER), "check_failed: has_tool_turns"),
        ((SHOW_ONE.format(0), SHOW_ONE.format(30), SHOW_ONE.format(99), ANSWER), "check_failed: no_round_is_broken"),
        ((SHOW_ALL, SHOW_ONE.format(0), ANSWER), "check_failed: frames_within_budget"),
        ((SHOW_ONE.format(0), SHOW_ONE.format(30), ANSWER.replace("Kiln", "Mill")), "check_failed: answer_matches"),
        ((SHOW_ONE.format(0),), "too_many_rounds"),
        (("no turn at all",), "malformed_turn"),
    ],
)
def test_what_a_policy_does_wrong_has_its_reason(workspace, turns, reason):
    found = reasons(run(workspace, Films(1), turn_by_turn(*turns)))
    assert found == ({"film/00": reason} if reason else {})

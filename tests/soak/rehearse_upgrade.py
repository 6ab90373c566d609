"""Upgrades a campaign from an earlier Label Studio to the pinned one, as users do, and checks that it goes on.

    python -m tests.soak.rehearse_upgrade [--version 1.22.0] [--postgres]

Installs the earlier version beside the pinned one (a minute, 800 MB), fills it with a campaign in all of its states,
takes a backup, starts the pinned version on the same data, and goes on: logins, tokens, open tasks, submissions.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from darkroom.annotation.label_studio.client import LabelStudioClient
from darkroom.annotation.label_studio.server import LabelStudioServer
from darkroom.annotation.label_studio.server_files import SQLITE
from darkroom.annotation.rounds.backup import back_up
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.doctor import Doctor
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.sync import Sync
from darkroom.pipelines.processes.virtual_environment import VirtualEnvironment
from darkroom.pipelines.records import ImageRef, PoolImage
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.workspace import Workspace
from tests.e2e.annotation.studio import logs_in
from tests.e2e.annotators import SMALL, boxes, choice, settled, text
from tests.own_studio import running, studio_database

SIZE = (4000, 3000)
POOL = [PoolImage(ImageRef(digest(n), *SIZE, "RGB", "JPEG"), "ours", str(n), "CC0-1.0") for n in range(6)]
CAMPAIGN = Campaign(name="upgraded", gold_share=0)
RECORD = [*boxes(SIZE, SMALL), choice("category", "ocr"), text("question", "What does it say?"), text("answer", "42")]
CHECK = [text("blind_answer", "42"), choice("verdict", "accept"), *boxes(SIZE, SMALL)]
PASSWORD = "a secret of theirs"


@dataclass(frozen=True, slots=True)
class EarlierServer(LabelStudioServer):
    """The same server with an earlier Label Studio, which migrates its database itself."""

    version: str

    @property
    def environment(self) -> VirtualEnvironment:
        requirements = (f"label-studio=={self.version}", "gunicorn", "fsspec")
        return VirtualEnvironment(
            self.environments / f"label-studio-{self.version}", requirements, "label-studio", "about 800 megabytes"
        )

    def variables(self, postgres: str | None) -> dict[str, str]:
        found = LabelStudioServer.variables(self, postgres)
        return found | {"STUDIO_VERSION": self.version, "STUDIO_SCHEMA": ""}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default="1.22.0")
    parser.add_argument("--postgres", action="store_true")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        studio_database(chosen.postgres) as url,
        Workspace.from_environment() as ours,
    ):
        home = Path(folder)
        earlier = EarlierServer(home / "annotation", ours.environments, ours.images_url, chosen.version)
        (home / "annotation" / "studio").mkdir(parents=True)
        if url is None:
            (home / "annotation" / "studio" / SQLITE).touch()  # not the pinned version's template
        with opened(earlier, url) as studio, Journal(earlier.folder) as journal:
            fill(studio, journal)
            back_up(earlier.folder, home / "backup")
            before = [person._asdict() for person in studio.people()]
        pinned = LabelStudioServer(earlier.folder, earlier.environments, earlier.images_url)
        with opened(pinned, url) as studio, Journal(pinned.folder) as journal:
            assert [person._asdict() for person in studio.people()] == before
            found = Doctor(journal, studio).examine().sentences
            assert len(found) == 1, found
            assert "1 task with submissions that were not received yet" in found[0]
            go_on(studio, journal)
            assert Doctor(journal, studio).examine().sentences == []
        print(f"{chosen.version} -> {pinned.environment.requirements[0]}: everything is there and goes on")


@contextmanager
def opened(server: LabelStudioServer, url: str | None) -> Iterator[LabelStudioClient]:
    def progress(step: str) -> None:
        print(f"{type(server).__name__}: {step}", flush=True)

    with (
        running(server, database=url, progress=progress) as info,
        LabelStudioClient(info.url, server.admin.token) as studio,
    ):
        yield studio


def fill(studio: LabelStudioClient, journal: Journal) -> None:
    """Records written, checked and open, with a submission that no sync has pulled yet."""
    people = {name: studio.add_person(f"{name}@example.com", role="annotator", password=PASSWORD) for name in "abc"}
    assert sync(studio, journal) == {"annotate": 6}
    for _ in range(4):
        hand_in(studio, journal, people["a"], "annotate", RECORD)
    assert sync(studio, journal) == {"cross_check": 4}
    hand_in(studio, journal, people["b"], "cross_check", CHECK)
    assert sync(studio, journal) == {"accept": 1}
    hand_in(studio, journal, people["b"], "cross_check", CHECK)


def go_on(studio: LabelStudioClient, journal: Journal) -> None:
    """With the tokens, logins and tasks of before."""
    counts = sync(studio, journal, reset_forms=True)
    assert counts == {"accept": 1}, counts
    people = {row["email"][0]: row for row in studio.accounts()}
    assert logs_in(studio.url, "a@example.com", PASSWORD)
    hand_in(studio, journal, people["c"], "cross_check", CHECK)
    hand_in(studio, journal, people["c"], "annotate", RECORD)
    assert sync(studio, journal) == {"accept": 1, "cross_check": 1}
    assert sorted(journal.progress()) == [
        ("waiting", "accept", 3),
        ("waiting", "annotate", 1),
        ("waiting", "cross_check", 2),
    ]


def sync(studio: LabelStudioClient, journal: Journal, **more: bool) -> Counter[str]:
    return Sync(journal, studio, CAMPAIGN, say=lambda line: None).run(POOL, **more)


def hand_in(studio: LabelStudioClient, journal: Journal, person: dict[str, Any], round: str, result: list[Any]) -> None:
    project = journal.project(round)
    assert project is not None
    headers = {"Authorization": f"Token {person['token']}"}
    with httpx.Client(base_url=studio.url, headers=headers, timeout=60, trust_env=False) as client:
        opened = {"id": "next_task", "project": project.project_id}
        task = client.post("/api/dm/actions", params=opened, json={})
        assert task.status_code == 200, task.text[:300]
        if round == "cross_check":
            settled(client, task.json(), "42")
        body = {"result": result, "lead_time": 9.0}
        answer = client.post(f"/api/tasks/{task.json()['id']}/annotations/", json=body)
        assert answer.status_code == 201, answer.text[:300]


if __name__ == "__main__":
    main()

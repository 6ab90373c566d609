"""A campaign on a real Label Studio while everything is killed that can be: is anything lost, is anything there twice?

    python -m tests.soak.annotation_faults [--records 1000] [--people 20] [--kills 50] [--seed 0] [--sqlite]

Simulated people (``tests/e2e/annotators.py``) make eight kinds of errors, hand in twice, tamper, and try again.
Server, sync and PostgreSQL are killed with SIGKILL at random moments and started again. A tenth of all connections are
cut after a random number of bytes; each start of the server has a clock that is wrong by up to five hours. One person
is removed while they work, and an admin deletes a project that people work in. At the end, everything that the server
had confirmed to people must be in the journal, and every record's history complete.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.client import LabelStudioClient
from darkroom.annotation.label_studio.server import TOKEN, URL, LabelStudioServer, ServerInfo, is_ready
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.submissions import ROUNDS, RecordState
from darkroom.annotation.rounds.sync import record_states
from darkroom.pipelines.records import PoolImage
from darkroom.pipelines.storage.workspace import Workspace
from tests.e2e.annotators import Person, Room, answer_of, plan_of
from tests.own_studio import own_home
from tests.postgres import Postgres, postgres_server
from tests.soak.cutting_proxy import CuttingProxy, cutting_proxy

SIZE = (640, 360)
RULES = "name: streets\nimages: [{path: images, source: ours, license: CC0-1.0}]\ngold_share: 0.1\nmin_side: 0\n"
HOURS = (-5, 0, 3)
VERDICTS = {
    "hopeless": ("rejected", ["", "reject"] * 3),
    "wrong": ("accepted", ["", "fix", "accept"]),
    "expert_fixes": ("accepted", ["", "accept", "fix"]),
    "expert_rejects": ("accepted", ["", "accept", "reject", "", "accept", "accept"]),
}
"""The end of a record and the verdicts of its history, by plan; otherwise written, checked and accepted."""


@dataclass
class Audit:
    """What is wrong at the end; all lists are empty when nothing is."""

    lost: list[tuple[int, int]] = field(default_factory=list)
    """Task and annotation that the server had confirmed and the journal has not."""
    went_with_the_project: list[tuple[int, int]] = field(default_factory=list)
    """Of them, those that an admin deleted before a sync."""
    unaccounted: list[tuple[int, int]] = field(default_factory=list)
    """In the journal, but in no record's history, and not named as invalid, skipped or planted either."""
    twice: list[str] = field(default_factory=list)
    """Tasks with one key, and annotations that count twice."""
    incomplete: list[str] = field(default_factory=list)
    """Records whose end or history is not as planned."""

    @property
    def passed(self) -> bool:
        return not (self.lost or self.unaccounted or self.twice or self.incomplete)


def audit(workspace: Workspace, studio: LabelStudioClient, room: Room) -> Audit:
    """Compares what the server confirmed to people with the journal, the server and the plan."""
    found = Audit()
    campaign, pool = Campaign.load(workspace.annotation), workspace.tables.read(POOL, PoolImage)
    with Journal(workspace.annotation) as journal:
        works = [work for _, item_works in journal.record_tasks(ROUNDS) for work in item_works]
        known = {revision.annotation_id for work in works for revision in work.versions}
        planted = {r.annotation_id for work in works if work.request.planted_error for r in work.versions}
        skipped = {r.annotation_id for work in works for r in work.versions if r.raw.get("was_cancelled")}
        states = [row.state for row in record_states(pool, journal, campaign)]
        for round in ROUNDS:
            project = journal.project(round)
            keys = Counter(task.key for task in studio.tasks_after(project.project_id, 0)) if project else Counter()
            found.twice += [f"task {key} of {round}" for key, n in keys.items() if n > 1]
    counted = Counter(event.annotation_id for state in states for event in state.history)
    found.twice += [f"annotation {number}" for number, n in counted.items() if n > 1]
    invalid = {entry.annotation_id for state in states for entry in state.invalid}
    for task_id, annotation_id in room.saved:
        if annotation_id not in known:
            missing = found.went_with_the_project if task_id in room.deleted_tasks else found.lost
            missing.append((task_id, annotation_id))
        elif annotation_id not in counted.keys() | invalid | planted | skipped:
            found.unaccounted.append((task_id, annotation_id))
    found.incomplete = [error for state in states if (error := difference(state, room.numbers[state.item_id]))]
    return found


def difference(state: RecordState, number: int) -> str:
    """How a record differs from its plan; empty if it does not."""
    stage, verdicts = VERDICTS.get(plan_of(number), ("accepted", ["", "accept", "accept"]))
    actual = [event.verdict for event in state.history]
    answer = state.fields.answer if state.fields else ""
    if (state.stage, actual, answer) == (stage, verdicts, answer_of(number)):
        return ""
    return f"record {number} ({plan_of(number)}): {state.stage} in {state.round}, {answer!r}, {actual}"


@dataclass
class Stage:
    """The parts that can be killed, and how they are started again."""

    home: Path
    server: SkewedServer
    database: Postgres | None
    chance: random.Random
    environment: Mapping[str, str]
    proxy: CuttingProxy | None = None
    sync: subprocess.Popen[bytes] | None = None
    kills: Counter[str] = field(default_factory=Counter)
    clocks: Counter[int] = field(default_factory=Counter)

    def start_server(self) -> ServerInfo:
        hours = self.chance.choice(HOURS)
        self.clocks[hours] += 1
        self.server.set_clock(hours)
        return self.server.start(postgres=self.database.url if self.database else None)

    def start_sync(self) -> None:
        assert self.proxy is not None
        variables = {**self.environment, URL: self.proxy.url, TOKEN: self.server.admin.token}
        with (self.home / "sync.log").open("ab") as log:
            self.sync = subprocess.Popen(
                ["darkroom", "annotate", "sync", "--every", "2"],
                env=variables,
                start_new_session=True,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill(self, part: str) -> None:
        """Kills it and starts it again."""
        self.kills[part] += 1
        if part == "server":
            info = self.server.find()
            assert info is not None
            kill_group(info.process.pid)
            while info.process.is_running:  # a signal is only on its way when `kill` returns
                time.sleep(0.05)
            self.start_server()
        elif part == "sync" and self.sync is not None:
            kill_group(self.sync.pid)
            self.sync.wait()
            self.start_sync()
        elif self.database is not None:
            self.database.kill()
            self.database.start()

    def keep_sync(self) -> None:
        """As systemd does: a sync that ended with an error is started again."""
        if self.sync is not None and self.sync.poll() is not None:
            self.start_sync()


def kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


CLOCK = """
import os, time
from datetime import timedelta
from django.utils import timezone

skew, right_time, right_now = float(os.environ["CLOCK_SKEW"]), time.time, timezone.now
time.time = lambda: right_time() + skew
timezone.now = lambda: right_now() + timedelta(seconds=skew)
"""
"""A ``sitecustomize`` for the server: what it stores and says in ``Date``. Timeouts are on the monotonic clock."""


@dataclass(frozen=True, slots=True)
class SkewedServer(LabelStudioServer):
    """Starts with a clock that is wrong by hours."""

    def variables(self, postgres: str | None) -> dict[str, str]:
        variables = LabelStudioServer.variables(self, postgres)
        clock = self.folder.parent / "clock"
        clock.mkdir(exist_ok=True)
        (clock / "sitecustomize.py").write_text(CLOCK)
        path = f"{clock}{os.pathsep}{variables['PYTHONPATH']}"
        hours = (clock / "hours").read_text() if (clock / "hours").exists() else "0"
        return {**variables, "PYTHONPATH": path, "CLOCK_SKEW": str(3600 * int(hours))}

    def set_clock(self, hours: int) -> None:
        """For the next start."""
        clock = self.folder.parent / "clock"
        clock.mkdir(exist_ok=True)
        (clock / "hours").write_text(str(hours))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=120, help="gives up after this long")
    parser.add_argument("--sqlite", action="store_true", help="instead of PostgreSQL")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        database = None if chosen.sqlite else stack.enter_context(postgres_server("studio"))
        sys.exit(0 if play(Path(folder), database, chosen) else 1)


def play(home: Path, database: Postgres | None, chosen: argparse.Namespace) -> bool:
    """One campaign from its images to its audit, which is printed."""
    write_images(home, chosen.records)
    places = own_home(home)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **places, "PATH": path}
    workspace = Workspace.from_environment(places)
    server = SkewedServer(workspace.annotation, workspace.environments, workspace.images_url)
    stage = Stage(home, server, database, random.Random(chosen.seed), environment)
    began = time.monotonic()
    try:
        info = stage.start_server()
        wait_for(stage.server)
        port = int(info.url.rpartition(":")[2])
        with (
            cutting_proxy(port, seed=chosen.seed) as stage.proxy,
            LabelStudioClient(info.url, stage.server.admin.token) as studio,
        ):
            room = open_room(stage, workspace, studio)
            people = everybody(studio, room, chosen.people)
            end = began + 60 * chosen.minutes
            with at_work(people):
                is_done = disturb(stage, workspace, studio, room, chosen.kills, end=end)
                room.go_home.set()
            print_outcome(stage, room, audit(workspace, studio, room), time.monotonic() - began)
            return is_done and not room.errors and audit(workspace, studio, room).passed
    finally:
        if stage.sync is not None:
            kill_group(stage.sync.pid)
        stage.server.stop()
        workspace.__exit__()


def write_images(home: Path, n_records: int) -> None:
    folder = home / "annotation" / "images"
    folder.mkdir(parents=True)
    for number in range(n_records):
        chance = random.Random(number)
        # no blocks: their corners are alike everywhere, and the search of near-duplicates would take most of an hour
        noise = Image.frombytes("RGB", (64, 36), chance.randbytes(64 * 36 * 3))
        image = noise.resize(SIZE, Image.Resampling.BICUBIC)
        image.save(folder / f"{number:04d}.png")
    (home / "annotation" / "campaign.yaml").write_text(RULES)


def open_room(stage: Stage, workspace: Workspace, studio: LabelStudioClient) -> Room:
    """After the first sync, which hands out everything."""
    assert stage.proxy is not None
    direct = {**stage.environment, URL: studio.url, TOKEN: stage.server.admin.token}
    subprocess.run(["darkroom", "annotate", "sync"], env=direct, check=True, stdout=subprocess.DEVNULL)
    pool = workspace.tables.read(POOL, PoolImage)
    room = Room(stage.proxy.url, {item.image.sha256: int(item.source_row[:4]) for item in pool}, sizes=SIZE)
    stage.start_sync()
    return room


def everybody(studio: LabelStudioClient, room: Room, n_people: int) -> list[Person]:
    """A quarter are experts; one hands everything in twice, one tampers, and the last annotator leaves."""
    n_experts = max(2, n_people // 4)
    roles = ["annotator"] * (n_people - n_experts) + ["expert"] * n_experts
    people = []
    for number, role in enumerate(roles):
        made = studio.add_person(f"{role}{number}@example.com", role=role, password=f"a secret {number} of theirs")
        habits = {"duplicates": number == 1, "tampers": number == 2, "leaves": number == n_people - n_experts - 1}
        people.append(Person(room, made["email"], made["token"], role, **habits))
    return people


@contextmanager
def at_work(people: Sequence[Person]) -> Iterator[None]:
    threads = [threading.Thread(target=person.work, daemon=True) for person in people]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        people[0].room.go_home.set()
        for thread in threads:
            thread.join(150)


def disturb(
    stage: Stage, workspace: Workspace, studio: LabelStudioClient, room: Room, n_kills: int, *, end: float
) -> bool:
    """Kills a part whenever so many more submissions have come in, until all records are settled."""
    parts = ["server", "sync", "sync"] + (["database"] if stage.database else [])
    n_expected = 3.3 * len(room.numbers)
    moments = sorted(stage.chance.uniform(0.01, 0.9) * n_expected for _ in range(n_kills))
    extras = [(0.25 * n_expected, "person"), (0.4 * n_expected, "project")]
    while time.monotonic() < end and not room.errors:
        open_rounds(workspace, room)
        stage.keep_sync()
        if moments and len(room.saved) >= moments[0]:
            moments.pop(0)
            stage.kill(stage.chance.choice(parts))
        elif extras and len(room.saved) >= extras[0][0] and is_answering(stage.server):
            _, what = extras.pop(0)
            remove_person(studio) if what == "person" else delete_project(stage, studio, room)
        elif is_settled(workspace, room) and not moments and not extras:
            return True
        time.sleep(1)
    return False


def remove_person(studio: LabelStudioClient) -> None:
    annotators = [row["email"] for row in studio.accounts() if row["role"] == "annotator"]
    studio.remove_person(annotators[-1])


def delete_project(stage: Stage, studio: LabelStudioClient, room: Room) -> None:
    """The one of the experts, while they work; the next sync refuses, and the one after it recreates it."""
    project = room.projects["accept"]
    room.deleted.add(project)
    if stage.sync is not None:  # it would go on with what it has read, and say so
        kill_group(stage.sync.pid)
        stage.sync.wait()
    room.deleted_tasks |= {task.task_id for task in studio.tasks_after(project, 0)}
    token = {"Authorization": f"Token {stage.server.admin.token}"}
    # 500 where people submit in the same moment, as the rows that it deletes then change; whoever sees that tries again
    while (answer := studio._http.delete(f"/api/projects/{project}/", headers=token)).status_code == 500:
        time.sleep(1)
    answer.raise_for_status()
    variables = {**stage.environment, URL: studio.url, TOKEN: stage.server.admin.token}
    said = subprocess.run(["darkroom", "annotate", "sync"], env=variables, capture_output=True, text=True, check=False)
    if said.returncode != 1 or "--recreate" not in said.stderr:
        raise AnnotationError(f"a deleted project was not named: {said.stdout} {said.stderr}")
    subprocess.run(["darkroom", "annotate", "sync", "--recreate"], env=variables, check=True, stdout=subprocess.DEVNULL)
    stage.start_sync()


def open_rounds(workspace: Workspace, room: Room) -> None:
    with Journal(workspace.annotation) as journal:
        projects = {round: journal.project(round) for round in ROUNDS}
    room.projects = {round: project.project_id for round, project in projects.items() if project}


def is_settled(workspace: Workspace, room: Room) -> bool:
    """Whether nothing waits, planted checks included, as of the last sync."""
    with Journal(workspace.annotation) as journal:
        stages = {stage: n for stage, _, n in journal.progress()}
        if "waiting" in stages or not stages:
            return False
        works = [
            work for _, item_works in journal.record_tasks(ROUNDS) for work in item_works if work.request.planted_error
        ]
    return all(any(not r.raw.get("was_cancelled") and r.raw.get("result") for r in work.versions) for work in works)


def is_answering(server: LabelStudioServer) -> bool:
    info = server.find()
    return info is not None and is_ready(info)


def wait_for(server: LabelStudioServer) -> None:
    while not is_answering(server):
        time.sleep(0.5)


def print_outcome(stage: Stage, room: Room, found: Audit, seconds: float) -> None:
    print(f"records {len(room.numbers):,}, submissions confirmed to people {len(room.saved):,}, {seconds:,.0f} s")
    print(f"kills {dict(stage.kills)}, starts of the server by the hours its clock was wrong {dict(stage.clocks)}")
    if stage.proxy is not None:
        print(f"connections {stage.proxy.n_connections:,}, cut {stage.proxy.n_cut:,}")
    print(f"people: {dict(room.tallies)}; errors {room.errors}")
    for name in ("lost", "went_with_the_project", "unaccounted", "twice", "incomplete"):
        entries = getattr(found, name)
        print(f"{name.replace('_', ' ')}: {len(entries)} {entries[:10]}")


if __name__ == "__main__":
    main()

"""``OpenAIPolicy`` against a real server: `transformers serve` with a tiny model built on the spot.

The model writes nonsense, so the right result is a run that ends with every row a typed reject.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from darkroom.pipelines.demo.images import DemoSource
from darkroom.pipelines.demo.images.material import LazyRow, built
from darkroom.pipelines.demo.oracle.rl_answers import script
from darkroom.pipelines.demo.rl_questions import DemoRLSource
from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.models.policies import OpenAIPolicy, OraclePolicy
from darkroom.pipelines.models.policies.settings import Endpoint
from darkroom.pipelines.records import PassRate
from darkroom.pipelines.rl.candidates import Candidates
from darkroom.pipelines.rl.labels import CheckedLabels
from darkroom.pipelines.rl.necessity import ToolNecessities
from darkroom.pipelines.rl.pass_rates import PassRates
from darkroom.pipelines.rl.suitability import Suitability
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.storage.workspace import Workspace
from tests.matrices import first_quickly
from tests.pipelines.scripted import taken_out
from tests.ports import free_port
from tests.waiting import answers, wait_until

PARTITION = "small-0000"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    subprocess.run([sys.executable, "-m", "darkroom.train.tiny", str(folder)], check=True, timeout=900)
    return folder


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    cache = tmp_path_factory.mktemp("cache")
    log = (cache / "serve.log").open("wb")
    program = str(Path(sys.executable).with_name("transformers"))
    process = subprocess.Popen(
        [
            program,
            *("serve", str(model), "--host", "127.0.0.1", "--port", str(port)),
            *("--device", "cpu", "--dtype", "float32", "--trust-remote-code", "--default-seed", "0"),
        ],
        env={**os.environ, "HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1"},
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        wait_until(lambda: process.poll() is not None or answers(f"http://127.0.0.1:{port}/health"), seconds=900)
        assert process.poll() is None, (cache / "serve.log").read_text()[-3000:]
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.close()


def test_a_model_that_writes_nonsense_gives_a_run_that_ends_with_typed_rejects_only(
    server: str, model: Path, workspace: Workspace, small_source
) -> None:
    engine.intake(workspace, small_source, 0, PARTITION)
    family = Family(workspace, load_recipes()["crop"], PARTITION)
    endpoint = Endpoint(server, str(model), max_tokens=24, concurrency=2, send_stop=False)

    drafts = family.draft(OpenAIPolicy(endpoint, workspace.images))
    family.run(OpenAIPolicy(endpoint, workspace.images))
    family.check()
    kept = family.keep()
    family.collect_rejects()

    assert kept.n_out == 0
    rejects = taken_out(family)
    reasons = {reject.source_row: reject.reason for reject in rejects}
    assert reasons.pop("row/1") == "not_applicable"
    assert set(reasons.values()) <= {"truncated_turn", "malformed_turn"}
    assert len(reasons) == 4
    assert drafts.usage.calls == 4
    assert drafts.usage.prompt_tokens > 100
    assert workspace.ledger.totals()["policy"].calls == 4


class _OneOfEach(DemoSource):
    """The demo's first row of each kind: scenes, photographs, films, problems and all; each for every family."""

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        return map(built, self._all()[shard :: self.n_shards])

    def _all(self) -> list[LazyRow]:
        first: dict[str, LazyRow] = {}
        for row in super()._all():
            first.setdefault(row.name.split("/")[0], row)
        return list(first.values())


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    home = str(tmp_path_factory.mktemp("kinds"))
    with Workspace.from_environment({"DARKROOM_HOME": home}) as opened:
        engine.intake(opened, _OneOfEach(n_shards=1), 0, PARTITION)
        yield opened


@pytest.mark.parametrize("name", first_quickly(sorted(load_recipes())))
def test_every_family_ends_with_typed_rejects_and_without_an_exception(
    server: str, model: Path, kinds: Workspace, name: str
) -> None:
    family = Family(kinds, load_recipes()[name], PARTITION)
    endpoint = Endpoint(server, str(model), max_tokens=12, concurrency=2, send_stop=False, max_pixels=100_000)

    def policy() -> OpenAIPolicy:
        return OpenAIPolicy(endpoint, kinds.images)

    drafts = family.draft(policy(), policy(), n_most=2)
    family.run(policy())
    family.check(policy())
    family.keep()
    family.collect_rejects()
    reasons = {reject.reason for reject in taken_out(family)}
    assert drafts.usage.calls > 0
    judged = {"truncated_turn", "malformed_turn", "check_failed", "too_many_rounds", "wrong_plan"}
    assert reasons <= judged | {"not_applicable", "unsuitable", "not_drawn"}
    assert reasons & judged


def test_a_model_name_that_the_server_does_not_serve_quarantines_the_rows(
    server: str, workspace: Workspace, small_source
) -> None:
    engine.intake(workspace, small_source, 0, PARTITION)
    family = Family(workspace, load_recipes()["crop"], PARTITION)
    endpoint = Endpoint(server, "no/such-model", max_tokens=8, max_retries=0)
    drafts = family.draft(OpenAIPolicy(endpoint, workspace.images))
    assert drafts.n_quarantined == 4
    assert drafts.reasons["policy_failed"] == 4


def test_rl_stages_asked_of_a_model_that_writes_nonsense_end_with_counts_and_typed_rejects(
    server: str, model: Path, tmp_path: Path
) -> None:
    source = _FewPrompts()
    endpoint = Endpoint(server, str(model), max_tokens=12, concurrency=2, send_stop=False)
    with Workspace.from_environment({"DARKROOM_HOME": str(tmp_path)}) as workspace:
        engine.intake(workspace, source, 0, PARTITION)
        shard = Shard(workspace, PARTITION)

        def asked() -> OpenAIPolicy:
            return OpenAIPolicy(endpoint, workspace.images)

        shard.materialize(Candidates(judge=None))
        assert shard.materialize(CheckedLabels(judge=asked(), n_answers=1)).reasons == {"label_disputed": 4}
        votes = shard.materialize(Suitability(judge=asked(), n_votes=2))
        assert (votes.n_in, votes.reasons) == (2, {"no_vote": 2})
        right = OraclePolicy(script, revision="1")
        shard.materialize(CheckedLabels(judge=right))
        rates = shard.materialize(PassRates(student=asked(), n_answers=2))
        assert rates.usage.calls == 2 * rates.n_in
        assert all(row.never_solved for row in workspace.tables.read(shard.key("pass_rates"), PassRate))
        sandboxes = Sandboxes(workspace.images, workspace.ledger)
        necessity = shard.materialize(ToolNecessities(student=asked(), sandboxes=sandboxes, n_forced=1, n_forbidden=1))
        assert (necessity.n_in, necessity.n_out) == (2, 2)


class _FewPrompts(DemoRLSource):
    """Two problems in words, two questions about images."""

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        found = [
            row
            for row in super().rows(shard)
            if isinstance(row, SourceRow) and "planted" not in (row.truth.details or "")
        ]
        yield from [row for row in found if not row.images][:2]
        yield from [row for row in found if row.images][:2]

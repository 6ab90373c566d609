"""Spans reach a collector where its address is set, and cost no import where it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from darkroom.pipelines.storage import tracing
from tests.json_endpoint import endpoint

BUILD = """
import sys
from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import oracle_policy
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import SmallSource

with Workspace.from_environment() as workspace:
    recipe = load_recipes()["crop"]
    engine.intake(workspace, SmallSource(), 0, "small-0000")
    family = engine.Family(workspace, recipe, "small-0000")
    for stage in (family.draft, family.run):
        stage(oracle_policy("crop", revision=recipe.digest))
print([name for name in sys.modules if name.startswith("opentelemetry.sdk")])
"""
ROLLOUT = """
from darkroom.train.rl.rollouts.environment import SandboxEnvironment
from darkroom.train.rl.rollouts.environment import PROMPT_GROUPS

environment = SandboxEnvironment()
environment.reset(trajectory_id="t", protocol="thyme", image_files=[])
environment.run_python("print(6 * 7)")
environment.run_python("print(nothing)")
environment.reset(trajectory_id="", protocol="thyme", image_files=[])
PROMPT_GROUPS.close()
"""
FAIL = """
from darkroom.pipelines.storage.tracing import span
try:
    with span("outer"), span("inner"):
        raise ValueError("why")
except ValueError:
    pass
"""


class Collector(BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    spans: ClassVar[list[Span]] = []
    services: ClassVar[set[str]] = set()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = {each.key: each.value.string_value for each in resource.resource.attributes}
            Collector.services.add(names["service.name"])
            Collector.spans += [span for scope in resource.scope_spans for span in scope.spans]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[str]:
    Collector.spans, Collector.services = [], set()
    with endpoint(Collector) as url:
        yield url.removesuffix("/v1")


def run(program: str, home: Path, **variables: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environment = {**clean, "DARKROOM_HOME": str(home), "OTEL_EXPORTER_OTLP_COMPRESSION": "none", **variables}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def attributes(span: Span) -> dict[str, object]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


@pytest.mark.e2e
def test_calls_sandbox_runs_and_stages_are_spans(collector: str, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    run(BUILD, tmp_path / "home", OTEL_EXPORTER_OTLP_ENDPOINT=collector)
    assert Collector.services == {"darkroom"}
    names = Counter(span.name for span in Collector.spans)
    assert names["stage crop/drafts"] == names["stage crop/runs"] == names["stage samples"] == 1
    assert names["sandbox run"] == 4  # of six rows one has no box and one is damaged
    by_id = {span.span_id: span for span in Collector.spans}
    sandboxed = [span for span in Collector.spans if span.name == "sandbox run"]
    assert {by_id[span.parent_span_id].name for span in sandboxed} == {"stage crop/runs"}
    assert {(attributes(span)["darkroom.status"], attributes(span)["darkroom.n_images"]) for span in sandboxed} == {
        ("ok", 1)
    }
    calls = [attributes(span) for span in Collector.spans if span.name.startswith("chat ")]
    assert len(calls) == 8  # a draft and an answer each
    assert all(call["gen_ai.operation.name"] == "chat" and call["gen_ai.request.choice.count"] == 1 for call in calls)
    (drafts,) = [attributes(span) for span in Collector.spans if span.name == "stage crop/drafts"]
    assert (drafts["darkroom.n_out"], drafts["darkroom.partition"]) == (4, "small-0000")


@pytest.mark.e2e
def test_code_of_grpo_is_a_span_too(collector: str, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    run(ROLLOUT, tmp_path / "home", OTEL_EXPORTER_OTLP_ENDPOINT=collector)
    assert [(span.name, attributes(span)["darkroom.status"]) for span in Collector.spans] == [
        ("sandbox run", "ok"),
        ("sandbox run", "error"),
    ]


def test_an_error_is_the_spans_by_its_type_alone(collector: str, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    run(FAIL, tmp_path, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector}/v1/traces", OTEL_SERVICE_NAME="mine")
    assert Collector.services == {"mine"}
    assert {(span.name, span.status.code) for span in Collector.spans} == {
        ("outer", Status.STATUS_CODE_ERROR),
        ("inner", Status.STATUS_CODE_ERROR),
    }
    assert [attributes(span) for span in Collector.spans] == [{"error.type": "ValueError"}] * 2
    assert not any(span.events or span.status.message for span in Collector.spans)


@pytest.mark.e2e
@pytest.mark.parametrize("variables", [{}, {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "set"}])
def test_without_a_collector_nothing_is_sent_or_imported(
    collector: str, tmp_path: Path, variables: dict[str, str]
) -> None:
    named = {name: collector if value == "set" else value for name, value in variables.items()}
    assert run(BUILD, tmp_path / "home", **named).splitlines()[-1] == "[]"
    assert not Collector.spans


def test_a_collector_without_the_extra_is_said_once_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(tracing, "_EXPORTER", "opentelemetry.exporter.nothing")
    tracing._tracer.cache_clear()
    try:
        with pytest.warns(UserWarning, match="extra `otel`"), tracing.span("a") as note:
            note({"darkroom.n_in": 1})
        with tracing.span("b"):
            pass
    finally:
        tracing._tracer.cache_clear()

"""Spans of calls, sandbox runs and stages for OpenTelemetry (extra ``otel``), where its variables name a collector.

    with span("sandbox run", {"darkroom.n_images": 1}) as note:
        note({"darkroom.status": "ok"})

OTEL_EXPORTER_OTLP_ENDPOINT (or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) switches them on; the other standard variables are
OpenTelemetry's own. Attributes are names and numbers, of an error its type: no text of a model or a person is sent.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from typing import Any

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_EXPORTER = "opentelemetry.exporter.otlp.proto.http"
Note = Callable[[Mapping[str, Any]], None]
"""Adds attributes."""


@contextmanager
def span(name: str, attributes: Mapping[str, Any] | None = None) -> Iterator[Note]:
    """A span of the block, below the one that it is in. An error that leaves the block is the span's, too."""
    tracer = _tracer()
    if tracer is None:
        yield lambda _: None
        return
    # by default an error's message is sent, and that may quote what a model wrote
    options = {"attributes": attributes, "record_exception": False, "set_status_on_exception": False}
    with tracer.start_as_current_span(name, **options) as current:
        try:
            yield current.set_attributes
        except BaseException as error:
            from opentelemetry.trace import StatusCode

            current.set_attribute("error.type", type(error).__name__)
            current.set_status(StatusCode.ERROR)
            raise


@cache
def _tracer() -> Any:
    """Tracer of this process; None where no collector is named. Unsent spans are sent when the process ends."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or not any(map(os.environ.get, ENDPOINTS)):
        return None
    if not _is_installed():
        warnings.warn("OTEL_EXPORTER_OTLP_ENDPOINT is set: spans need the extra `otel`; none are sent", stacklevel=3)
        return None
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    os.environ.setdefault("OTEL_SERVICE_NAME", "darkroom")
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):  # else the program has one of its own
        provider = TracerProvider(resource=Resource.create())
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
    return trace.get_tracer("darkroom")


def _is_installed() -> bool:
    with suppress(ModuleNotFoundError):
        return find_spec(_EXPORTER) is not None
    return False

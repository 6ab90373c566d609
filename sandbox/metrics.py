"""A pool's statistics for Prometheus (extra `metrics`): `serve_metrics(pool, port=9464)` answers at /metrics."""

import tomllib
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from darkroom.sandbox.calls import Spread
from darkroom.sandbox.pool import SandboxPool

_TABLE = tomllib.loads(Path(__file__).with_name("metrics.toml").read_text("utf-8"))
"""By the attribute of the statistics: a metric's name, and what it counts."""


class PoolCollector(Collector):
    """Reads `pool.stats()` at each scrape."""

    def __init__(self, pool: SandboxPool) -> None:
        self._pool = pool

    def collect(self) -> Iterable[Metric]:
        stats = self._pool.stats()
        calls = CounterMetricFamily("sandbox_calls", "Calls that ended, by status.", labels=["status"])
        for status, number in sorted(stats.statuses.items()):
            calls.add_metric([status], number)
        yield calls
        for attribute, (name, meaning) in _TABLE["counters"].items():
            yield CounterMetricFamily(name, meaning, value=getattr(stats, attribute))
        for attribute, (name, meaning) in _TABLE["gauges"].items():
            yield GaugeMetricFamily(name, meaning, value=getattr(stats, attribute))
        if stats.memory_mb is not None:
            yield GaugeMetricFamily(
                "sandbox_memory_bytes", "Proportional set size of the tree.", value=stats.memory_mb * (1 << 20)
            )
        for attribute, (name, meaning) in _TABLE["summaries"].items():
            spread: Spread = getattr(stats, attribute)
            yield SummaryMetricFamily(name, meaning, count_value=spread.n, sum_value=spread.total)


class MetricsServer:
    """Answers scrapes in a thread of its own until it is closed. Port 0 takes a free one: `port`."""

    def __init__(self, pool: SandboxPool, *, port: int, host: str = "127.0.0.1") -> None:
        registry = CollectorRegistry()
        registry.register(PoolCollector(pool))
        self._server, self._thread = start_http_server(port, host, registry)
        self.port: int = self._server.server_port

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


serve_metrics = MetricsServer

"""A pool's statistics for Prometheus. Needs the extra `metrics`.

serve_metrics(pool, port=9464)      # then look at http://127.0.0.1:9464/metrics
"""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from sandbox.pool import SandboxPool
from sandbox.stats import PoolStats


class PoolCollector(Collector):
    """Reads `pool.stats()` at each scrape."""

    def __init__(self, pool: SandboxPool) -> None:
        self._pool = pool

    def collect(self) -> Iterable[Metric]:
        stats = self._pool.stats()
        yield _calls(stats)
        yield from _counters(stats)
        yield from _gauges(stats)
        yield from _summaries(stats)


def serve_metrics(pool: SandboxPool, *, port: int, host: str = "127.0.0.1") -> "MetricsServer":
    """Answer scrapes in a thread of its own. Port 0 takes a free one: `server.port`."""
    registry = CollectorRegistry()
    registry.register(PoolCollector(pool))
    return MetricsServer(registry, host, port)


class MetricsServer:
    """Answers scrapes until it is closed."""

    def __init__(self, registry: CollectorRegistry, host: str, port: int) -> None:
        self._server, self._thread = start_http_server(port, host, registry)

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _calls(stats: PoolStats) -> Metric:
    calls = CounterMetricFamily("sandbox_calls", "Calls that ended, by status.", labels=["status"])
    for status, number in sorted(stats.statuses.items()):
        calls.add_metric([status], number)
    return calls


def _counters(stats: PoolStats) -> Iterator[Metric]:
    yield CounterMetricFamily("sandbox_sessions_started", "Sessions made.", value=stats.sessions_started)
    yield CounterMetricFamily("sandbox_sessions_broken", "Sessions lost before they were closed.", value=stats.broken)
    yield CounterMetricFamily("sandbox_trees_started", "One, and one for each crash.", value=stats.trees_started)


def _gauges(stats: PoolStats) -> Iterator[Metric]:
    values = {
        "sandbox_calls_running": ("Calls that run now.", stats.running),
        "sandbox_calls_waiting": ("Calls that wait for a slot.", stats.waiting),
        "sandbox_sessions": ("Sessions alive, spares included.", stats.sessions),
        "sandbox_spare_sessions": ("Sessions started ahead.", stats.spares),
        "sandbox_groups": ("Groups open.", stats.groups),
        "sandbox_processes": ("Processes of the tree.", stats.processes),
    }
    for name, (meaning, value) in values.items():
        yield GaugeMetricFamily(name, meaning, value=value)
    if stats.memory_mb is not None:
        n_bytes = stats.memory_mb * (1 << 20)
        yield GaugeMetricFamily("sandbox_memory_bytes", "Proportional set size of the tree.", value=n_bytes)


def _summaries(stats: PoolStats) -> Iterator[Metric]:
    spreads = {
        "sandbox_call_seconds": ("A call, without its wait for a slot.", stats.call_seconds),
        "sandbox_queue_seconds": ("The wait for a slot.", stats.queue_seconds),
        "sandbox_spawn_seconds": ("Making a session.", stats.spawn_seconds),
    }
    for name, (meaning, spread) in spreads.items():
        yield SummaryMetricFamily(name, meaning, count_value=spread.n, sum_value=spread.total)

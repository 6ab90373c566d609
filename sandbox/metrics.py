"""A pool's statistics for Prometheus (extra `metrics`): `serve_metrics(pool, port=9464)` answers at /metrics."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from darkroom.sandbox.pool import SandboxPool


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
        counter, gauge = CounterMetricFamily, GaugeMetricFamily
        n_bytes = None if stats.memory_mb is None else stats.memory_mb * (1 << 20)
        numbers: list[tuple[Callable[..., Metric], str, str, float | None]] = [
            (counter, "sandbox_sessions_started", "Sessions made.", stats.sessions_started),
            (counter, "sandbox_sessions_broken", "Sessions lost before they were closed.", stats.broken),
            (counter, "sandbox_trees_started", "One, and one for each crash.", stats.trees_started),
            (gauge, "sandbox_calls_running", "Calls that run now.", stats.running),
            (gauge, "sandbox_calls_waiting", "Calls that wait for a slot.", stats.waiting),
            (gauge, "sandbox_sessions", "Sessions alive, spares included.", stats.sessions),
            (gauge, "sandbox_spare_sessions", "Sessions started ahead.", stats.spares),
            (gauge, "sandbox_groups", "Groups open.", stats.groups),
            (gauge, "sandbox_processes", "Processes of the tree.", stats.processes),
            (gauge, "sandbox_memory_bytes", "Proportional set size of the tree.", n_bytes),
        ]
        for kind, name, meaning, value in numbers:
            if value is not None:
                yield kind(name, meaning, value=value)
        for name, meaning, spread in (
            ("sandbox_call_seconds", "A call, without its wait for a slot.", stats.call_seconds),
            ("sandbox_queue_seconds", "The wait for a slot.", stats.queue_seconds),
            ("sandbox_spawn_seconds", "Making a session.", stats.spawn_seconds),
        ):
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

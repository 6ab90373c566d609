"""What Prometheus reads from a pool."""

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from darkroom.sandbox import SandboxPool
from darkroom.sandbox.metrics import serve_metrics


def test_a_scrape_tells_what_the_pool_did(full_tier: None) -> None:
    with SandboxPool(tier="full") as pool, pool.group() as group, group.session() as session:
        session.run("print(1)")
        session.run("1 / 0")
        server = serve_metrics(pool, port=0)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=60) as answer:
                text = answer.read().decode()
        finally:
            server.close()
    samples = {
        (sample.name, sample.labels.get("status", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["sandbox_calls_total", "ok"] == samples["sandbox_calls_total", "error"] == 1
    assert samples["sandbox_sessions", ""] == samples["sandbox_groups", ""] == 1
    assert samples["sandbox_call_seconds_count", ""] == 2
    assert samples["sandbox_call_seconds_sum", ""] > 0
    assert samples["sandbox_trees_started_total", ""] == 1

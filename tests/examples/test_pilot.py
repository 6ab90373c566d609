"""A pilot on an endpoint that answers as a good teacher; with a real server: tests/e2e/test_serve.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.vllm_server import clean_environment
from tests.assets.builds.test_preview import Teacher, home
from tests.json_endpoint import endpoint

__all__ = ["home"]
pytestmark = pytest.mark.e2e
EXAMPLE = Path(__file__).parents[2] / "examples" / "pilot.py"


class Endpoint(Teacher):
    """Counts its calls apart."""


def test_a_pilot_is_a_page_with_the_endpoint_and_the_yields(home: Path, tmp_path: Path) -> None:
    page = tmp_path / "pilot.md"
    with endpoint(Endpoint) as url:
        settings = {"DARKROOM_POLICY": "openai", "DARKROOM_POLICY_URL": url, "DARKROOM_POLICY_MODEL": "m"}
        environment = clean_environment(home) | settings | {"DARKROOM_JUDGE": "oracle", "OPENAI_API_KEY": "none"}
        command = [sys.executable, EXAMPLE, "birds", "2", page]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    text = page.read_text()
    assert done.returncode == 0, text
    assert "# Pilot: 2 questions of birds per family" in text
    assert "## darkroom policy check policy" in text
    assert "direct: 2 tried, 2 accepted; 4 calls, 400 tokens, $0.00" in text
    assert "; per accepted row 200 tokens, " in text.split("direct: ")[1]
    assert (home / "views" / "birds.preview.html").exists()

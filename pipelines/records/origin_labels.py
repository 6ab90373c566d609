"""Labels of answers that no model gave: no figure of a stand-in may be read as a model's."""

from collections.abc import Iterable
from typing import Literal

STAND_INS = {
    "oracle": "the embedded oracle (a script that knows the truth; no model)",
    "embedded": "an embedded rule (measured; no model)",
}
"""By the name under which votes, passes and trajectories are signed."""
SIMULATED = "simulated by the embedded oracle (drawn by a script; no model was measured)"
Annotators = Literal["people", "simulated people"]


def asked(name: str) -> str:
    """Who was asked, for readers: a stand-in is called one, a model by its name."""
    return STAND_INS.get(name, name)


def measured_on(names: Iterable[str]) -> str:
    """On whom a pass rate, an accuracy or a vote was measured: ``measured on qwen``, or that it is simulated."""
    models = sorted(set(names))
    real = [name for name in models if name not in STAND_INS]
    parts = [f"measured on {', '.join(real)}"] if real else []
    parts += [SIMULATED if name == "oracle" else asked(name) for name in models if name in STAND_INS]
    return "; ".join(parts) or "not measured"

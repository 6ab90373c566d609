"""The experiments, a module per paper.

Each says the paper's row; a model's settings are what differs from ``models.SFT`` and ``models.GRPO``.
"""

from measurements.ablations.catalog import codev, figr, look_less, pyvision, thyme
from measurements.ablations.catalog.starts import FRESH, TUNED

EXPERIMENTS = {
    one.name: one
    for one in (
        *thyme.EXPERIMENTS,
        *pyvision.EXPERIMENTS,
        *codev.EXPERIMENTS,
        *look_less.EXPERIMENTS,
        *figr.EXPERIMENTS,
    )
}

__all__ = ["EXPERIMENTS", "FRESH", "TUNED"]

"""The embedded source ``demo_rl``: RL prompts with every kind of answer, and rows that the RL stages must find out.

No download, no key: problems in words (``constructions``, ``reckonings``: with and without use for a drawing) and
questions about small sheets that are drawn over scikit-image's and scikit-learn's photographs (``shapes``, ``signs``,
``instruments``, ``sketches``, ``contacts``, ``routes``); ``planted`` rows say in ``truth.details`` what is wrong with
them, ``spoiled`` ones never get past intake.
"""

from pipelines.sources.demo_rl.source import DEMO_RL_VERSION, DemoRLSource

__all__ = ["DEMO_RL_VERSION", "DemoRLSource"]

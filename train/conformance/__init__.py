"""The gate before training: every row is checked against what the trainer makes of it, and gets a verdict.

``gate.examine`` goes through the rows, ``rows`` judges them, ``report`` keeps the verdicts and says them.
"""

from train.conformance.gate import Gate, Progress, examine
from train.conformance.report import Conformance, refusal, summary
from train.conformance.verdicts import Misfit, Verdict

__all__ = ["Conformance", "Gate", "Misfit", "Progress", "Verdict", "examine", "refusal", "summary"]

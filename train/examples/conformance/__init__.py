"""The gate before training: every row is checked against what the trainer makes of it, and gets a verdict.

``gate.examine`` goes through the rows, ``rows`` judges them, ``report`` keeps the verdicts and says them.
"""

from darkroom.train.examples.conformance.gate import ConformanceGate, Progress, examine
from darkroom.train.examples.conformance.report import Conformance, Misfit, RowVerdict, explanation, summary

__all__ = ["Conformance", "ConformanceGate", "Misfit", "Progress", "RowVerdict", "examine", "explanation", "summary"]

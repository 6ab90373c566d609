"""Explain: everything that is known about one row or one reject, from the tables and the ledger."""

from pipelines.explain.acts import RowAct
from pipelines.explain.explanation import RL, Explanation, Passage, Way, explain
from pipelines.explain.subjects import RowAmbiguous, RowUnknown, Subject

__all__ = ["RL", "Explanation", "Passage", "RowAct", "RowAmbiguous", "RowUnknown", "Subject", "Way", "explain"]

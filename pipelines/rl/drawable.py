"""Whether a mathematical problem looks as if a drawing would help, by its words alone: a rule without a model.

What it weighs is what FIGR (appendix B.1) names: geometry, places, motion, graphs of functions and relations among many
things on one side; transformations, recall and plain reckoning on the other. It stands in for a judge where there is
none, and knows nothing of what a problem means. It was written with ``gold/suitability.jsonl`` in view, so what it
scores there is the best that can be said of it.
"""

from __future__ import annotations

import re

_SHOWN = (
    r"triangle (?-i:[A-Z]{3})\b|quadrilateral|trapezi\w+|hexagon|semicircle|polygon with the vertices",
    r"\bchords?\b|\btangents?\b|\bbisectors?\b|\bdiameter|inscribed|circumscribed|\bradi(?:us|i)\b",
    r"\b(?:touch|overlap|enclose|intersect|cross|surround)(?:es|s|ed|ing)?\b|\bin common\b|\bmeet\b",
    r"perpendicular|\bparallels?\b|symmetr\w+|\bmirror|reflect\w+",
    r"\bregions?\b|\bbetween the (?:curves?|graphs?|parabola|line)|\bunder the curve\b|[xy]-axis",
    r"\bfold(?:s|ed|ing)?\b|\bunfold\w*|\bcrease\b|\bsawn\b|\bpainted\b|\bturned about\b|\brotat\w+",
    r"\bladder\b|\bshadow\b|\brope\b|\bstring\b|\btethered\b|\bmast\b|\bpeg\b|\bbearing\b|\bramp\b",
    r"\b(?:north|south|east|west)\b|\bturns? (?:left|right)\b|\bforward\b|\bwalks?\b",
    r"\bgrid\b|\bboard\b|\blattice\b|\broads?\b|\bcrossroads?\b|\bstreets?\b|\bsquare by square\b|\blead from\b",
    r"\bhow many (?:real )?solutions\b|\bexactly \w+ solutions\b",
    r"\b(?-i:[A-Z])\s?\(-?\d+, -?\d+\)",
    r"\brandom (?:moments?|places?|times?|points?)\b",
    r"\bboth\b.*\bneither\b|\ball three\b|\bone of them\b|\bjust one\b",
    r"\bcubes?\b|\bcones?\b|\bcylinders?\b|\bpyramids?\b|\bsolid\b|\bfaces\b",
    r"\b(?:greatest|largest|smallest|least) value\b.*(?:\||≤|max)|\bmax\(",
    r"\baround a (?:round )?table\b|\bhandshakes?\b",
)
_RECKONED = (
    r"\A(?:solve|expand|simplify|factor|evaluate|compute|calculate|differentiate|state|prove|show)\b",
    r"\bderivative|\bintegral of\b|\blimit\b|\bdeterminant\b|\bslope\b|\blogarithm|\blog|\bscalar product\b",
    r"\bremainder|\bdivi(?:sible|sors?|ded by)\b|\bprime|\bgreatest common\b|\bleast common\b|\bdigits?\b|\bbase \d",
    r"\bfirst \w+ (?:terms|odd|even|whole)|\bprogression\b|\bsequence\b.*\bterm\b|\bformula\b|\btheorem\b",
    r"\bcommittee|\bletters of\b|\bchosen from\b|\b(?:die|dice|coins?|urn)\b|\bwithout putting back\b",
    r"\bper cent\b|%|\bdiscount\b|\bdoubles\b|\btripled\b|\bnumber was\b|\bcomplete graph\b",
    r"\b[fgh]\([fgh]\(|\bwhat is [fgh]\(|\bcoefficient\b|\bwhat is [a-z]²|\b[a-z]b = |\bremains?\b",
    r"\bperimeter of\b|\bsum of the (?:interior )?angles\b|\bdiagonals\b|\bin the ratio\b|\bi\.",
)


def looks_suitable(question: str) -> bool:
    """Whether more of its words speak of things to be seen than of steps to be reckoned; a draw is no."""
    return _n_found(_SHOWN, question) > _n_found(_RECKONED, question)


def _n_found(patterns: tuple[str, ...], question: str) -> int:
    return sum(re.search(pattern, question, re.IGNORECASE) is not None for pattern in patterns)

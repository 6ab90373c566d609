"""Recall and false alarms of ``claims_hold`` on claims with their truth, which were written before its patterns.

    python -m tests.measurements.claims              # the half that was not looked at while the patterns were written
    python -m tests.measurements.claims --tuning     # the other half, and what goes wrong on it
    python -m tests.measurements.claims --file claims_new    # the sentences of a later day (``cases/claims_new.tsv``)
    python -m tests.measurements.claims --file claims_voices_c --whole   # both halves

A case is a sentence, where it stands, what was measured there (``SITUATIONS``) and whether the sentence holds.
"""

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.verification.checks.claims import Situation, View, claims_in, contradiction
from darkroom.pipelines.verification.proportion import Proportion
from darkroom.pipelines.vision.visibility import Visibility

CASES = Path(__file__).parents[1] / "pipelines/verification/checks/cases"


class Measured(NamedTuple):
    """The image before the code, and what the code showed; None where there is no code."""

    start: Visibility
    view: View | None
    n_views: int = 1


TINY, WHOLE = Visibility(18.0, 0.0004, 150.0, None, 3200), Visibility(300.0, 0.6, 200.0, None, 640)
FAINT, BRIGHT = Visibility(None, None, 20.0, None, 640), Visibility(None, None, 200.0, None, 640)
TURNED, UPRIGHT = Visibility(None, None, 200.0, 90.0, 640), Visibility(None, None, 200.0, 0.0, 640)
HALF, TILTED = Visibility(None, None, 200.0, 180.0, 640), Visibility(None, None, 200.0, 8.0, 640)
ENLARGED = {"tiny_2": 2.0, "three": 3.0, "five": 5.0, "six": 6.0, "ten": 10.0}
CROPS = {"two": 2, "three": 3, "four": 4, "five": 5}


def enlarged(factor: float) -> View:
    return View(Visibility(100.0, None, 150.0), factor, 0.02, False, False)


SITUATIONS = {
    "tiny": Measured(TINY, View(Visibility(200.0, None, 150.0), 4.0, 0.02, False, False)),
    "tiny_1x": Measured(TINY, View(Visibility(60.0, None, 150.0), 1.0, 0.02, False, False)),
    "tiny_kept": Measured(TINY, View(Visibility(18.0, None, 150.0), 1.0, 1.0, False, False)),
    "wide": Measured(TINY, View(Visibility(25.0, None, 150.0), 1.5, 0.3, False, False)),
    "nothing": Measured(TINY, None),
    "large": Measured(WHOLE, None),
    "large_crop": Measured(WHOLE, View(Visibility(600.0, None, 200.0), 2.0, 0.1, False, False)),
    "faint": Measured(FAINT, View(Visibility(None, None, 220.0), 1.0, 1.0, False, True)),
    "faint_kept": Measured(FAINT, View(Visibility(None, None, 20.0), 1.0, 1.0, False, False)),
    "bright": Measured(BRIGHT, None),
    "turned": Measured(TURNED, View(Visibility(None, None, 200.0, 0.0), 1.0, 1.0, True, False)),
    "turned_kept": Measured(TURNED, View(Visibility(None, None, 200.0, 90.0), 1.0, 1.0, False, False)),
    "upright": Measured(UPRIGHT, View(Visibility(None, None, 200.0, 0.0), 1.0, 1.0, False, False)),
    "half": Measured(HALF, View(Visibility(None, None, 200.0, 0.0), 1.0, 1.0, True, False)),
    "tilted": Measured(TILTED, View(Visibility(None, None, 200.0, 0.0), 1.0, 1.0, True, False)),
    "unknown": Measured(Visibility(None, None, 200.0, None, 640), None),
    **{f"{word}_x": Measured(TINY, enlarged(factor)) for word, factor in ENLARGED.items()},
    **{f"{word}_crops": Measured(TINY, enlarged(4.0), n_views) for word, n_views in CROPS.items()},
}


@dataclass(frozen=True, slots=True)
class ClaimCase:
    """``place``: before (a first thought, no code spoken of), plan, comment or after."""

    place: str
    seen: str
    holds: bool
    text: str

    @property
    def is_held_out(self) -> bool:
        return int(digest(["claims", self.text]), 16) % 2 == 0

    @property
    def refused(self) -> str | None:
        """Why the check refuses it; None where it does not."""
        measured = SITUATIONS[self.seen]
        views = [measured.view] * measured.n_views if measured.view else []
        now = measured.view.now if measured.view and self.place == "after" else None
        facts = Situation(measured.start, now, views)
        reasons = (contradiction(claim, facts) for claim in claims_in(self.text))
        return next((reason for reason in reasons if reason), None)


def cases(*, held_out: bool | None, name: str = "claims") -> Iterator[ClaimCase]:
    """The cases of a half, or of both (``held_out=None``)."""
    with (CASES / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            case = ClaimCase(row["place"], row["seen"], row["holds"] == "yes", row["text"])
            if held_out in (None, case.is_held_out):
                yield case


def measure(*, held_out: bool | None, name: str = "claims") -> tuple[Proportion, Proportion]:
    """Proportions that are refused: of the false claims, and of the true ones."""
    false_claims = [case for case in cases(held_out=held_out, name=name) if not case.holds]
    true_claims = [case for case in cases(held_out=held_out, name=name) if case.holds]
    return tuple(  # type: ignore[return-value]  # two of them
        Proportion(sum(case.refused is not None for case in group), len(group)) for group in (false_claims, true_claims)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuning", action="store_true", help="the half that the patterns were written against")
    parser.add_argument("--whole", action="store_true", help="both halves")
    parser.add_argument("--file", default="claims")
    options = parser.parse_args()
    if options.tuning:
        for case in cases(held_out=None if options.whole else False, name=options.file):
            if (case.refused is None) != case.holds:
                what = f"false alarm ({case.refused})" if case.holds else "missed"
                print(f"{what}: {case.place}, {case.seen}: {case.text}")
    recall, alarms = measure(held_out=None if options.whole else not options.tuning, name=options.file)
    print(f"false claims refused: {recall.n} of {recall.of}")
    print(f"true claims refused: {alarms.n} of {alarms.of}")


if __name__ == "__main__":
    main()

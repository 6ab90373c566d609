"""``darkroom explain``: what became of a row is on the first screen, before the histories of its families."""

from io import StringIO

from rich.console import Console

from darkroom.assets.terminal.explanation import print_explanation
from darkroom.pipelines.inspection.explain import Explanation, FamilyHistory, Passage, Subject


def history(family: str, *outcomes: str, reason: str = "", evidence: str = "") -> FamilyHistory:
    stages = ("drafts", "runs", "verdicts", "trajectories")
    passages = tuple(
        Passage(
            f"{family}/{stage}",
            "demo-0000",
            outcome,
            *(("", "", "") if outcome == "kept" else (reason, "", evidence)),
            {},
        )
        for stage, outcome in zip(stages, outcomes, strict=False)
    )
    return FamilyHistory(family, "" if outcomes[0] == "rejected" else f"{family}-id", passages, {}, ())


def printed(*histories: FamilyHistory) -> str:
    shown = StringIO()
    console = Console(width=120, file=shown)
    print_explanation(console, Explanation(Subject("sample", "abc"), None, (), histories))
    return shown.getvalue()


NOT_FOR = {"reason": "not_applicable", "evidence": "the sample has no video"}
HISTORIES = (
    history("agentic_image", "rejected", **NOT_FOR),
    history("agentic_video", "rejected", **NOT_FOR),
    history("crop", "kept", "kept", "kept", "kept"),
    history("rotation", "kept", "kept", "rejected", reason="check_failed", evidence="it says 41"),
)


def test_the_first_lines_say_what_was_rejected_and_why_then_what_was_kept() -> None:
    first = [" ".join(line.split()) for line in printed(*HISTORIES).split("By family")[1].splitlines()[2:5]]
    assert first == [
        "rotation rejected verdicts check_failed: it says 41",
        "crop kept trajectories",
        "agentic_image, agentic_video not_applicable the sample has no video",
    ]


def test_histories_come_in_the_same_order_without_families_that_wrote_nothing() -> None:
    rules = [line.split()[0] for line in printed(*HISTORIES).splitlines() if line.endswith("──")]
    assert rules == ["rotation", "crop"]


def test_the_history_of_one_family_needs_no_overview() -> None:
    alone = printed(HISTORIES[0])
    assert "By family" not in alone
    assert "the sample has no video" in alone

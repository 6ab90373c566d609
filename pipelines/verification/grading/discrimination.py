"""Whether a grader tells a sample's own answer from corrupted ones: a row whose grader cannot is worth no rollout.

    from darkroom.pipelines.verification.grading import grader_of, measure_discrimination

    measured = measure_discrimination(sample, grader_of(sample))
    measured.holds      # False: .accepted are wrong answers that passed, .refused right ones that did not

A ``judged`` grader is tried without its judge: what it accepts then, no judge is asked about.
"""

from dataclasses import dataclass

from darkroom.pipelines.records import Grader, Sample
from darkroom.pipelines.records.answers import split_choice
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.verification.grading.boxes import read_box
from darkroom.pipelines.verification.grading.corrupted_values import Corruption, spelled
from darkroom.pipelines.verification.grading.corruptions import corruptions
from darkroom.pipelines.verification.grading.grade import grade
from darkroom.pipelines.verification.grading.lists import elements

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Discrimination:
    """What a grader accepted of ``n_corrupted`` wrong answers, and which spellings of the right one it refused."""

    accepted: tuple[Corruption, ...]
    refused: tuple[str, ...]
    n_corrupted: int

    @property
    def holds(self) -> bool:
        return not self.accepted and not self.refused

    def __str__(self) -> str:
        wrong = [f"accepts {corruption.text[:60]!r} ({corruption.kind})" for corruption in self.accepted[:_SHOWN]]
        right = [f"refuses {text[:60]!r}" for text in self.refused[:_SHOWN]]
        return "; ".join([*right, *wrong]) or f"tells its answer from {self.n_corrupted} corrupted ones"


def measure_discrimination(sample: Sample, grader: Grader) -> Discrimination:
    """Tries the grader on every corruption and every honest spelling of the sample's answer."""
    wrong = corruptions(sample, grader)
    accepted = tuple(corruption for corruption in wrong if grade(corruption.text, sample, grader).right)
    refused = tuple(text for text in correct_spellings(sample, grader) if not grade(text, sample, grader).right)
    return Discrimination(accepted, refused, len(wrong))


def require_discrimination(sample: Sample, grader: Grader) -> None:
    """Raises ``RowError`` (grader_cannot_tell) with the evidence when the grader does not tell the answers apart."""
    discrimination = measure_discrimination(sample, grader)
    if not discrimination.holds:
        raise RowError(Reason.GRADER_CANNOT_TELL, f"the {grader.kind} grader {discrimination}")


def correct_spellings(sample: Sample, grader: Grader) -> tuple[str, ...]:
    """The sample's answer as models spell it."""
    answer = sample.answer.strip()
    spellings = [answer, f" {answer}\n", f"The answer is {answer}", f"**{answer}**"]
    match grader.kind:
        case "choice":
            spellings += _choice_spelled(sample)
        case "list":
            parts = elements(answer)
            spellings += [", ".join(parts), "\n".join(f"- {part}" for part in parts) if len(parts) > 1 else answer]
        case "box":
            box = read_box(answer)
            spellings += [spelled(box), f'{{"bbox": {spelled(box)}}}'] if box else []
        case "number" | "maths":
            spellings.append(rf"\boxed{{{answer}}}")
        case "text" | "judged":
            spellings += [
                answer.upper() if answer.isascii() else answer,
                f'"{answer}"' if '"' not in answer else answer,
            ]
    return tuple(dict.fromkeys(spellings))


def _choice_spelled(sample: Sample) -> list[str]:
    for letter, text in map(split_choice, sample.choices):
        if letter == sample.answer:
            return [f"({letter})", f"{letter}. {text}", f"Option {letter}", letter.lower()]
    return []

"""Grades answers by rule, as rewards and checks do: the grader follows from the reference answer.

python examples/grade_answers.py
"""

from darkroom.pipelines.records import Sample, Truth
from darkroom.pipelines.verification.grading import grade, grader_of

QUESTIONS = (
    ("How long is the bridge?", "1.2 km", ["1200 m", "1.2", "1.2 m", "1 km or 1.2 km"]),
    ("Solve for x.", r"\frac{1}{2}", ["0.5", "1/2", "2"]),
    ("What does the sign say?", "Maple Ave", ["maple ave.", "Maple", "not Maple Ave"]),
)


def main() -> None:
    """Prints kind, verdict and evidence of each answer."""
    for question, reference, answers in QUESTIONS:
        sample = Sample(question, "example", question, "", (), question, (), reference, Truth(), "")
        grader = grader_of(sample)
        print(f"{question} {reference} (graded as {grader.kind})")
        for answer in answers:
            verdict = grade(answer, sample, grader)
            print(f"  {'right' if verdict.right else 'wrong'}  {verdict.detail}")


if __name__ == "__main__":
    main()

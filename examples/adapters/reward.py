r"""The reward of a prompt that Darkroom exported: 1.0 for the right answer, 0.0 for any other. Runs by itself.

    TRL        GRPOTrainer(..., reward_funcs=reward.trl_reward)
    verl       reward.custom_reward_function.path=FOLDER/reward.py reward.custom_reward_function.name=verl_reward
    EasyR1     worker.reward.reward_function=FOLDER/reward.py:easyr1_reward
    ms-swift   --external_plugins FOLDER/reward.py --reward_funcs darkroom
    OpenRLHF   --reward.remote_url FOLDER/reward.py

By itself it grades choices, numbers and texts, more strictly than Darkroom does. Lists, expressions, boxes and judged
answers need `pip install darkroom-toolkit`, or the address of a `darkroom environment serve` in the variable
DARKROOM_ENVIRONMENT_URL; with either, all kinds are graded by Darkroom's rules (a judged answer by its words: no judge
is asked here). The answer is the last <answer> or \boxed{} behind the last observation.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import re
import sys
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

REWARD_NAME, REWARD_TYPE = "darkroom", "batch"
"""Read by EasyR1."""

_OBSERVED = re.compile(r"</(?:sandbox_output|interpreter|tool_response)>")
_TAGGED = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL | re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\s*\{")
_CHOICE = re.compile(r"\A\(?([A-Z])\)?[.:)]?(?:[ \t\r\n]+(.*))?\Z", re.DOTALL | re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(
    r"\A([+-]?)((?:0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d*)(?:\.\d+)?)[ \t]*([^\d\s.,/^_][^\n]*)?\Z", re.ASCII
)
_FORM = re.compile(
    r"simplif|factor|expand|lowest terms|standard form|scientific notation"
    r"|as an? (?:\w+ )?(?:fraction|decimal|product|sum)|mixed number|rationali[sz]e|in the form|base[- ]\d"
    r"|binary|hexadecimal|decimal place|significant|nearest|round",
    re.IGNORECASE,
)
_REMEDY = "pip install darkroom-toolkit, or name its service in DARKROOM_ENVIRONMENT_URL"
_MAX_NUMBER, _MAX_CHARS, _LONGEST = 60, 400, 4000
_PROMPT_END = 16


class NeedsToolkit(ImportError):
    """The answer is of a kind that this file alone cannot grade."""


def trl_reward(
    completions: Sequence[Any],
    answer: Sequence[str],
    question: Sequence[str],
    choices: Sequence[Sequence[str]],
    grader: Sequence[Mapping[str, Any]],
    **_: Any,
) -> list[float]:
    """For TRL, which calls it with the dataset's columns."""
    names = ("answer", "question", "choices", "grader")
    rows = zip(completions, answer, question, choices, grader, strict=True)
    return [score(_last_words(completion), dict(zip(names, truth, strict=True))) for completion, *truth in rows]


def verl_reward(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any], **_: Any
) -> dict[str, float]:
    """For verl, rollout by rollout; grader, question and choices are in the row's `extra_info`."""
    right = score(solution_str, {**extra_info, "answer": ground_truth})
    return {"score": right, "acc": right}


def easyr1_reward(reward_inputs: Any, **_: Any) -> Any:
    """For EasyR1, one rollout or a batch of them; `data.answer_key` is `ground_truth`."""
    if isinstance(reward_inputs, Mapping):
        right = score(reward_inputs["response"], json.loads(reward_inputs["ground_truth"]))
        return {"overall": right, "accuracy": right}
    return [easyr1_reward(reward_input) for reward_input in reward_inputs]


def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **_: Any) -> dict[str, Any]:
    """For OpenRLHF, which asks for one rollout at a time; `--data.label_key` is `ground_truth`."""
    ((query, prompt, label),) = zip(queries, prompts, labels, strict=True)
    right = score(_behind(prompt, query), json.loads(label))
    return {"rewards": right, "scores": right, "extra_logs": {"accuracy": right}}


class MsSwiftReward:
    """For ms-swift, under the name `darkroom`; it is called with the dataset's columns."""

    def __init__(self, args: Any = None, **_: Any) -> None: ...

    def __call__(self, completions: Sequence[str], solution: Sequence[str], **columns: Any) -> list[float]:
        """The reward of every completion."""
        return trl_reward(completions, answer=solution, **columns)


def score(response: str, truth: Mapping[str, Any]) -> float:
    """Return whether the response ends in the right answer.

    Raises `NeedsToolkit` for kinds that are not graded here alone, `OSError` where the service does not answer.
    """
    answer = final_answer(response)
    if answer is None:
        return 0.0
    if has_toolkit():
        return float(by_toolkit(answer, truth))
    url = os.environ.get("DARKROOM_ENVIRONMENT_URL")
    return float(by_service(url, answer, truth) if url else alone(answer, truth))


def final_answer(response: str) -> str | None:
    r"""The end of the words behind the last observation: the last <answer>, else the last \boxed; None without one."""
    words = _OBSERVED.split(response)[-1]
    tagged = _TAGGED.findall(words)
    if tagged:
        return str(tagged[-1]).strip()
    starts = [match.end() for match in _BOXED.finditer(words)]
    return _braced(words, starts[-1]) if starts else None


@functools.cache
def has_toolkit() -> bool:
    """Return whether Darkroom is installed here."""
    try:
        return importlib.util.find_spec("darkroom.pipelines.verification.grading") is not None
    except ModuleNotFoundError:  # there is no pipelines, or it is something else
        return False


def by_toolkit(final: str, truth: Mapping[str, Any]) -> bool:
    """Darkroom's own verdict."""
    grading = importlib.import_module("darkroom.pipelines.verification.grading")
    records = importlib.import_module("darkroom.pipelines.records")
    unknown = dict.fromkeys(("sample_id", "source", "source_row", "license", "category"), "")
    asked = {"question": str(truth["question"]), "answer": str(truth["answer"])}
    choices = tuple(map(str, truth["choices"]))
    sample = records.Sample(**unknown, **asked, choices=choices, images=(), truth=records.Truth())
    return bool(grading.grade(final, sample, records.Grader(**_grader(truth))).right)


def by_service(url: str, final: str, truth: Mapping[str, Any]) -> bool:
    """Darkroom's verdict, from the service at `url`."""
    facts = {name: truth[name] for name in ("question", "answer")}
    facts |= {"choices": list(truth["choices"]), "grader": _grader(truth)}
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get("DARKROOM_SERVICE_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    body = json.dumps({"answer": final, "truth": facts}).encode()
    request = urllib.request.Request(f"{url}/grade", body, headers)
    with urllib.request.urlopen(request, timeout=600) as answer:
        return bool(json.load(answer)["right"])


def alone(final: str, truth: Mapping[str, Any]) -> bool:
    """The verdict of this file alone: what it finds right, Darkroom does, too."""
    kind, answer = truth["grader"]["kind"], str(truth["answer"])
    if kind not in ("choice", "number", "text"):
        raise NeedsToolkit(f"answers of the kind {kind!r} are graded by Darkroom: {_REMEDY}")
    if len(final) > min(max(_MAX_CHARS, 2 * len(answer)), _LONGEST):
        return False
    actual, expected = _bare(final), _bare(answer)
    if kind == "choice":
        chosen = _letter(actual, truth["choices"])
        return chosen is not None and chosen == _letter(expected, truth["choices"])
    right = (answer, *_grader(truth).get("accepted", ()))
    if actual and _words(actual) in {_words(_bare(text)) for text in right}:
        return True
    return kind == "number" and _same_number(actual, expected, truth["grader"], str(truth["question"]))


def _grader(truth: Mapping[str, Any]) -> dict[str, Any]:
    """The grader without empty fields: earlier versions know no `accepted`, which may be an array."""
    fields = {name: value for name, value in truth["grader"].items() if value is not None}
    return fields | ({"accepted": tuple(map(str, fields["accepted"]))} if "accepted" in fields else {})


def _same_number(actual: str, expected: str, grader: Mapping[str, Any], question: str) -> bool:
    left, right = _NUMBER.match(actual), _NUMBER.match(expected)
    if left is None or right is None or max(len(actual), len(expected)) > _MAX_NUMBER:
        return False
    if (left[3] or grader["unit"]).strip() != (right[3] or grader["unit"]).strip():
        return False
    digits, target = left[1] + left[2].replace(",", ""), right[1] + right[2].replace(",", "")
    tolerance = Fraction(str(grader["tolerance"]))
    if not tolerance and _FORM.search(question):
        return digits == target
    return abs(Fraction(digits) - Fraction(target)) <= tolerance * abs(Fraction(target))


def _letter(text: str, choices: Iterable[str]) -> str | None:
    """The letter of the one choice that the text names, by its letter, its words or both."""
    split = (_CHOICE.match(choice.strip()) for choice in choices)
    texts = {choice[1].upper(): _words(choice[2]) for choice in split if choice and choice[2]}
    match = _CHOICE.match(text)
    letter = match[1].upper() if match and match[1].upper() in texts else None
    if match and letter and not match[2]:
        return letter
    letters = [name for name, words in texts.items() if words == _words(text)]
    if len(letters) == 1:
        return letters[0]
    return letter if match and letter and texts[letter] == _words(match[2]) else None


def _bare(text: str) -> str:
    r"""The answer without the \boxed{} or the $ around it."""
    text = text.strip(" \t\r\n")
    match = _BOXED.match(text)
    if match and _braced(text, match.end()) == text[match.end() : -1].strip() and text.endswith("}"):
        text = text[match.end() : -1].strip(" \t\r\n")
    return text[1:-1].strip(" \t") if re.fullmatch(r"\$[^$]+\$", text) else text


def _words(text: str) -> str:
    return re.sub(r"[ \t\r\n]+", " ", text.casefold()).strip(" ")


def _braced(text: str, start: int) -> str | None:
    """The text from `start` to the brace that closes there; None without one."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return text[start:place].strip()
    return None


def _last_words(completion: Any) -> str:
    """The model's last text: a completion is a text, or messages whose content is a text or parts."""
    if isinstance(completion, str):
        return completion
    last = completion[-1]
    if last["role"] != "assistant":
        return ""
    content = last.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)


def _behind(prompt: str, query: str) -> str:
    """The response in a query, which is prompt and response with the image tokens written out."""
    _, mark, response = query.partition(prompt[-_PROMPT_END:])
    if not mark:
        raise ValueError(f"the query does not hold the end of its prompt, {prompt[-_PROMPT_END:]!r}")
    return response


if "swift" in sys.modules:  # ms-swift is loading this file as its plug-in
    importlib.import_module("swift.rewards").orms[REWARD_NAME] = MsSwiftReward

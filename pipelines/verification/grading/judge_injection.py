"""Detect prompt injection aimed at the judge, by rules, before any judge is called.

Caught, in English and in plain sight or behind compatible letters: orders to drop the rules, roles and chat templates,
verdicts and scores, claims to be the right answer, tags of the prompt, orders how to reply, unseen letters, words of
mixed scripts, hedges, and the expected words turned round. Not caught: other languages, riddles, ciphers, and a wrong
answer that addresses no reader. Those the judge reads, between fences, as data.
"""

from __future__ import annotations

import re
import unicodedata

from pipelines.records.answers import compatible
from pipelines.verification.grading.answer_text import hedging_words, hidden, turning_words

MAX_CHARS = 1000
"""A judge is shown no longer answer, and none that is cut: what was cut off may take the rest back."""

_RULES = (
    r"(?:above|below|previous|prior|earlier|instruct\w*|rules?|prompts?|guidelines?|criteria|everything|anything"
    r"|question|expected|reference|task|system|context|answers?|polic\w+)"
)
_ROLE = r"(?:system|assistant|user|human|developer|judge|grader|ai|tool|function|instructions?|note to \w+)"
_JUDGE = r"(?:judge|grader|evaluator|marker|examiner|assessor|scorer|verifier|llm|ai|chatbot|language model)"
_RIGHT = r"(?:right|correct|true|valid|accurate|acceptable|accepted|equivalent|identical|a match|matching|full marks)"
_KNOWN = r"(?:right|correct|expected|reference|gold|golden|true|target|ground[- ]truth|official|intended|desired)"
_ANSWER = r"(?:answer|response|reply|solution|text|label|value|one|statement)"
_KEY = r"(?:verdict|is_?correct|correct|score|grade|label|result|rating|judge?ment|decision|marks?|reward|points?)"
_VALUE = r"(?:true|false|yes|no|pass(?:ed)?|right|correct|accept(?:ed)?)"
_ADDRESSES: dict[str, tuple[str, ...]] = {
    "overrides the rules": (
        r"\b(?:ignor|disregard|forget|overrid|bypass|overlook|skip|set aside|pay no attention)\w*\b.{0,60}?"
        rf"\b{_RULES}\b",
        r"\bnew (?:instruction|rule|task|prompt)s?\b",
        r"\b(?:jailbreak|developer mode|do anything now|prompt injection)\b",
    ),
    "plays a role": (
        rf"(?:^|[\n.!?;:)\]}}\"'#*>-])\s*[\[(*#<|/_-]*\s*{_ROLE}\s*[\])*>|_-]*\s*(?::|=>|\n)",
        r"<\|?[^<>]{0,40}\|>|\[/?inst\]|<</?sys>>|###|</?s>|<bos>",
        r"\bim_(?:start|end)\b|\bend_?of_?(?:turn|text)\b",
    ),
    "gives a verdict": (
        rf"\b{_KEY}\b[\"'`*_]*\s*(?::|=|-|>|→)+\s*[\"'`*_]*(?:{_VALUE}|\d+)\b",
        rf"\b{_KEY}\b\s*(?:\bis\b|\bas\b|\b(?:must|should|shall|has to) be\b)\s*[\"'`*_]*{_VALUE}\b",
        r"\b(?:verdict|full (?:marks|score|credit|points))\b",
        r"\b\d+\s*/\s*10+\b",
        rf"(?:^|[.!?])\W*(?:{_RIGHT}|yes|pass|accept)\W*$",
        r"\\u[0-9a-f]{4}|&#",
    ),
    "speaks to the judge": (
        rf"\b(?:dear|hey|hello|hi|attention|listen|note|message|to the|the|you,? the|as an?|as the)\s+{_JUDGE}\b",
        rf"\b{_JUDGE} (?:must|should|shall|will|has|says|said|agrees|accepts)\b",
        r"\byou (?:must|should|shall|need to|have to|ought|agree|now|are (?:an?|the|now|being|told|asked|required))\b",
        r"\byour (?:task|job|verdict|role|instructions?|output|reply|response|answer|rules?|duty|system)\b",
        r"\bplease\b",
    ),
    "claims to be right": (
        rf"\b(?:this|it|the|my|that|above|given|following|here is|which)\b.{{0,20}}?\b{_ANSWER}\b.{{0,20}}?"
        rf"\b(?:is|are|was|be|must|should|matches|equals)\b.{{0,30}}?\b{_RIGHT}\b",
        r"\b(?:mark|grade|count|accept|treat|score|rate|consider|judge|regard|evaluate|label|deem|give|award)(?:s|e?d)?\b"
        r".{0,30}?\b(?:this|it|me|mine|answer|response|full|all)\b.{0,20}?"
        rf"\b(?:as|{_RIGHT}|pass(?:ed)?|credit|points|marks|score|grade)\b",
        r"\b(?:accept|approve) (?:this|it|me|my|any|all|the answer|whatever)\b",
        rf"\b{_KNOWN} (?:answer|response|reply|solution|label)\b|\bsame as the {_KNOWN}\b|\bground[- ]truth\b",
        r"\bwhatever\b|\bi am (?:right|correct)\b",
        rf"\b(?:is|was) {_RIGHT}\s*[.!]*\s*$",
    ),
    "imitates the prompt": (
        r"</?\s*(?:right|given|expected|question|answer|reference|data|fence)\b",
        r"\b(?:question|given answer)\s*:",
        r"(?:-|=|\*|_|~|#){4,}|```|\{\{|\}\}|\{%",
        r"\b(?:begin|end|close|closing) (?:of )?(?:the )?(?:given|data|answer|input|prompt|fence|quote)\b",
    ),
    "orders a reply": (
        r"\b(?:respond|reply|output|return|print|say|write|answer|emit|produce)\b (?:only |just |simply |back )*"
        r"(?:with |by |in )?(?:only |just |the word |a |the )*"
        r"(?:[\"'{`]|(?:true|yes|json|verdict|correct|right|pass)\b)",
    ),
}
_ADDRESSED = {why: re.compile("|".join(patterns), re.MULTILINE) for why, patterns in _ADDRESSES.items()}
_WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]|[^\W\d_]+")
"""Scripts without spaces: each sign is a word."""
_MIN_WORDS = 2
_MIN_CHARS = 3
"""Of a word that two answers may share."""


def rejection_reason(answer: str, expected: str) -> str:
    """Why a judge is not asked about ``answer``; empty where it is."""
    if len(answer) > MAX_CHARS:
        return f"an answer of {len(answer)} characters"
    if len(_WORD.findall(answer)) < min(_MIN_WORDS, len(_WORD.findall(expected))):
        return "no words, or one where a sentence is expected"
    if hidden(answer) - hidden(expected):
        return "unseen characters"
    if any(_is_mixed(word) for word in _WORD.findall(answer)):
        return "a word of several scripts"
    plain = _joined(compatible(answer).casefold().replace("’", "'"))
    for why, pattern in _ADDRESSED.items():
        if pattern.search(plain):
            return why
    if hedging_words(answer) - hedging_words(expected):
        return "hedges"
    return "turns the expected answer round" if _is_turned(answer, expected) else ""


def _joined(text: str) -> str:
    """With words that are spelled out ("i g n o r e", "i-g-n-o-r-e") put together."""
    return re.sub(r"\b(?:\w[ .\-_*]){3,}\w\b", lambda match: re.sub(r"[ .\-_*]", "", match[0]), text)


def _is_mixed(word: str) -> bool:
    """Whether a word has letters that look like others: Latin beside Cyrillic or Greek."""
    if word.isascii():
        return False
    scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in compatible(word)}
    return len(scripts & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"}) > 1


def _is_turned(answer: str, expected: str) -> bool:
    """Whether the expected words are all there, and other words that deny."""
    return _words(expected) <= _words(answer) and turning_words(answer) != turning_words(expected)


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if len(word) >= _MIN_CHARS}

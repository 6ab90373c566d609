"""Takes the meaning out of protocol tags in what the code printed.

Output lands in the model's context, between tags that the runtime writes. Text that contains such a tag could close the
observation, pose as the model's own thought, code or answer, or become a special token of the tokenizer. The `<` of
each becomes `‹` (U+2039), so that a reader still sees what was printed; every other `<` stays.
"""

import re

_TAGS = """
think answer code python interpreter output result sandbox_output tool tools tool_call tool_response tool_result
function_call function_response observation system user assistant image images img video vision box ref quad point
s eos bos pad unk start_of_turn end_of_turn start_of_image end_of_image image_soft_token
"""
_TAG = re.compile(
    rf"<(?=\s*/?\s*(?:{'|'.join(_TAGS.split())})(?:_\d+)?\s*/?>)"  # <code>, </answer>, <image_0>, <s>
    r"|<(?=\s*/?\s*(?:function|parameter)\s*=)|<(?=invoke\b)"  # <function=name>, <invoke name="...">
    r"|<(?=[|｜])",  # <|im_start|> and the tokens of DeepSeek
    re.IGNORECASE,
)
_NEUTRAL = "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"


def neutralise(text: str) -> str:
    """The text with the `<` of every protocol tag and special token replaced; its length stays."""
    return _TAG.sub(_NEUTRAL, text) if "<" in text else text

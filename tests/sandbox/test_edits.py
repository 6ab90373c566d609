"""Repairs of code that does not parse: only then, every one reported, and what was meant is what runs."""

import ast
import contextlib
import itertools
import time
import warnings

import pytest
from hypothesis import given, settings, strategies as st

from darkroom.sandbox._guest.differences import MAX_REPAIRS
from darkroom.sandbox._guest.edits import SourceEdit, move_paths, parse_repaired
from darkroom.sandbox._guest.names import ImageLinks
from tests.matrices import fewer_quickly

CODE = "import math\nfor i in range(3):\n    print(i)\n"
NBSP = "\N{NO-BREAK SPACE}"


def repaired(code: str) -> tuple[list[str], str]:
    """The kinds of the edits, and the code that ran."""
    tree, edits = parse_repaired(code, "<cell 0>")
    ran = edits[-1].after if edits else code
    assert ast.dump(tree) == ast.dump(ast.parse(ran))
    assert_chained(code, edits)
    return [edit.kind for edit in edits], ran


def assert_chained(code: str, edits: list[SourceEdit]) -> None:
    texts = [code, *(edit.after for edit in edits)]
    assert [(edit.before, edit.after) for edit in edits] == list(itertools.pairwise(texts))
    assert all(edit.before != edit.after and len(edit.kind) <= 32 for edit in edits)


def error_of(code: str) -> SyntaxError:
    with pytest.raises(SyntaxError) as caught:
        parse_repaired(code, "<cell 0>")
    return caught.value


# --- calls of tools


@pytest.mark.parametrize(
    "call",
    [
        '{"name": "python", "arguments": {"code": "x = 1"}}',
        '{"name": "python", "arguments": "{\\"code\\": \\"x = 1\\"}"}',
        "{'name': 'python', 'arguments': {'code': 'x = 1'}}",
        '{"type": "function", "function": {"name": "python", "arguments": "{\\"code\\": \\"x = 1\\"}"}}',
        '{"content": null, "tool_calls": [{"function": {"name": "p", "arguments": {"script": "x = 1"}}}]}',
        '[{"type": "text", "text": "I see"}, {"type": "tool_use", "name": "p", "input": {"code": "x = 1"}}]',
        '{"action": "python", "action_input": "x = 1"}',
        '{"method": "tools/call", "params": {"name": "p", "arguments": {"python": "x = 1"}}}',
        '{"functionCall": {"name": "p", "args": {"code": "x = 1"}}}',
        '{"executableCode": {"language": "PYTHON", "code": "x = 1"}}',
        '[TOOL_CALLS][{"name": "python", "arguments": {"code": "x = 1"}}]',
        '```json\n{"code": "x = 1"}\n```',
        'I do it.\n<tool_call>\n{"name": "python", "arguments": {"code": "x = 1"}}\n</tool_call>',
        'I do it.\n<function_calls>\n<invoke name="p">\n<parameter name="code">x = 1</parameter>\n</invoke>',
        "<function=python>\n<parameter=code>\nx = 1</parameter>\n</function>",
        "I do it.\n<tool_call>python\n<arg_key>code</arg_key>\n<arg_value>x = 1</arg_value>\n</tool_call>",
        "Thought: I do it.\nAction: python\nAction Input: x = 1",
    ],
)
def test_python_in_a_call_runs_however_it_is_spelled(call: str) -> None:
    kinds, ran = repaired(call)
    assert (kinds[-1], ran) == ("strip_call", "x = 1")


def test_calls_in_tags_run_in_turn() -> None:
    call = '<tool_call>{{"name": "python", "arguments": {{"code": "{}"}}}}</tool_call>'
    calls = f"{call.format('x = 1')}\n{call.format('print(x)')}"
    assert repaired(calls)[1].endswith("print(x)")
    block = "<invoke name='p'><parameter=code>\n{}</parameter></invoke>\n"
    assert repaired(f"<function_calls>\n{block.format('x = 1')}{block.format('print(x)')}")[1] == "x = 1\nprint(x)"


@pytest.mark.parametrize(
    "value",
    ['{"code": "AB12", "price": 3}', '[{"code": "7J42"}, {"code": "K9"}]', '{"python": "3.11"}', '{"input": "a"}'],
)
def test_a_value_with_a_field_called_code_is_no_call(value: str) -> None:
    assert repaired(value) == ([], value)


def test_code_in_json_that_does_not_parse_is_still_the_code() -> None:
    with pytest.raises(SyntaxError):
        repaired('{"code": "x = (1"}')


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ('{"name": "zoom", "arguments": {"bbox_2d": [1, 2, 30, 40]}}', "write image_clue_0.crop((1, 2, 30, 40))"),
        (
            '<tool_call>{"name": "search", "arguments": {"query": "a"}}</tool_call>',
            "no tool 'search' here, only Python",
        ),
        ("<function=look><parameter=box>[1, 2, 30, 40]</parameter></function>", "crop((1, 2, 30, 40))"),
    ],
)
def test_a_call_without_python_is_an_error_that_says_so(call: str, told: str) -> None:
    with pytest.raises(ValueError, match="here, only Python: write") as error:
        parse_repaired(call, "<cell 0>")
    assert told in str(error.value)


@pytest.mark.parametrize(
    "code", ["{'a': 1}", "[1, 2]", "{'name': 'disc', 'size': 3}", "[{'label': 'a', 'box': [1, 2, 3, 4]}]", "{}", "[]"]
)
def test_values_are_no_calls(code: str) -> None:
    assert repaired(code) == ([], code)


@pytest.mark.parametrize("part", ['{"input": ', "[", '{"name": "', "<parameter=code>", "<function=a", '{"a": 1} ', "{"])
def test_hostile_calls_take_linear_time(part: str) -> None:
    start = time.process_time()
    with contextlib.suppress(SyntaxError, ValueError):
        parse_repaired("<tool_call>" + part * 10_000, "<cell 0>")
    assert time.process_time() - start < 1


# --- what is around the code


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
@pytest.mark.parametrize("language", ["python", "py", "Python", "python3", ""])
def test_a_fence_is_stripped_and_its_content_kept(fence: str, language: str) -> None:
    assert repaired(f"{fence}{language}\n{CODE}{fence}") == (["strip_fence"], CODE)


@pytest.mark.parametrize("opening", ["```python", "```py", "```", "~~~"])
def test_a_fence_may_lack_its_end(opening: str) -> None:
    assert repaired(f"{opening}\n{CODE}") == (["strip_fence"], CODE)


def test_a_fence_that_is_python_runs() -> None:
    assert repaired("~~~python\nx = 1\n") == ([], "~~~python\nx = 1\n")


@pytest.mark.parametrize("tag", ["code", "python", "CODE"])
@pytest.mark.parametrize(("before", "after"), [("<{}>", "</{}>"), ("<{}>", ""), ("", "</{}>")])
def test_tags_are_stripped_and_their_content_kept(tag: str, before: str, after: str) -> None:
    content = f"\n{CODE}  \n"
    assert repaired(before.format(tag) + content + after.format(tag)) == (["strip_tag"], content)


@pytest.mark.parametrize(
    ("wrapped", "ran"),
    [
        (f"{CODE}```", CODE),
        ("```python\nx = 1```", "x = 1"),
        ("```python x = 1\n```", "x = 1\n"),
        (f"\n \n```python\n{CODE}```\n \n\n", CODE),
        (f"\ufeff```py \r\n{CODE}```\r\n", CODE),
        ("```python\r\nx = 1\r\n```\r\n", "x = 1\r\n"),
        ("```python\n```", ""),
        ("```python\n\n  \nx = 1 \t\n\n```", "\n  \nx = 1 \t\n\n"),
    ],
)
def test_every_byte_between_the_fences_stays(wrapped: str, ran: str) -> None:
    assert repaired(wrapped) == (["strip_fence"], ran)


def test_each_wrapping_is_an_edit_of_its_own() -> None:
    assert repaired(f"<code>```python\n{CODE}```</code>") == (["strip_tag", "strip_fence"], CODE)
    assert repaired(f"<code>\n```python\n{CODE}```\n</code>") == (["strip_tag", "strip_fence"], CODE)
    assert repaired(f"```\n<python>\n{CODE}</python>\n```") == (["strip_fence", "strip_tag"], f"\n{CODE}")
    assert repaired(f"````markdown\n```python\n{CODE}```\n````") == (["strip_fence", "strip_fence"], CODE)


@pytest.mark.parametrize("text", ["```python\nprint(1)\n```", "<code>", "</code>", "~~~", "```\n```python\n"])
def test_fences_and_tags_in_strings_are_text(text: str) -> None:
    code = f"text = '''\n{text}\n'''\nprint('</code>')\n"
    assert repaired(code) == ([], code)
    assert repaired(f"```python\n{code}```") == (["strip_fence"], code)
    assert repaired(f"```python\n{code}") == (["strip_fence"], code)
    assert repaired(f"<code>{code}</code>") == (["strip_tag"], code)
    shifted = "".join(f"  {line}" for line in code.splitlines(keepends=True))
    assert repaired(f"```python\n{shifted}```") == (["strip_fence", "dedent"], code)


def test_two_blocks_with_nothing_between_them_run_in_order() -> None:
    blocks = "```python\nx = 1\n```\n\n```python\nprint(x)\n```\n"
    assert repaired(blocks) == (["strip_fence", "strip_fence"], "x = 1\nprint(x)\n")
    assert repaired("<code>x = 1</code>\n<code>print(x)</code>") == (["strip_tag", "strip_tag"], "x = 1\nprint(x)")


@pytest.mark.parametrize(
    ("text", "ran"),
    [
        ("Here it is:\n```python\nx = 1\n```\nDone.", "x = 1\n"),
        ("Here it is:\n```tool_code\nx = 1\n", "x = 1\n"),
        ("```python\nx = 1\n```\nIt's done.", "x = 1\n"),
        ("x = 1\n```\nThis isn't code.", "x = 1\n"),
        ("```python\nx = 1\n```\nand then\n```python\nprint(x)\n```\n", "x = 1\nprint(x)\n"),
        ("Code:\n```{python}\nx = 1\n```", "x = 1\n"),
        ("First:\n```python\nprint(1)\n```\nIt prints\n```\n1\n```\n", "print(1)\n"),
    ],
)
def test_words_around_fences_are_stripped(text: str, ran: str) -> None:
    assert repaired(text) == (["strip_prose"], ran)


@pytest.mark.parametrize(
    "code",
    ["```json\n{1 2}\n```", "```bash\nls -l\n```", "Only words.", 'x = """\n```python\nprint(1)\n```\n"""\ny = ('],
)
def test_other_languages_words_alone_and_fences_in_strings_are_no_code(code: str) -> None:
    error_of(code)


def test_nine_repairs_do_not_fit_into_a_reply_and_are_not_made() -> None:
    inner = "    x = “a”\n```\n```python\n    y\u200b = 1\n    !ls\n    if y:\n\tz = 2\n            w = 3\n"
    assert len(repaired(f"<code>\n```python\n{inner}```\n</code>")[0]) == MAX_REPAIRS
    error_of(f"<think>Look.</think><code>\n```python\n{inner}```\n</code>")


def test_a_notebooks_lines_become_calls() -> None:
    code = "%matplotlib inline\n%time x = 1\nif x:\n    !pip install 'a b'\ny = 7 % x"
    calls = "get_ipython().run_line_magic('matplotlib inline')\nx = 1\nif x:\n    "
    calls += "get_ipython().system(\"pip install 'a b'\")\ny = 7 % x"
    assert repaired(code) == (["notebook"], calls)
    assert repaired("%%bash\nls -l")[1] == "get_ipython().system('ls -l')"
    assert repaired("files = !ls\ncv2.resize?")[1] == "files = get_ipython().getoutput('ls')\nhelp(cv2.resize)"
    assert repaired("%%writefile a.py\nx = '1'")[1] == "with open('a.py', 'w') as file:\n    file.write(\"x = '1'\")"
    assert repaired(">>> x = 1\n>>> print(x)\n1\n")[1] == "x = 1\nprint(x)"
    assert repaired("pip install a\n!pip install \\\n  b\nx = 1")[1] == (
        "get_ipython().system('pip install a')\nget_ipython().system('pip install    b')\nx = 1"
    )
    kept = 'text = """\n!not run\n%not run\npip install x\n"""\nn = (7\n     % 5, \'it!\'\n     != 2)'
    assert repaired("!ls\n" + kept)[1] == "get_ipython().system('ls')\n" + kept
    assert repaired("!echo hi!")[1] == "get_ipython().system('echo hi!')"
    assert error_of("%%html\n<b>").lineno == 1


def test_an_error_inside_counts_lines_without_the_fence_and_says_so() -> None:
    error = error_of("```python\nx = 1\ny = (\n```")
    assert (error.filename, error.lineno) == ("<cell 0>", 2)
    assert error.msg == "'(' was never closed, in the code without its fence or tags"


def test_the_error_of_code_without_a_fence_is_pythons_own() -> None:
    with pytest.raises(SyntaxError) as plain:
        ast.parse("x = 1\n  y = (\n", "<cell 0>")
    error = error_of("x = 1\n  y = (\n")
    assert (error.msg, error.lineno) == (plain.value.msg, plain.value.lineno)


# --- characters


@pytest.mark.parametrize(
    ("code", "kind", "ran"),
    [
        (f"\ufeff{CODE}", "invisible_characters", CODE),
        (f"if 1:\n{NBSP * 4}x{NBSP}= '{NBSP}'  #{NBSP}", "invisible_characters", f"if 1:\n    x = '{NBSP}'  #{NBSP}"),
        ("x\u200b = 1", "invisible_characters", "x = 1"),
        ("x = 1 + \\  \n    2\n", "invisible_characters", "x = 1 + \\\n    2\n"),
        ('print(“it\'s”, ‘a "b"’)', "plain_quotes", 'print("it\'s", \'a "b"\')'),
        ('print("‘kept’", “new”)  # “kept”', "plain_quotes", 'print("‘kept’", "new")  # “kept”'),
        ('print("mixed”)', "plain_quotes", 'print("mixed")'),
    ],
)
def test_characters_that_python_refuses_are_replaced(code: str, kind: str, ran: str) -> None:
    assert repaired(code) == ([kind], ran)


# --- layout


@pytest.mark.parametrize(
    ("kind", "code", "ran"),
    [
        ("dedent", "    x = 1\n    y = 2", "x = 1\ny = 2"),
        ("dedent", "\n  x = 1\n\n  if x:\n    y = 2\n", "\nx = 1\n\nif x:\n  y = 2\n"),
        ("dedent", "    x = '''\n  a\n'''\n    y = 2", "x = '''\n  a\n'''\ny = 2"),
        ("dedent", "\tx = 1\r\n\ty = 2\r\n", "x = 1\r\ny = 2\r\n"),
        ("align_first_line", "x = 1\n    y = 2\n    z = 3", "x = 1\ny = 2\nz = 3"),
        ("align_first_line", "# crop\n    x = 1\n    y = 2", "# crop\nx = 1\ny = 2"),
        ("align_first_line", "x = 1\n    y = 2\nz = 3", "x = 1\ny = 2\nz = 3"),
        ("expand_tabs", "if 1:\n\tx = 1\n        y = 2\n", "if 1:\n        x = 1\n        y = 2\n"),
        ("expand_tabs", "if 1:\n\tx = 1\n    y = 2\n", "if 1:\n    x = 1\n    y = 2\n"),
        ("autopep8", "def f():\n  x = 1\n   y = 2\n", "def f():\n    x = 1\n    y = 2\n"),
    ],
)
def test_the_layout_is_repaired(kind: str, code: str, ran: str) -> None:
    assert repaired(code) == ([kind], ran)


def test_tabs_that_may_mean_two_things_are_an_error() -> None:
    error_of("for x in y:\n    if a:\n        f()\n\tg()\n")


def test_several_repairs_are_a_chain() -> None:
    code = f"<code>\n```python\n{NBSP * 4}print(“a”)\n{NBSP * 4}print(2)\n```\n</code>"
    kinds, ran = repaired(code)
    assert kinds == ["strip_tag", "strip_fence", "plain_quotes", "invisible_characters", "dedent"]
    assert ran == 'print("a")\nprint(2)\n'


# --- what stays


@pytest.mark.parametrize(
    "code",
    [
        "for i in range(3):\n    x = i",
        "x=1 ;y  =  2",
        'print(f"{0.5:.2f}")',
        "s = '''\n a\n'''",
        "x = 1\r\nif x:\r\n\ty = 2  \r\n",
        f"print('{NBSP}“”\ufeff')",
        "if 1:\n  a = 1\nif 2:\n        b = 1",
        "",
    ],
)
def test_code_that_parses_is_not_touched(code: str) -> None:
    assert repaired(code) == ([], code)


@pytest.mark.parametrize("code", ["    x = 1", f"```python\n{CODE}```", "x = “a”", "\ufeffx = 1"])
def test_switched_off_it_is_plain_python(code: str) -> None:
    with pytest.raises(SyntaxError):
        parse_repaired(code, "<cell 0>", enabled=False)
    assert parse_repaired(CODE, "<cell 0>", enabled=False)[1] == []


@pytest.mark.parametrize(
    "code",
    [
        "  x\n" * 300,
        "x = " + "(" * 5000,
        "\t x\n \ty\n" * 500,
        "-" * 50_000 + "1",
        "a" + ".b" * 20_000,
        "  x\n" * 30_000,
    ],
    ids=["odd lines", "brackets", "tabs", "minus", "attributes", "many lines"],
)
def test_a_hard_text_takes_seconds_at_most(code: str) -> None:
    started = time.process_time()
    with contextlib.suppress(SyntaxError):
        parse_repaired(code, "<cell 0>")
    assert time.process_time() - started < 2


def test_a_lone_surrogate_is_no_code() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        parse_repaired("x = '\ud800'", "<cell 0>")


marks = ["```", "```python\n", "\n```\n", "~~~", "<code>", "</code>", "<python>", "\ufeff", NBSP, "\r\n", "\ud800", "é"]
lines = ["x = 1\n", "    y = 2\n", "\tz = 3\n", "if x:\n", "def f():\n", "'''", '"""', "print"]
pieces = st.sampled_from([*marks, *lines, *"\n \t'\"“”‘’\\#:()[]=\0\r"])
texts = st.one_of(st.lists(pieces, max_size=20).map("".join), st.text(max_size=60))


@settings(deadline=None, max_examples=fewer_quickly(200))
@given(texts)
def test_any_text_is_a_tree_or_an_error(code: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            plain = ast.dump(ast.parse(code))
        except (SyntaxError, ValueError):
            plain = None
        try:
            tree, edits = parse_repaired(code, "<cell 0>")
        except (SyntaxError, ValueError):
            assert plain is None
            return
        assert (plain is not None) == (not edits)
        assert_chained(code, edits)
        assert ast.dump(tree) == ast.dump(ast.parse(edits[-1].after)) if edits else plain


programs = st.sampled_from(
    [
        CODE,
        "x = '''\n```\n'''\n",
        "def f(a):\n    return [a]\n\n\nprint(f(1))\n",
        "s = '<code>'\nt = '“é”'\n",
        "# only\n",
    ]
)
wrappings = st.lists(
    st.sampled_from([("```python\n", "```"), ("~~~\n", "~~~"), ("<code>", "</code>"), ("\n<python>", "</python> \n")]),
    min_size=1,
    max_size=3,
)


@settings(deadline=None)
@given(programs, wrappings)
def test_wrapped_code_is_found_byte_for_byte(code: str, wrappings: list[tuple[str, str]]) -> None:
    wrapped = code
    for opening, closing in wrappings:
        wrapped = f"{opening}{wrapped}\n{closing}"
    kinds, ran = repaired(wrapped)
    assert ran.strip("\n") == code.strip("\n")
    assert set(kinds) <= {"strip_fence", "strip_tag"}


# --- folders of the lite tier


def test_paths_below_a_folder_are_moved_and_reported() -> None:
    tree = ast.parse("p = '/mnt/data/x.png'; q = '/mnt/database'")
    links = ImageLinks([], [])
    links.settle("/real")
    assert move_paths(ast.walk(tree), "… /mnt/data …", {"/mnt/data": "/real"}, links) == [
        SourceEdit("output_folder", "'/mnt/data/x.png'", "'/real/x.png'")
    ]
    assert ast.unparse(tree) == "p = '/real/x.png'\nq = '/mnt/database'"

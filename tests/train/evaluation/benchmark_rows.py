"""Rows as the public benchmarks have them, a few each, written by hand: their columns, no content of theirs.

``ANSWERS`` has answers to each row with their strict score, ``OFFICIAL`` with the score that the set's own code gives
them, derived from that code by hand. ``IMAGE`` stands for an image: bytes in a parquet struct, base64, or a file, as
``TEXT_IMAGES`` and ``FILES`` say.
"""

from typing import Any

IMAGE = object()
FILES = {"visulogic", "tir_bench", "visual_probe_easy", "visual_probe_medium", "visual_probe_hard"}
"""Images are paths."""
TEXT_IMAGES = {"mme_realworld", "mme_realworld_cn", "mme_realworld_lite", "mmvet_hard", "charxiv_descriptive"}
"""Images are base64."""

_MME = {
    "index": "1",
    "bytes": IMAGE,
    "question": "What is the colour of the bus?",
    "multi-choice options": ["(A) Red", "(B) Blue", "(C) White", "(D) Green", "(E) The image does not feature it."],
    "answer": "B",
    "category": "Perception/Remote Sensing",
    "l2-category": "color",
}
_MATHVISION = {
    "id": "4",
    "question": "Which figure is next?\n<image1>",
    "options": ["A", "B", "C", "D", "E"],
    "image": "images/4.jpg",
    "decoded_image": IMAGE,
    "answer": "D",
    "solution": None,
    "level": 2,
    "subject": "transformation geometry",
}
_PROBE = {
    "images": ["VisualProbe_X/1.png"],
    "doc_id": 1,
    "problem": "<image>\nWhat does the sign say?",
    "solution": "open daily",
    "data_source": "visual_probe",
}
_MATHVERSE = {
    "sample_index": "1",
    "problem_index": "1",
    "problem_version": "Text Dominant",
    "question": "The angle at B is ( )\nChoices:\nA:30°\nB:40°\nC:50°\nD:60°",
    "image": IMAGE,
    "answer": "B",
    "question_type": "multi-choice",
    "metadata": {"split": "testmini", "source": "x", "subject": "Plane Geometry", "subfield": "Angle"},
    "query_wo": "Please directly answer the question.\nQuestion: …",
    "query_cot": "…",
    "question_for_eval": "…",
}
_MATHVISTA = {
    "pid": "1",
    "question": "How long is the bar?",
    "image": "images/1.jpg",
    "decoded_image": IMAGE,
    "choices": None,
    "unit": None,
    "precision": 1.0,
    "answer": "1.2",
    "question_type": "free_form",
    "answer_type": "float",
    "metadata": {"task": "figure question answering", "source": "x"},
    "query": "Hint: Please answer the question requiring a floating-point number with one decimal place and provide "
    "the final value, e.g., 1.2, 1.3, 1.4, at the end.\nQuestion: How long is the bar? (Unit: cm)",
}
_CHOSEN = {"question": "Which?", "question_type": "multi_choice", "answer_type": "text", "precision": None}
_CHOSEN["query"] = (
    "Hint: Please answer the question and provide the correct option letter, e.g., A, B, C, D, at the end.\n"
    "Question: Which?\nChoices:\n(A) 145°\n(B) 135°"
)
_WEMATH = {
    "ID": 7,
    "split": "testmini",
    "knowledge concept": "Area of a square",
    "question": "What is the area?",
    "option": "A. 4 cm²; B. 8 cm²; C. 16 cm²; D. No correct answer",
    "answer": "C",
    "image_path": IMAGE,
    "key": "2steps_1",
    "question number": 1,
    "knowledge concept description": "…",
}
_HALLUSION = {
    "category": "VD",
    "subcategory": "chart",
    "visual_input": "1",
    "set_id": "0",
    "figure_id": "1",
    "sample_note": "x",
    "question_id": "0",
    "question": "Is the left bar the longest?",
    "gt_answer_details": "The left bar is the longest.",
    "gt_answer": "1",
    "filename": "./VD/1.png",
    "image": IMAGE,
}
_BLINK = {
    "idx": "val_Counting_1",
    "sub_task": "Counting",
    "question": "How many cups are there?",
    "prompt": "How many cups are there?\nSelect from the following choices.\n(A) 1\n(B) 2",
    "choices": ["1", "2"],
    "answer": "(B)",
    "explanation": "",
    **{f"image_{n}": IMAGE if n < 3 else None for n in range(1, 5)},
}
_DYNAMATH = {
    "id": "12",
    "question": "What is the slope of the line?",
    "image": "images/12.png",
    "decoded_image": IMAGE,
    "ground_truth": "0.667",
    "answer_type": "float",
    "subject": "graph theory",
    "knowledge_level": "high school",
}
_TIR = {"id": 1, "task": "instrument", "prompt": "What is read? A. 3 B. 4", "image_1": "data/1.png", "image_2": None}
_VSI = {"id": 1, "dataset": "arkitscenes", "scene_name": "41069025", "options": None}
_BLIND = {"image": IMAGE, "metadata": "{}"}
_MMMU = {
    "id": "validation_Art_1",
    "question": "What does <image 1> show?",
    "options": "['a cup', 'a <image 2>', 'a hat']",
    "explanation": "",
    **{f"image_{n}": IMAGE if n < 3 else None for n in range(1, 8)},
    "img_type": "['Paintings']",
    "answer": "B",
    "topic_difficulty": "Easy",
    "question_type": "multiple-choice",
    "subfield": "Art",
}
_CHARXIV = {
    "category": "cs",
    "year": "20",
    "figure_path": "1.jpg",
    "num_subplots": 1,
    "subplot_row": 0,
    "subplot_col": 0,
    "subplot_loc": None,
    **{f"descriptive_q{n}": n for n in range(1, 5)},
    **{f"descriptive_a{n}": "x" for n in range(1, 5)},
    "reasoning_q": "Which line ends highest?",
    "reasoning_a": "the red line",
    "reasoning_q_source": 1,
    "reasoning_a_type": 1,
    "image": IMAGE,
}
_OLYMPIAD = {
    "id": 1606,
    "question": "Determine all values of $T$.",
    "solution": ["…"],
    "final_answer": ["\\frac{1}{2}"],
    "context": None,
    "image_1": None,
    "modality": "Text-only",
    "difficulty": "Competition",
    "is_multiple_answer": False,
    "unit": None,
    "answer_type": "Numerical",
    "error": None,
    "question_type": "Open-ended",
    "subfield": "Algebra",
    "subject": "Math",
    "language": "English",
}

ROWS: dict[str, list[dict[str, Any]]] = {
    "mme_realworld": [_MME],
    "mme_realworld_cn": [{**_MME, "question": "公交车是什么颜色？", "category": "Reasoning/OCR with Complex Context"}],
    "mme_realworld_lite": [_MME],
    "realworldqa": [
        {
            "image": IMAGE,
            "question": "Which car is nearest?\nA. The red one.\nB. The blue one.\nC. The grey one.\n"
            "Please answer directly with only the letter of the correct option and nothing else.",
            "answer": "C",
        },
        {"image": IMAGE, "question": "How many signs are there?\nPlease answer directly with a number.", "answer": "2"},
    ],
    "mathvision": [
        _MATHVISION,
        {**_MATHVISION, "id": "5", "options": ["3", "4", "5"], "question": "How long is it?", "answer": "B"},
    ],
    "mathvision_mini": [{**_MATHVISION, "options": [], "question": "How many?", "answer": "12", "level": 5}],
    "mathvista": [
        _MATHVISTA,
        {
            **_MATHVISTA,
            "pid": "2",
            "query": "Hint: Please answer the question requiring an integer answer and provide the final value, e.g., "
            "1, 2, 3, at the end.\nQuestion: How many?",
            "precision": None,
            "answer": "7",
            "answer_type": "integer",
        },
        {**_MATHVISTA, **_CHOSEN, "pid": "3", "choices": ["145°", "135°"], "answer": "135°"},
        {**_MATHVISTA, **_CHOSEN, "pid": "4", "choices": ["yes", "no"], "answer": "yes"},
        {
            **_MATHVISTA,
            "pid": "5",
            "query": "Hint: Please answer the question requiring a Python list as an answer and provide the final "
            "list, e.g., [1, 2, 3], [1.2, 1.3, 1.4], at the end.\nQuestion: Between which years?",
            "precision": None,
            "answer": "[2007, 2008]",
            "answer_type": "list",
        },
    ],
    "mathverse": [
        _MATHVERSE,
        {**_MATHVERSE, "sample_index": "5", "problem_version": "Vision Only", "question": ""},
    ],
    "logicvista": [
        {
            "id": "v1",
            "question": "Which figures belong together? Select from A, B, C and D.",
            "answer": "A, C",
            "reasoning": "…",
            "image": IMAGE,
            "skill": "inductive",
            "broad_capability": "inductive",
            "specific_capability": "patterns",
            "imagesource": "x",
        }
    ],
    "wemath": [_WEMATH, {**_WEMATH, "key": "2steps_2", "option": "A.4;B.8;C.16", "question": "What is the side?"}],
    "visulogic": [
        {"image_path": "images/1.png", "question": "Which of A, B, C, D is next?", "label": "D", "id": "1", "tag": "x"}
    ],
    "hallusionbench": [_HALLUSION, {**_HALLUSION, "question_id": "1", "gt_answer": "0", "question": "The shortest?"}],
    "mmvet_hard": [
        {"index": "0", "image": IMAGE, "question": "What is x?", "answer": "-1<AND>-5", "category": "ocr_math"}
    ],
    "ocrbench": [
        {
            "dataset": "IIIT5K",
            "question": "what is written in the image?",
            "question_type": "Regular Text Recognition",
            "answer": ["CENTRE", "center"],
            "image": IMAGE,
        },
        {
            "dataset": "HME100k",
            "question": "Write the formula in LaTeX.",
            "question_type": "Handwritten Mathematical Expression Recognition",
            "answer": ["x ^ { 2 }"],
            "image": IMAGE,
        },
    ],
    "chartqa": [
        {"type": "human_test", "question": "How high is it?", "answer": "200", "image": IMAGE},
        {"type": "augmented_test", "question": "Which is it?", "answer": "France", "image": IMAGE},
        {"type": "human_test", "question": "How many?", "answer": "1000", "image": IMAGE},
    ],
    "blink": [_BLINK],
    "dynamath": [
        _DYNAMATH,
        {**_DYNAMATH, "ground_truth": "B", "answer_type": "multiple choice", "question": "Which? choices: (A) 1 (B) 2"},
        {**_DYNAMATH, "ground_truth": "yes", "answer_type": "text", "question": "Is it even?"},
    ],
    "tir_bench": [
        {**_TIR, "answer": "B", "meta_data": {}},
        {
            **_TIR,
            "id": 2,
            "task": "jigsaw",
            "answer": "[3, 1, 4, 2]",
            "image_2": "data/1.png",
            "meta_data": {"difficulty": 2},
        },
        {**_TIR, "id": 3, "task": "spot_difference", "answer": "[2, 5]", "meta_data": {}},
        {**_TIR, "id": 4, "task": "ocr", "answer": "mobi", "meta_data": {}},
        {**_TIR, "id": 5, "task": "word_search", "answer": "3, 12", "meta_data": {}},
        {**_TIR, "id": 6, "task": "math", "answer": 0.5, "meta_data": {}},
        {**_TIR, "id": 7, "task": "color", "prompt": "Which? A. 1 B. 2 C. 3", "answer": "AC", "meta_data": {}},
        {**_TIR, "id": 8, "task": "spot_difference", "answer": 4, "meta_data": {}},
    ],
    "vsi_bench": [
        {**_VSI, "question_type": "room_size_estimation", "question": "How large is the room?", "ground_truth": "20.0"},
        {
            **_VSI,
            "id": 2,
            "question_type": "object_rel_direction_easy",
            "question": "Where is the sofa?",
            "options": ["A. left", "B. right"],
            "ground_truth": "B",
        },
    ],
    "vlms_are_blind": [
        {
            **_BLIND,
            "task": "Line Plot Intersections",
            "prompt": "How many times do the lines cross? Answer with a number in curly brackets, e.g., {5}.",
            "groundtruth": "2",
        },
        {
            **_BLIND,
            "task": "Touching Circles",
            "prompt": "Are the circles touching? Answer with Yes/No.",
            "groundtruth": "No",
        },
        {**_BLIND, "task": "Circled Letter", "prompt": "Which letter is being circled?", "groundtruth": "o"},
        {
            **_BLIND,
            "task": "Counting Grid - Blank Grids",
            "prompt": "Count the rows and columns, for example, rows={5} columns={6}",
            "groundtruth": "4,5",
        },
        {**_BLIND, "task": "Olympic Counting - Circles", "prompt": "How many circles are there?", "groundtruth": "5"},
    ],
    "charxiv_reasoning": [_CHARXIV],
    "charxiv_descriptive": [
        {"index": "0", "image": IMAGE, "question": "What is the title?", "answer": "Loss by epoch", "qid": "1"}
    ],
    "mmmu": [
        _MMMU,
        {**_MMMU, "id": "validation_Art_2", "options": "[]", "answer": "['24/7', '3.429']", "question_type": "open"},
    ],
    "aime24": [{"id": 60, "problem": "Find $m+n$.", "solution": "…", "answer": "204", "url": "…", "year": "2024"}],
    "aime25": [{"id": "0", "problem": "Find the sum of all bases.", "answer": "70"}],
    "beyond_aime": [{"problem": "Find the remainder.", "answer": 173}],
    "math500": [
        {
            "problem": "Convert to polar coordinates.",
            "solution": "…",
            "answer": "\\left( 3, \\frac{\\pi}{2} \\right)",
            "subject": "Precalculus",
            "level": 2,
            "unique_id": "test/precalculus/807.json",
        }
    ],
    "amc": [{"id": 0, "problem": "How many?", "answer": 142.0, "url": "…"}],
    "minerva": [{"question": "What is the luminosity?", "answer": "7.5e7"}],
    "olympiadbench": [
        _OLYMPIAD,
        {**_OLYMPIAD, "id": 1607, "question": "How long is it?", "final_answer": ["2.5"], "error": "1e-1"},
    ],
    "mmstar": [
        {
            "index": 0,
            "question": "Which is it?\nOptions: A: The suitcase is on the book., B: The suitcase is beneath the cat.",
            "image": IMAGE,
            "answer": "A",
            "category": "instance reasoning",
            "l2_category": "cross-instance relation reasoning",
            "meta_info": {"source": "SEEDBench_IMG", "split": "", "image_path": ""},
        }
    ],
    **{f"visual_probe_{level}": [_PROBE] for level in ("easy", "medium", "hard")},
}
"""The sets that ``test_questions.py`` does not have."""

Scored = tuple[str, float]
ANSWERS: dict[str, list[tuple[Scored, ...]]] = {
    "mme_realworld": [(("B", 1), ("Blue", 1), ("A", 0))],
    "mme_realworld_cn": [(("(B)", 1), ("E", 0))],
    "mme_realworld_lite": [(("B. Blue", 1), ("D", 0))],
    "realworldqa": [(("C", 1), ("The grey one.", 1), ("A", 0)), (("2", 1), ("two", 1), ("3", 0))],
    "mathvision": [(("D", 1), ("E", 0)), (("4", 1), ("B. 4", 1), ("5", 0))],
    "mathvision_mini": [(("12", 1), ("21", 0))],
    "mathvista": [
        (("1.2", 1), ("1.23", 1), ("1.26", 0), ("long", 0)),
        (("7", 1), ("7.9", 1), ("8", 0)),
        (("135°", 1), ("B", 1), ("145°", 0)),
        (("yes", 1), ("B", 0), ("maybe", 0)),
        (("[2007, 2008]", 1), ("2007, 2008", 1), ("[2007, 2009]", 0)),
    ],
    "mathverse": [(("B", 1), ("40°", 1), ("C", 0)), (("B", 1), ("(B)", 1), ("C", 0))],
    "logicvista": [(("A, C", 1), ("C and A", 1), ("AC", 1), ("A", 0), ("A, B, C", 0))],
    "wemath": [(("C", 1), ("16 cm²", 1), ("A", 0)), (("C", 1), ("8", 0))],
    "visulogic": [(("D", 1), ("The answer is D.", 1), ("B", 0))],
    "hallusionbench": [(("Yes", 1), ("Yes, it is.", 1), ("No", 0), ("yes or no", 0)), (("no", 1), ("1", 0))],
    "mmvet_hard": [(("-1<AND>-5", 1), ("something else", 0))],
    "ocrbench": [(("The sign says Centre", 1), ("CENTER", 1), ("CENT", 0)), (("x^{2}", 1), ("x^{3}", 0))],
    "chartqa": [
        (("210", 1), ("190%", 0), ("189", 0), ("France", 0)),
        (("france", 1), ("Frances", 0)),
        (("1,000", 1), ("$1000", 1)),
    ],
    "blink": [(("B", 1), ("2", 1), ("A", 0))],
    "dynamath": [
        (("0.667", 1), ("0.6665", 1), ("2/3", 1), ("0.67", 0)),
        (("B", 1), ("2", 1), ("A", 0)),
        (("Yes", 1), ("no", 0)),
    ],
    "tir_bench": [
        (("B", 1), ("A", 0)),
        (("3, 1, 4, 2", 1), ("[3, 1, 2, 4]", 0.5), ("[3, 1]", 0)),
        (("[5, 2]", 1), ("2, 5, 7", 2 / 3), ("1", 0)),
        (("It says mobi.", 1), ("mob", 0)),
        (("(3, 12)", 1), ("12, 3", 0)),
        (("0.5", 1), ("0.6", 0)),
        (("A, C", 1), ("A", 0)),
        (("4", 1), ("5", 0)),
    ],
    "vsi_bench": [(("20", 1), ("21.5", 0.9), ("30", 0), ("large", 0)), (("B", 1), ("left", 0))],
    "vlms_are_blind": [
        (("{2}", 1), ("2", 1), ("{3}", 0)),
        (("No", 1), ("No, they do not touch.", 1), ("Yes", 0)),
        (("o", 1), ("{o}", 1), ("e", 0)),
        (("rows={4} columns={5}", 1), ("4x5", 1), ("rows={5} columns={4}", 0)),
        (("5", 1), ("{5}", 1), ("15", 0)),
    ],
    "charxiv_reasoning": [(("The red line.", 1), ("the blue line", 0))],
    "charxiv_descriptive": [(("Loss by epoch", 1), ("Loss", 0))],
    "mmmu": [(("B", 1), ("C", 0)), (("24/7", 1), ("3.429", 1), ("3.5", 0))],
    "aime24": [(("204", 1), ("\\boxed{204}", 1), ("205", 0))],
    "aime25": [(("70", 1), ("49", 0))],
    "beyond_aime": [(("173", 1), ("172", 0))],
    "math500": [(("\\left(3, \\frac{\\pi}{2}\\right)", 1), ("(3, \\pi)", 0))],
    "amc": [(("142", 1), ("141", 0))],
    "minerva": [(("7.5e7", 1), ("75000000", 1), ("7.5e6", 0))],
    "olympiadbench": [(("1/2", 1), ("\\frac{1}{3}", 0)), (("2.5", 1), ("2.7", 0))],
    "mmstar": [(("A", 1), ("The suitcase is on the book.", 1), ("B", 0))],
    **{f"visual_probe_{level}": [(("open daily", 1), ("closed", 0))] for level in ("easy", "medium", "hard")},
}

_MME_ANSWERS = (
    *(("B", 1), ("(B)", 1), ("Blue", 1), ("blue", 1), ("b", 1), ("The answer is B", 1), ("The best answer is (B).", 1)),
    *(("The bus is blue", 0), ("A blue bus", 0), ("Car", 0), ("Red", 0), ("D, not B", 0), ("Either B or A", 0)),
    ("it is the one that has the colour of the sky, blue", 0),
)
"""The first capital of A to E counts, else the first option that contains the answer."""

OFFICIAL: dict[str, list[tuple[Scored, ...]]] = {
    "mme_realworld": [_MME_ANSWERS],
    "mme_realworld_cn": [(("(B)", 1), ("E", 0), ("蓝", 0))],
    "mme_realworld_lite": [_MME_ANSWERS],
    "mathvision": [
        (
            ("D", 1),
            ("(D)", 1),
            ("d", 1),
            ("D.", 1),
            ("The answer is D", 1),
            ("E", 0),
            ("figure D", 0),
            ("Answer: D.", 1),
            ("**D**", 0),
        ),
        (("B", 1), ("4", 1), ("4.0", 1), ("4.001", 1), ("(4)", 1), ("12/3", 1), ("B. 4", 0), ("four", 0), ("5", 0)),
    ],
    "mathvision_mini": [(("12", 1), ("12.004", 1), ("x = 12", 1), ("12 units", 1), ("21", 0), ("12.01", 0))],
    "mathvista": [
        (("1.2", 1), ("1.23", 1), ("1.25", 1), ("1.26", 0), ("1.2 cm", 0), ("6/5", 0), ("1.2.", 0)),
        (("7", 1), ("7.9", 1), ("8", 0), ("seven", 0), ("7 cups", 0)),
        (("B", 1), ("(B)", 1), ("(b) 135", 1), ("135°", 1), ("135", 1), ("145°", 0), ("b", 0), ("I do not know", 0)),
        (("yes", 1), ("A", 1), ("Yes", 1), ("maybe", 1), ("no", 0), ("B", 0)),
        (("[2007, 2008]", 1), ("2007, 2008", 0), ("[2007,2008]", 0)),
    ],
    "wemath": [
        (("C", 1), ("C. 16 cm²", 1), ("Answer: C", 1), ("<C>", 1), ("Circle", 1), ("16 cm²", 0), ("c", 0), ("(C)", 0)),
        (("C", 1), ("8", 0)),
    ],
    "chartqa": [
        (("210", 1), ("190%", 0), ("20000%", 1), ("189", 0), ("200 people", 0)),
        (("france", 1), ("France.", 0), ("Frances", 0)),
        (("1000.", 1), ("1,000", 0), ("$1000", 0)),
    ],
    "dynamath": [
        (
            ("0.667", 1),
            ("0.6665", 1),
            ("0.667 m", 1),
            ("0.2123π", 1),
            ("2/3", 0),
            ("0.67", 0),
            ("about 0.667", 0),
            ("0.667.", 0),
        ),
        (("B", 1), ("(B)", 1), ("B: 2", 1), ("AB", 1), ("2", 0), ("The answer is B", 0), ("A", 0)),
        (("yes", 1), ("yes, it is", 1), ("Yes", 0), ("no", 0)),
    ],
    "olympiadbench": [
        (("\\frac{1}{2}", 1), ("1/2", 1), ("\\frac{1}{3}", 0)),
        (("2.5", 1), ("2.45", 1), ("$2.6$", 1), ("250", 1), ("0.025", 1), ("250%", 1), ("2.7", 0), ("-2.5", 0)),
    ],
    "mmmu": [
        (
            *(("B", 1), ("(B)", 1), ("B.", 1), ("A or B", 1), ("(A) is wrong, (B) is right", 1), ("C", 0), ("b", 0)),
            *(("B, because of the shape", 0), ("(B) is wrong, it is (A)", 0), ("It is certainly not B but C", 0)),
            ("It shows a hat and nothing else here", 0),
        ),
        (
            ("24/7", 1),
            ("3.429", 1),
            ("3.43", 1),
            ("It is 24/7", 1),
            ("x = 3.43", 1),
            ("3.43 or 5", 1),
            ("3.43, 5", 0),
            ("13.429", 0),
            ("-3.429", 0),
            ("3.5", 0),
        ),
    ],
    "mmstar": [
        (
            *(("A", 1), ("(A)", 1), ("a", 1), ("Option A", 1), ("The answer is A", 1), ("A: The suitcase", 1)),
            *(("All of them", 1), ("The suitcase is on the book.", 0), ("**A**", 0), ("B", 0), ("Option B", 0)),
        )
    ],
    "tir_bench": [
        (("B", 1), ("(B)", 1), ("**B**", 1), ("4", 1), ("Band", 1), ("3", 0), ("A", 0), ("cup", 0)),
        (("3, 1, 4, 2", 1), ("4 pieces: 3, 1, 4, 2", 1), ("[3, 1, 2, 4]", 0.5), ("[3, 1]", 0), ("3; 1; 4; 2", 0)),
        (("[5, 2]", 1), ("2, 5, 7", 2 / 3), ("1", 0)),
        (("It says mobi.", 1), ("mob", 0), ("MOBI", 0)),
        (("(3, 12)", 1), ("3, 12, 5", 1), ("12, 3", 0), ("row 3, column 12", 0)),
        (("0.5", 1), ("Answer: 0.5", 1), ("0.6", 0)),
        (("AC", 1), ("CA", 1), ("A, C", 0), ("A", 0)),
        (("4", 1), ("4 differences", 1), ("5", 0)),
    ],
    "vsi_bench": [
        (
            *(("20", 1), ("20 m", 1), ("21", 1), ("21.5", 0.9), ("19", 1), ("30", 0.1), ("10", 0.1), ("30.1", 0)),
            *(("22", 0.9), ("24", 0.6), ("large", 0), ("twenty", 0), ("about 20", 0)),
        ),
        (("B", 1), ("b", 1), ("B.", 1), ("B. right", 1), ("(B)", 0), ("right", 0), ("A", 0)),
    ],
    "vlms_are_blind": [
        (("{2}", 1), ("It is {2}.", 1), ("2", 0), ("{ 2 }", 0), ("{{2}}", 0), ("{3} {2}", 0)),
        (("No", 1), ("No, they do not touch.", 1), ("Not at all", 1), ("Yes, no doubt", 1), ("Yes", 0)),
        (("{o}", 1), ("o", 0), ("{O}", 0), ("{e}", 0)),
        (("rows={4} columns={5}", 1), ("(4, 5)", 1), ("columns={5} rows={4}", 1), ("4x5", 0), ("4,5", 0)),
        (("5", 1), ("{5}", 1), ("15", 1), ("4", 0)),
    ],
}
"""The sets whose code scores otherwise than ``--strict``; of the others the official score is the strict one."""

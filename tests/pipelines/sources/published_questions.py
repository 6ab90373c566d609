"""Questions with an object at the top, or in two files: VQA, TextVQA, DocVQA, GQA, MathVista and others."""

from __future__ import annotations

from pathlib import Path

from tests.pipelines.sources.published_files import Shapes, picture, put

QUESTIONS = Shapes()
published = QUESTIONS.add


@published("VQA v2", ("What color is the square?", "red", 1), ("How many squares?", "1", 1))
def _(folder: Path) -> None:
    head = {"info": {"version": "2.0"}, "data_type": "mscoco", "data_subtype": "train2014", "license": {"name": "CC"}}
    questions = [
        {"image_id": 458752, "question": "What color is the square?", "question_id": 458752000},
        {"image_id": 458752, "question": "How many squares?", "question_id": 458752001},
    ]
    annotations = [
        {
            "question_type": "what color is the",
            "multiple_choice_answer": answer,
            "answers": [
                {"answer": answer if n < 7 else other, "answer_confidence": "yes", "answer_id": n + 1}
                for n in range(10)
            ],
            "image_id": 458752,
            "answer_type": "other",
            "question_id": question["question_id"],
        }
        for question, answer, other in zip(questions, ("red", "1"), ("crimson", "2"), strict=True)
    ]
    task = {"task_type": "Open-Ended", "questions": questions}
    put(folder, {"v2_OpenEnded_mscoco_train2014_questions.json": {**head, **task}})
    put(folder, {"v2_mscoco_train2014_annotations.json": {**head, "annotations": annotations}})
    put(folder, {"train2014/COCO_train2014_000000458752.jpg": picture()})


@published("TextVQA", ("what is the brand?", "nokia", 1))
def _(folder: Path) -> None:
    row = {
        "question": "what is the brand?",
        "image_id": "0054c91397f2fe05",
        "image_classes": ["Mobile phone"],
        "flickr_original_url": "https://photos.example.org/2891/a_o.jpg",
        "flickr_300k_url": "https://photos.example.org/3/2891/a_z.jpg",
        "image_width": 160,
        "image_height": 120,
        "answers": ["nokia"] * 10,
        "question_tokens": ["what", "is", "the", "brand"],
        "question_id": 0,
        "set_name": "train",
    }
    content = {"dataset_type": "train", "dataset_name": "textvqa", "dataset_version": "0.5.1", "data": [row]}
    put(folder, {"TextVQA_0.5.1_train.json": content, "train_images/0054c91397f2fe05.jpg": picture()})


@published("DocVQA", ("what is the date mentioned?", "1/8/93", 1))
def _(folder: Path) -> None:
    row = {
        "questionId": 337,
        "question": "what is the date mentioned?",
        "question_types": ["handwritten", "form"],
        "image": "documents/xnbl0037_1.png",
        "docId": 279,
        "ucsf_document_id": "xnbl0037",
        "ucsf_document_page_no": "1",
        "answers": ["1/8/93"],
        "data_split": "train",
    }
    content = {"dataset_name": "SP-DocVQA", "dataset_version": "1.0", "dataset_split": "train", "data": [row]}
    put(folder, {"train_v1.0_withQT.json": content, "documents/xnbl0037_1.png": picture()})


@published("GQA", ("Is it overcast?", "no", 1))
def _(folder: Path) -> None:
    row = {
        "semantic": [{"operation": "select", "dependencies": [], "argument": "scene"}],
        "entailed": ["02930160"],
        "equivalent": ["02930152"],
        "question": "Is it overcast?",
        "imageId": "2405722",
        "isBalanced": True,
        "groups": {"global": None, "local": "13-weather_overcast"},
        "answer": "no",
        "semanticStr": "select: scene->verify weather: overcast [0]",
        "annotations": {"answer": {}, "question": {}, "fullAnswer": {}},
        "types": {"detailed": "weatherVerify", "semantic": "global", "structural": "verify"},
        "fullAnswer": "No, it is clear.",
    }
    put(folder, {"questions1.2/train_balanced_questions.json": {"02930152": row}, "images/2405722.jpg": picture()})


@published("MathVista", ("What fraction?", "1/2", 1), ("Which one?", "B", 1))
def _(folder: Path) -> None:
    common = {
        "unit": None,
        "precision": 1.0,
        "metadata": {"category": "general-vqa", "split": "testmini"},
        "query": "Hint: …",
    }
    rows = {
        "1": {**common, "question": "What fraction?", "image": "images/1.jpg", "choices": None, "answer": "1/2"},
        "2": {**common, "question": "Which one?", "image": "images/1.jpg", "choices": ["No", "Yes"], "answer": "Yes"},
    }
    for pid, row in rows.items():
        row |= {"pid": pid, "question_type": "free_form", "answer_type": "text"}
    put(folder, {"testmini.json": rows, "images/1.jpg": picture()})


@published("Visual Genome", ("What color is it?", "Red.", 1))
def _(folder: Path) -> None:
    pair = {
        "a_objects": [],
        "question": "What color is it?",
        "image_id": 1,
        "qa_id": 986769,
        "answer": "Red.",
        "q_objects": [],
    }
    put(folder, {"question_answers.json": [{"id": 1, "qas": [pair]}], "VG_100K/1.jpg": picture()})


@published("A-OKVQA", ("What is it?", "B", 1))
def _(folder: Path) -> None:
    row = {
        "split": "train",
        "image_id": 299207,
        "question_id": "22MexNkBPpdZGX6sxbxVBH",
        "question": "What is it?",
        "choices": ["dot", "square", "line", "ring"],
        "correct_choice_idx": 1,
        "direct_answers": ["square"] * 10,
        "difficult_direct_answer": False,
        "rationales": ["It has four sides."],
    }
    put(folder, {"aokvqa_v1p0_train.json": [row], "train2017/000000299207.jpg": picture()})

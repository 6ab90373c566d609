"""Answers inside sentences: which words may stand before and behind one; yes and no in a sentence."""

import pytest

from darkroom.pipelines.verification.grading.sentences import MAX_CORES, cores, same_polarity, stem

COLOUR, BIRDS, TOTAL, LENGTH = (
    "What colour is the car?",
    "How many birds are there?",
    "What is the total?",
    "What is the length?",
)
SOLD, WROTE, ROOM, CHAPTER = "How many were sold in 2015?", "Who wrote it?", "Which room is it?", "Which chapter is it?"
OPEN, FASTER, MORE = (
    "Is it open or closed?",
    "Is the red car or the blue one faster?",
    "How many more has the red car than the blue one?",
)
CAT, LARGER, LICHT = "Is the cat bigger than the dog?", "Is A larger than B?", "Ist das Licht an?"
PERROS = "¿Cuántos perros hay?"


@pytest.mark.parametrize(
    ("answer", "question", "parts"),
    [
        # a subject and a verb, in words of the question or such as say nothing
        ("The car is red.", COLOUR, ["red"]), ("The dog is red.", COLOUR, []), ("The car is red", "Which?", []),
        ("it's red", COLOUR, ["red"]),
        ("There are 3 birds", BIRDS, ["3", "3 birds", "There are 3"]), ("with red", "Which?", []),
        ("on the table", "On what is it?", ["the table"]),
        # behind it a verb or a preposition, or what is counted
        ("3 birds", BIRDS, ["3"]), ("3 dogs", BIRDS, []), ("3 birds are there", BIRDS, ["3", "3 birds"]),
        ("red in colour", COLOUR, ["red", "red in"]),
        ("12 is the length", LENGTH, ["12"]), ("12 cm is the length", LENGTH, ["12 cm"]),
        ("12 of them", "How many are there?", ["12"]),
        ("12 of", "How many are there?", []), ("3 a", "How many?", []), ("42 more", "How many more are there?", ["42"]),
        ("12 birds are on branch 3", "How many birds are on branch 3?", ["12 birds", "12 birds are"]),
        ("12 of 20 birds", BIRDS, ["12 of 20"]), ("12 birds of 20", BIRDS, []), ("two birds", BIRDS, ["two"]),
        ("red colour", "Which colour is the car?", ["red"]), ("red a", "Which colour is a car?", []),
        # a mark
        ("Total: 12", TOTAL, ["12"]), ("Sum: 12", TOTAL, []), ("Total 5: 12", TOTAL, ["5: 12"]),
        ("a: b: 12", "What is a?", ["b: 12"]),
        ("total = 12", TOTAL, ["12", "= 12"]), ("In 2015, 12", SOLD, ["12", "2015, 12"]),
        ("In 2014, 12", SOLD, ["2014, 12"]), ("By 2015, 12", SOLD, []),
        # who did it, and what was done
        ("Austen wrote it", WROTE, ["Austen"]),
        ("It was written by Austen", WROTE, ["Austen", "by Austen", "written by Austen"]),
        ("Austen painted it", WROTE, []), ("It was painted by Austen", WROTE, ["painted by Austen"]),
        ("He opens the door", "What is he doing?", ["opens the door"]), ("He opens the door", "Which?", []),
        # codes behind what they are of
        ("Room 0042", ROOM, ["0042"]), ("House 0042", ROOM, []), ("Room no 5", ROOM, []),
        ("Chapter ix", CHAPTER, ["ix"]),
        ("Chapter red", CHAPTER, []), ("Option A", "Which?", ["A"]), ("with A", "Which?", ["A"]),
        # what the question offers stands behind "than" or ", not" only
        ("closed, not open", OPEN, ["closed"]), ("closed, not ajar", OPEN, []), ("closed, open", OPEN, []),
        ("The red car is faster than the blue one", FASTER, ["The red car"]), ("The blue one has 5", MORE, []),
        ("5 more than the blue one", MORE, ["5"]),
        ("The red car is faster than the green one", FASTER, []), ("red is faster than green", FASTER, []),
        ("5 more than the green one", MORE, []),
        ("The left door is open", "Is the left or the right door open?", ["The left door"]),
        # a reason, unless something hedges or denies
        ("red because it shines", COLOUR, ["red"]), ("red, which is nice", COLOUR, ["red"]),
        ("red, perhaps because it shines", COLOUR, []),
        ("Bergen (2,250 mm)", "Which city?", ["Bergen"]), ("Bergen, with 2,250 mm", "Which city?", ["Bergen"]),
        # questions are no answers
        ("Is it red?", COLOUR, []), ("It is red? yes", COLOUR, ["red? yes"]), ("red is it?", COLOUR, []),
        # words of other languages where the question is in one
        ("hay tres", PERROS, ["tres"]), ("los perros son tres", PERROS, ["tres", "son tres"]),
        ("los perros son tres", "How many?", []),
        ("zwei Autos es", "Wie viele Autos sind da?", ["zwei"]),
        ("zwei Autos sind da", "Wie viele Autos sind da?", ["zwei", "zwei Autos", "zwei Autos sind"]),
        ("tres perros hay", PERROS, ["tres", "tres perros"]), ("tres perros hay", "How many?", []),
    ],
)  # fmt: skip
def test_an_answer_stands_among_words_that_say_nothing_new(answer, question, parts):
    whole, *inner = cores(answer, question)
    assert whole.rstrip(".") == answer.rstrip(".")
    assert inner == parts


def test_without_reasons_an_answer_is_read_to_its_end():
    assert list(cores("closed, not open", OPEN, with_reason=False)) == ["closed, not open"]
    assert list(cores("red because it shines", COLOUR, with_reason=False)) == ["red because it shines"]


@pytest.mark.parametrize(("n_words", "is_read"), [(40, True), (41, False)])
def test_a_sentence_has_at_most_forty_words(n_words, is_read):
    parts = list(cores(" ".join(["is"] * (n_words - 1) + ["red"]), COLOUR))
    assert len(parts) == (MAX_CORES if is_read else 1)
    assert MAX_CORES == 24


@pytest.mark.parametrize(("n_chars", "n_parts"), [(240, 2), (241, 1)])
def test_a_sentence_has_at_most_240_characters(n_chars, n_parts):
    assert len(list(cores("The car is ".ljust(n_chars, "r"), COLOUR))) == n_parts
    assert same_polarity("yes".ljust(n_chars), "yes", question="Is it open?") is (True if n_parts == 2 else None)
    reason = "red because it is ".ljust(n_chars, "s")
    assert ("red" in cores(reason, COLOUR)) is (n_parts == 2)


@pytest.mark.parametrize(("n_chars", "is_read"), [(960, True), (961, False)])
def test_words_of_a_long_question_are_not_looked_at(n_chars, is_read):
    assert ("red" in cores("The car is red", COLOUR.ljust(n_chars))) is is_read


@pytest.mark.parametrize(
    ("words", "one"),
    [
        ("play plays playing played", "play"), ("box boxes", "box"), ("city cities", "city"),
        ("carry carries carried", "carry"),
        ("stop stopped stopping", "stop"), ("fall falling falls", "fall"), ("filled", "fill"),
        ("missing missed", "miss"),
        ("held hold holding", "hold"), ("house houses", "hous"), ("children child child's", "child"),
        ("colors colour", "colour"),
        # no ending, or too little before it
        ("is", "is"), ("bus", "bus"), ("as", "as"), ("red", "red"), ("bed", "bed"), ("ring", "ring"), ("sing", "sing"),
        ("the", "the"), ("be", "be"), ("see", "see"),
        ("bees", "bee"), ("ties", "tie"), ("tied", "tied"), ("abed", "abed"), ("abced", "abc"), ("tree", "tre"),
    ],
)  # fmt: skip
def test_a_word_without_its_ending_is_one(words, one):
    assert {stem(word) for word in words.split()} == {one}


PERSON, DOOR = "Is there a person in it?", "Is the door open?"


@pytest.mark.parametrize(
    ("answer", "question", "said"),
    [
        # alone, or before a reason
        ("Yes", DOOR, "yes"), ("No.", DOOR, "no"), ("Yeah", DOOR, "yes"), ("Nope", DOOR, "no"), ("True", DOOR, "yes"),
        ("incorrect", DOOR, "no"),
        ("Yes because it is open", DOOR, "yes"), ("No because it is not open", DOOR, "no"),
        ("Yes! It is open.", DOOR, "yes"),
        # before a sentence that says the same
        ("No, there is no person in it.", PERSON, "no"), ("Yes, there is a person", PERSON, "yes"),
        ("No; not open", DOOR, "no"),
        ("No, the door is closed", DOOR, "no"), ("No, it is closed", DOOR, "no"), ("No, a dog is there", PERSON, "no"),
        # in a sentence alone
        ("The door is open", DOOR, "yes"), ("It is open", DOOR, "yes"), ("The door is not open", DOOR, "no"),
        ("There is a person in it", PERSON, "yes"), ("There is no person in it", PERSON, "no"),
        # two things, another thing, nothing
        ("No, there is a person in it", PERSON, ""), ("Yes, there is no person", PERSON, ""),
        ("No, the door is open", DOOR, ""),
        ("yes no", DOOR, ""), ("Yes, no", DOOR, ""), ("Yes or no", DOOR, ""), ("Yes, probably", DOOR, ""),
        ("Yes, it is red", DOOR, ""),
        ("It is", DOOR, ""), ("", DOOR, ""), ("The window is open", DOOR, ""), ("The door is not not open", DOOR, ""),
        ("No, is closed", DOOR, ""), ("Yes, a dog is there", PERSON, ""), ("No, closed", DOOR, ""),
    ],
)  # fmt: skip
def test_yes_and_no_are_what_the_whole_sentence_says(answer, question, said):
    assert [same_polarity(answer, expected, question=question) for expected in ("yes", "no")] == [
        said == "yes",
        said == "no",
    ]


@pytest.mark.parametrize(
    ("answer", "expected", "question"),
    [
        ("yes", "maybe", DOOR), ("yes?", "yes", DOOR), ("yes", "yes", "Is it open or closed?"),
        ("yes", "yes", "Is it not open?"),
        ("yes", "yes, it is", DOOR),
    ],
)  # fmt: skip
def test_where_neither_is_asked_for_nothing_is_compared(answer, expected, question):
    assert same_polarity(answer, expected, question=question) is None


@pytest.mark.parametrize(
    ("answer", "question", "said"),
    [
        ("The cat is bigger than the dog", CAT, "yes"), ("The dog is bigger than the cat", CAT, "no"),
        ("No, the dog is bigger than the cat.", CAT, "no"), ("No, the cat is bigger than the dog.", CAT, ""),
        ("Yes, the dog is bigger than the cat.", CAT, ""), ("No, maybe the dog is bigger than the cat.", CAT, ""),
        ("The dog is not bigger than the cat", CAT, "yes"), ("Yes, the cat is bigger.", CAT, "yes"),
        ("A is larger than B", LARGER, "yes"), ("B is larger than A", LARGER, "no"),
        ("B is not larger than A", LARGER, "yes"),
    ],
)  # fmt: skip
def test_a_comparison_turned_round_says_the_opposite(answer, question, said):
    assert [each for each in ("yes", "no") if same_polarity(answer, each, question=question)] == [said] * bool(said)


@pytest.mark.parametrize(
    ("answer", "expected", "question", "same"),
    [
        ("Ja.", "ja", LICHT, True), ("Ja, das Licht ist an.", "ja", LICHT, True), ("Nein", "ja", LICHT, False),
        ("Ja, das Licht ist nicht an.", "ja", LICHT, False), ("Ja, es ist rot.", "ja", LICHT, False),
        ("Nein, das Licht ist nicht an.", "nein", LICHT, True), ("Nein, das Licht ist an.", "nein", LICHT, False),
        ("Nein, es ist aus.", "nein", LICHT, True), ("Nein, vielleicht aus.", "nein", LICHT, False),
        ("Ja?", "ja", LICHT, False), ("Licht", "ja", LICHT, None),
        ("Oui, le chat dort.", "oui", "Le chat dort-il ?", True),
        ("Sì", "si", "È aperto?", True),
    ],
)  # fmt: skip
def test_yes_and_no_of_other_languages_agree_with_their_sentence(answer, expected, question, same):
    assert same_polarity(answer, expected, question=question) is same


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("True, the lines meet.", "true", True), ("False, the lines do not meet.", "false", True),
        ("False, the lines meet.", "false", False), ("true", "false", False), ("It is true", "true", None),
    ],
)  # fmt: skip
def test_true_and_false_are_of_the_claim_behind_them(answer, expected, same):
    assert same_polarity(answer, expected, question="True or false: the lines meet.") is same

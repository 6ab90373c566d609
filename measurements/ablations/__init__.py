"""The papers' ablations in miniature: named, seeded experiments with a tiny model, the seed as the unit.

    python -m measurements.ablations --list
    python -m measurements.ablations thyme_table_6 data/ablations          # trains, evaluates, prints a table
    python -m measurements.ablations --docs FOLDER data/ablations          # FOLDER/reproductions*.md and figures

An experiment (``catalog/``, a module per paper) has arms; an arm is one model, trained from others (``models.py``) on
datasets of ``world/``, and how it is evaluated (``evaluations.py``). Every arm of every seed leaves one JSON file
(``results.py``); what is complete is not made again, and arms share the models that they have in common. Differences
are taken within a seed (``statistics.py``).
"""

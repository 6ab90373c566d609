"""The world of the experiments: questions that differ in what is looked at, and so small that a tiny model learns them.
The demo has its street signs (``pipelines/demo/street_sign_datasets.py``): their colour is asked in a region. Besides:

    looks.py         their colour from close up, or from afar and from near
    needed_looks.py  the colours of one sign or of two: how many looks are needed differs
    sums.py          the sum of two numbers, which code computes
    films.py         the colour of a sign in one frame of a film
    scripts.py       who writes the rows of the families that are asked in few words
    datasets.py      the datasets by name, and how they come about

What is left to learn: copy numbers into code, run it, and tell one of five colours from what it shows. Rows go the way
of all rows: intake, a family (prepared, drafted, executed, checked, kept), ``publish``. Questions with labels are
shipped as rows of the RL dataset.
"""

from measurements.ablations.world.datasets import ROWS, Rows, rows_below, ship
from measurements.ablations.world.looks import named_regions

__all__ = ["ROWS", "Rows", "named_regions", "rows_below", "ship"]

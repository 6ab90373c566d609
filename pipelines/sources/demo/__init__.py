"""The embedded source ``demo``: real pictures, prose, tables and problems that PyPI packages carry, composed and asked.

No download, no key, no file of ours: scikit-image's and scikit-learn's photographs on drawn walls (``scenes``) and as
they are (``photographs``, ``overviews``) or turned and underexposed (``snapshots``), set and scanned ``pages``,
``charts`` of bundled tables, ``maths`` problems, ``diagrams`` and ``figures`` (problems to be read off a picture, and
to be drawn), printed ``notices``, ``films`` over the photographs, and ``damaged`` files that
intake must quarantine.
"""

from pipelines.sources.demo.source import DEMO_VERSION, DemoSource

__all__ = ["DEMO_VERSION", "DemoSource"]

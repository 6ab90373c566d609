"""Inspection of what was built: the audit of datasets, the history of a row, the gallery, pages and charts."""

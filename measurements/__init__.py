"""Measurements of the sandbox: what it costs against plain Python, and what it promises to stay below."""

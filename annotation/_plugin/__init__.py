"""Code that Label Studio loads: this folder is on its PYTHONPATH, and nothing here imports the rest of Darkroom."""

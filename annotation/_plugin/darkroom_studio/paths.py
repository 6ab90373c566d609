"""Label Studio's own folder on the path, as its command puts it: its modules import each other as top-level ones.

In PYTHONPATH it would also bring its ``sitecustomize``, which wants a test tool.
"""

import sys
from pathlib import Path

import label_studio

FOLDER = str(Path(label_studio.__file__).parent)
if FOLDER not in sys.path:
    sys.path.insert(0, FOLDER)

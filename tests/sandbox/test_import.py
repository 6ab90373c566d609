"""`import darkroom.sandbox` needs little: none of the other packages, and of the core installation two libraries."""

import json
import subprocess
import sys

PROGRAM = """
import json, sys
before = set(sys.modules)
import darkroom.sandbox
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_the_import_loads_no_other_package_and_two_libraries() -> None:
    loaded = json.loads(subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True).stdout)
    others = {name for name in loaded if name.startswith("darkroom.") and not name.startswith("darkroom.sandbox")}
    assert not others
    libraries = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    assert libraries == {"darkroom", "PIL", "packaging"}

"""Without mmengine, importing the package takes hardly longer than importing torch."""

import json
import subprocess
import sys

CODE = """
import json, sys
sys.modules['mmengine'] = None  # as where it is not installed
import torch
before = set(sys.modules)
import sn_openmmlab
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_it_imports_nothing_but_its_own_modules_after_torch(tool_env, tmp_path):
    done = subprocess.run(
        [sys.executable, '-c', CODE], env=tool_env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    loaded = {name.split('.')[0] for name in json.loads(done.stdout)}

    assert loaded - set(sys.stdlib_module_names) == {'sn_openmmlab'}

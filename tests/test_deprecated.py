"""Names of version 0.2 that are deprecated still work, and say so."""

import subprocess
import sys


def test_the_modules_of_experiments_are_those_of_lab() -> None:
    code = """
from tightrope.experiments.history import in_units
from tightrope.experiments.studies.conduct import conducted
from tightrope.experiments.studies.engines import Engine
from tightrope.experiments.studies.study import Study
import tightrope.experiments.run
import tightrope.lab.history, tightrope.lab.runner, tightrope.lab.run, tightrope.lab.study
assert in_units is tightrope.lab.history.in_units and conducted is tightrope.lab.runner.conducted
assert Study is tightrope.lab.study.Study and tightrope.experiments.run is tightrope.lab.run
"""
    done = subprocess.run([sys.executable, "-W", "default", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("DeprecationWarning") == 1 and "tr.Study, or tightrope.lab" in done.stderr

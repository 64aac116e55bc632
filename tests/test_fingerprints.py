"""The same seed gives the same bits, whatever the CPU has and however many threads there are.

`python -m tests.fingerprints` names what differs; the same under one of `ENVIRONMENTS` says on what it depends.
"""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fingerprints import differing, fingerprints, stored

#: What numpy chooses by the CPU, and has here.
_numpy = importlib.import_module("numpy._core._multiarray_umath")
DISPATCHED = [name for name in _numpy.__cpu_dispatch__ if _numpy.__cpu_features__[name]]
AVX512 = [name for name in DISPATCHED if name.startswith(("AVX512", "X86_V4"))]

#: Variables under which every fingerprint has to be the same.
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "v2": {"TIGHTROPE_CPU": "v2"},
    "v3": {"TIGHTROPE_CPU": "v3"},
    "v4": {"TIGHTROPE_CPU": "v4"},
    "1 thread": {"TIGHTROPE_THREADS": "1"},
    "2 threads": {"TIGHTROPE_THREADS": "2"},
    "4 threads": {"TIGHTROPE_THREADS": "4"},
    "numpy without AVX-512": {"NPY_DISABLE_CPU_FEATURES": " ".join(AVX512)},
    "numpy for every CPU": {"NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED)},
    "BLAS for every CPU": {"OPENBLAS_CORETYPE": "Prescott"},
    "BLAS with AVX-512": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "libm for every CPU": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX512VL"},
}


def levels() -> tuple[str, ...]:
    """The instruction sets that the core is compiled for and this CPU has."""
    found: tuple[str, ...] = importlib.import_module("tightrope.core").levels()
    return found


def unsupported(environment: str) -> str:
    """Why it cannot be tried here; nothing if it can."""
    variables = ENVIRONMENTS[environment]
    if variables.get("TIGHTROPE_CPU", levels()[0]) not in levels():
        return f"this CPU has {', '.join(levels())}"
    if variables.get("NPY_DISABLE_CPU_FEATURES") == "":
        return "numpy chooses nothing of the kind here"
    if variables.get("OPENBLAS_CORETYPE") == "SkylakeX" and not AVX512:
        return "this CPU has no AVX-512"
    return ""


def test_results_are_the_same_bits_twice() -> None:
    assert differing(fingerprints(), fingerprints()) == []


def test_results_are_the_stored_bits() -> None:
    assert differing(fingerprints(), stored()) == []


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_results_are_the_stored_bits_with(environment: str) -> None:
    if reason := unsupported(environment):
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fingerprints", "--json"],
        cwd=Path(__file__).parent.parent,
        env=os.environ | ENVIRONMENTS[environment],
        check=True,
        capture_output=True,
        text=True,
    )
    assert differing(json.loads(done.stdout), stored()) == []

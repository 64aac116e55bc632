"""The same seed gives the same bits, whatever the CPU has and however many threads there are.

`python -m tests.fingerprints` names what differs; run under one of the variables below, on what it depends.
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

#: Variables under which every fingerprint has to be the same; what this CPU does not have is left out.
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "v2, 1 thread, numpy without AVX-512, BLAS for every CPU": {
        "TIGHTROPE_CPU": "v2",
        "TIGHTROPE_THREADS": "1",
        "NPY_DISABLE_CPU_FEATURES": " ".join(AVX512),
        "OPENBLAS_CORETYPE": "Prescott",
    },
    "v3, 2 threads, numpy and libm for every CPU": {
        "TIGHTROPE_CPU": "v3",
        "TIGHTROPE_THREADS": "2",
        "NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX512VL",
    },
    "v4, 4 threads, BLAS with AVX-512": {
        "TIGHTROPE_CPU": "v4",
        "TIGHTROPE_THREADS": "4",
        "OPENBLAS_CORETYPE": "SkylakeX",
    },
}


def levels() -> tuple[str, ...]:
    """The instruction sets that the core is compiled for and this CPU has."""
    found: tuple[str, ...] = importlib.import_module("tightrope.core").levels()
    return found


def supported(name: str, value: str) -> bool:
    """Whether this CPU can run with this variable."""
    if name == "TIGHTROPE_CPU":
        return value in levels()
    if name == "OPENBLAS_CORETYPE":
        return value != "SkylakeX" or bool(AVX512)
    return value != ""


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    """Those of this process."""
    return fingerprints()


def test_results_are_the_same_bits_twice(here: dict[str, str]) -> None:
    assert differing(fingerprints(), here) == []


def test_results_are_the_stored_bits(here: dict[str, str]) -> None:
    assert differing(here, stored()) == []


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_results_are_the_stored_bits_with(environment: str) -> None:
    variables = {name: value for name, value in ENVIRONMENTS[environment].items() if supported(name, value)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.fingerprints", "--json"],
        cwd=Path(__file__).parent.parent,
        env=os.environ | variables,
        check=True,
        capture_output=True,
        text=True,
    )
    assert differing(json.loads(done.stdout), stored()) == []

"""Time in units of the machine: an exp-pass is one `numpy.exp` over as many numbers as there are tuples."""

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from time import process_time

import numpy as np

#: Processor time, which does not include other processes.
clock = process_time


class ExpPass:
    """The unit, measured again between the other measurements."""

    def __init__(self, n_tuples: int) -> None:
        self._numbers = np.random.default_rng(0).uniform(-1, 1, n_tuples)
        self._out = np.empty(n_tuples)
        self._loops = max(1, 20_000 // n_tuples)  # long enough for the clock, which resolves microseconds
        self.measured: list[float] = []
        self.measure()

    def measure(self, times: int = 10) -> None:
        """Measure the unit once more."""
        for _ in range(times):
            begin = clock()
            for _ in range(self._loops):
                np.exp(self._numbers, out=self._out)
            self.measured.append((clock() - begin) / self._loops)

    @property
    def shortest(self) -> float:
        """Return the shortest measurement, to compare shortest times with."""
        return min(self.measured)

    @property
    def median(self) -> float:
        """Return the median measurement, to compare medians with."""
        return float(np.median(self.measured))


def resident_bytes() -> int:
    """Return the memory that this process holds now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def machine() -> str:
    """Return processor, cores and versions, in a sentence."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    model = re.sub(r"\(R\)|\(TM\)", "", found[1]) if found else platform.machine()
    packages = ("numpy", "highspy", "scipy", "cvxpy", "clarabel", "scs")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return f"{model}, {os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}, {versions}"


def exponent(sizes: list[int], values: list[float]) -> float:
    """Return the exponent e of values ∝ sizes^e, by least squares in the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def shown(value: float) -> str:
    """Return a number as text, with three digits and commas between thousands."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def duration(value: float) -> str:
    """Return seconds as text, in a suitable unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.2g} µs"

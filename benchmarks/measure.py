"""Time in units of the machine: one `numpy.exp` over as many numbers as there are tuples is one exp-pass."""

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from time import process_time

import numpy as np

#: Time of the processor: what other processes take is no part of it.
clock = process_time


class ExpPass:
    """The unit, to be measured again and again in between everything else."""

    def __init__(self, n_tuples: int) -> None:
        self._numbers = np.random.default_rng(0).uniform(-1, 1, n_tuples)
        self._out = np.empty(n_tuples)
        self._loops = max(1, 20_000 // n_tuples)  # a clock tells some ten microseconds well, not one
        self.measured: list[float] = []
        self.measure()

    def measure(self, times: int = 10) -> None:
        """Look again."""
        for _ in range(times):
            begin = clock()
            for _ in range(self._loops):
                np.exp(self._numbers, out=self._out)
            self.measured.append((clock() - begin) / self._loops)

    @property
    def shortest(self) -> float:
        """To compare shortest times with."""
        return min(self.measured)

    @property
    def median(self) -> float:
        """To compare medians with."""
        return float(np.median(self.measured))


def resident_bytes() -> int:
    """What this process holds in memory now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def machine() -> str:
    """Processor, cores and versions, in a sentence."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    model = re.sub(r"\(R\)|\(TM\)", "", found[1]) if found else platform.machine()
    packages = ("numpy", "highspy", "scipy", "cvxpy", "clarabel", "scs")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return f"{model}, {os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}, {versions}"


def exponent(sizes: list[int], values: list[float]) -> float:
    """The exponent e of values ∝ sizes^e, by least squares in the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def shown(value: float) -> str:
    """Three digits, and a comma at thousands."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def duration(value: float) -> str:
    """Seconds, in the unit that reads best."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.2g} µs"

"""Memory of a run in bytes per tuple: models of millions of tuples must fit."""

import os
import subprocess
import sys

import pytest

#: The most that a run takes besides the problem, NumPy's arrays and the core's: episodes early on renew the confidence
#: set, which is when most is held. Freed memory goes back at once, so that the peak is what is held.
MEASURED = """
import ctypes, sys
import tightrope as tr

def peak():
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))

learner = sys.argv[1]
tr.run(tr.make("media-streaming"), learner, episodes=2, regret="never")  # imports and threads take memory, too
problem = tr.make("grid", n_rows=20, n_columns=20, n_steps=40)
ctypes.CDLL(None).malloc_trim(0)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins anew
before = peak()
history = tr.run(problem, learner, episodes=4, regret="never", records=1)
assert history["epoch"][-1] == 4
print((peak() - before) / problem.space.n_tuples)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
@pytest.mark.parametrize(("learner", "most"), [("ucpd", 125), ("ucpd-practical", 155)])
def test_a_run_stays_within_so_many_bytes_per_tuple(learner: str, most: float) -> None:
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "TIGHTROPE_THREADS": "1"}
    command = [sys.executable, "-c", MEASURED, learner]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert 50 < float(done.stdout) <= most

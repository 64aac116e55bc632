"""Runs published code from a checkout of it and writes what came of it as .npz, for `python -m benchmarks.published`.

    python benchmarks/theirs.py uopt CHECKOUT EPISODES uopt.npz
    python benchmarks/theirs.py dope CHECKOUT/Codes/MediaControl model-queue.py DOPE-queue.py EPISODES dope-media.npz

Nothing of tightrope is imported, so that any interpreter with what they need will do: for the first, of
github.com/matsuolab/Uniform-PAC-Primal-Dual-CMDP, jax, chex and scipy; for the second, of
github.com/archanabura/DOPE-DoublyOptimisticPessimisticExploration, numpy < 1.25, pandas, matplotlib and pulp < 2.2. The
second writes into its folder: copy it. Running their code is trusting it; what is unpickled is the file that their own
model script wrote a moment before, and that their learner reads.
"""

import json
import os
import pickle
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np


def uopt(checkout: str, episodes: str, out: str) -> None:
    """The cells of their notebook up to UOpt-RPGPD, which is then played with their settings, and OptPrimalDual too."""
    notebook = json.loads(next(Path(checkout).glob("*.ipynb")).read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    last = next(n for n, cell in enumerate(cells) if "def UOptRPGPD(" in cell)
    names: dict[str, Any] = {}
    for cell in cells[: last + 1]:
        exec(cell, names)  # theirs, as they run it
    mdp, n = names["mdp"], int(episodes)
    gap, over = names["UOptRPGPD"](mdp, n, 0.001, 0.1)
    other_gap, other_over = names["OptPrimalDualCMDP"](mdp, n, 100_000, 0.001, 0.1)
    np.savez_compressed(
        out, P=mdp.P, rew=mdp.rew, init=mdp.init_dist, const=mdp.const,
        uopt_rew=gap, uopt_vio=over, opd_rew=other_gap, opd_vio=other_over,
    )  # fmt: skip


def dope(folder: str, model: str, script: str, episodes: str, out: str) -> None:
    """Their model, then their learner on it, with another number of episodes."""
    where = Path(out).resolve()
    os.environ["MPLBACKEND"] = "Agg"
    os.chdir(folder)
    sys.path.insert(0, str(Path.cwd()))
    runpy.run_path(model)
    [made] = [path for path in Path().glob("model*.pckl") if "abs" not in path.name]
    settings = pickle.loads(made.read_bytes())
    settings[1] = float(episodes)
    made.write_bytes(pickle.dumps(settings))
    names = runpy.run_path(script)
    np.savez_compressed(where, regret=names["ObjRegret2"][0], violation=names["ConRegret2"][0])


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    if what == "uopt":
        uopt(*given)
    else:
        dope(*given)

"""Runs published code from a checkout and writes its results as .npz, for `python -m benchmarks.published`.

    python benchmarks/theirs.py uopt CHECKOUT EPISODES uopt.npz
    python benchmarks/theirs.py dope CHECKOUT/Codes/MediaControl model-queue.py DOPE-queue.py EPISODES dope-media.npz

It imports nothing of tightrope, so any interpreter with these packages can run it: for the first, a checkout of
github.com/matsuolab/Uniform-PAC-Primal-Dual-CMDP, with jax, chex and scipy; for the second, of
github.com/archanabura/DOPE-DoublyOptimisticPessimisticExploration, with numpy < 1.25, pandas, matplotlib and
pulp < 2.2. The second writes into its folder: copy it. Run it only if you trust the published code; the file that is
unpickled is the one that their own model script has just written, and that their learner reads.
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
    """Run the cells of their notebook up to UOpt-RPGPD; then play it, and OptPrimalDual, with their settings."""
    notebook = json.loads(next(Path(checkout).glob("*.ipynb")).read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    last = next(n for n, cell in enumerate(cells) if "def UOptRPGPD(" in cell)
    names: dict[str, Any] = {}
    for cell in cells[: last + 1]:
        exec(cell, names)  # their code, as they run it
    mdp, n = names["mdp"], int(episodes)
    gap, over = names["UOptRPGPD"](mdp, n, 0.001, 0.1)
    other_gap, other_over = names["OptPrimalDualCMDP"](mdp, n, 100_000, 0.001, 0.1)
    np.savez_compressed(
        out, P=mdp.P, rew=mdp.rew, init=mdp.init_dist, const=mdp.const,
        uopt_rew=gap, uopt_vio=over, opd_rew=other_gap, opd_vio=other_over,
    )  # fmt: skip


def dope(folder: str, model: str, script: str, episodes: str, out: str) -> None:
    """Run their model, then their learner on it, with another number of episodes."""
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

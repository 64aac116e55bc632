"""Deprecated: the modules of version 0.2 by their old names. Import from `tightrope`, or from `tightrope.lab`."""

import importlib
import sys
import warnings
from types import ModuleType

#: Old names of modules and the modules of `tightrope.lab` that hold their contents.
MOVED = {
    "account": "metrics",
    "callbacks": "run",
    "compare": "compare",
    "figures": "figures",
    "history": "history",
    "plots": "figures",
    "run": "run",
    "studies.conduct": "runner",
    "studies.engines": "engines",
    "studies.plan": "plan",
    "studies.study": "study",
    "tables": "tables",
}

warnings.warn(
    "tightrope.experiments is deprecated: use tr.run, tr.compare, tr.History, tr.Study, or tightrope.lab",
    DeprecationWarning,
    stacklevel=2,
)
sys.modules[f"{__name__}.studies"] = studies = ModuleType(f"{__name__}.studies", "Deprecated: see `tightrope.lab`.")
for _old, _new in MOVED.items():
    _module = importlib.import_module(f"tightrope.lab.{_new}")
    sys.modules[f"{__name__}.{_old}"] = _module
    _owner, _, _name = _old.rpartition(".")
    setattr(studies if _owner else sys.modules[__name__], _name, _module)

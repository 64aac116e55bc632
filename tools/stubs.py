"""Write the types of the compiled core, src/tightrope/core/__init__.pyi, as nanobind reads them from the module.

python -m tools.stubs            write the file
python -m tools.stubs --check    fail if the file is not up to date
"""

import re
import sys
from importlib import import_module
from pathlib import Path

from nanobind.stubgen import StubGen

STUB = Path(__file__).parent.parent / "src" / "tightrope" / "core" / "__init__.pyi"

HEADER = '''"""The compiled core: C++ kernels with one set of names. Written by `python -m tools.stubs`; do not edit."""

'''

FOOTER = '''
level: str

def levels() -> tuple[str, ...]:
    """Return the levels that this CPU supports, the best one last."""
'''

#: What nanobind says of an array beyond its type: shape, order, device. Types cannot be checked for that.
LAYOUT = re.compile(r"Annotated\[(NDArray\[numpy\.\w+\]), dict\(shape=\([^)]*\)[^)]*\)\]")


def generated() -> str:
    """Return the text of the stub for the core that is installed."""
    stub = StubGen(import_module("tightrope.core._portable"), quiet=True)
    stub.put(stub.module)
    text = LAYOUT.sub(r"\1", stub.get()).replace("numpy.typing.NDArray", "NDArray")
    text = text.replace("from typing import Annotated\n\n", "").replace("import numpy.typing\n", "")
    text = re.sub(r"\btuple\b(?!\[)", "tuple[Any, ...]", text)
    text = re.sub(r"\bdict\b(?!\[)", "dict[str, Any]", text)
    if "Any" in text:
        text = "from typing import Any\n\n" + text
    return HEADER + text + FOOTER


def main() -> int:
    """Write the stub, or check it; return the status of the process."""
    text = generated()
    if sys.argv[1:] == ["--check"]:
        if STUB.read_text(encoding="utf-8") == text:
            return 0
        print(f"{STUB} is not up to date: run python -m tools.stubs", file=sys.stderr)
        return 1
    STUB.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Something that happens at a chosen bytecode of the package: an interrupt, or the end of the process."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import tightrope

#: Only what the package itself does is counted.
PACKAGE = str(Path(tightrope.__file__).parent)


@contextmanager
def at_moment(
    moment: int, act: Callable[[], None], kind: Literal["opcode", "return"] = "opcode"
) -> Iterator[list[int]]:
    """Call `act` at that bytecode of the package, or with "return" when so many of its functions return.

    Yields a list with the number of moments so far.
    """
    count = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = kind == "opcode"
        if event == kind:
            count[0] += 1
            if count[0] == moment:
                act()
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 looks for frames that want bytecodes when a trace is set
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


def interrupted_after(moment: int, kind: Literal["opcode", "return"] = "opcode") -> Any:
    """Raise KeyboardInterrupt at a moment, as `at_moment` counts them."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    return at_moment(moment, interrupt, kind)

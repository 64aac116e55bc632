from typing import Any

level: str

def levels() -> tuple[str, ...]: ...
def __getattr__(name: str) -> Any: ...

Csr = Any
Solver = Any

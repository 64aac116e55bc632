"""Single-line changes of formulas, one at a time: what `fuzz.mutations` puts into learners to see who notices.

Changed are signs and operators, comparisons, numbers, `min` and `max`, roots and logarithms, the bounds of a clip. Left
alone is what is no formula: strings, annotations, errors and what checks arguments (NO_FORMULA), the sizes of empty
arrays, and the limits and schemas that the fields of a state declare.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
}
COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
SWAPPED = {"min": "max", "max": "min", "np.minimum": "np.maximum", "np.maximum": "np.minimum"}
DROPPED = {f"{module}.{name}" for module in ("np", "math") for name in ("sqrt", "log", "log1p", "log2")} | {"log"}

#: Functions whose calls are no formulas, nor what they are called with; and methods that are none.
NO_FORMULA = {
    *("require", "whole", "choice", "instance", "function", "shown", "unknown", "log.warning"),
    *("numbers", "np.empty", "np.zeros"),
}  # fmt: skip
NO_METHOD = {"settings", "__repr__", "summary"}


#: Numbers up to here are tolerances: twice as much would be as good.
TOLERANCES = 1e-4


class Change(NamedTuple):
    """One line of a file, before and after."""

    path: str
    line: int
    before: str
    after: str
    nth: int  #: of the changes of this file that read alike

    def digest(self, seed: int = 0) -> str:
        """What it is known by, wherever in its file the line is."""
        words = f"{seed}\n{self.path}\n{self.before}\n{self.after}\n{self.nth}"
        return hashlib.sha256(words.encode()).hexdigest()

    def applied_to(self, source: str) -> str:
        """The file with this line changed."""
        lines = source.splitlines(keepends=True)
        assert lines[self.line - 1].rstrip("\n") == self.before, f"{self.path} is no longer what it was"
        lines[self.line - 1] = self.after + "\n"
        return "".join(lines)


def changes_of(path: str, source: str) -> list[Change]:
    """Every change of the file, in the order of its lines."""
    lines, found, alike = source.splitlines(), [], Counter[tuple[str, str]]()
    for line, start, end, text in sorted(set(_edits(ast.parse(source), [line.encode() for line in lines]))):
        raw = lines[line - 1].encode()
        before, after = lines[line - 1], (raw[:start] + text.encode() + raw[end:]).decode()
        found.append(Change(path, line, before, after, alike[before, after]))
        alike[before, after] += 1
    return found


Edit = tuple[int, int, int, str]  # line, bytes from and to, and what is put there


def _edits(node: ast.AST, lines: list[bytes]) -> Iterator[Edit]:
    if _is_no_formula(node):
        return
    yield from _edits_here(node, lines)
    if isinstance(node, ast.keyword) and node.arg == "axis":
        return  # there is no third
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _edits(child, lines)


def _is_no_formula(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr():
            return True
        case ast.FunctionDef(name=name):
            return name in NO_METHOD
        case ast.Call(func=func):
            return ast.unparse(func) in NO_FORMULA
    return False


def _edits_here(node: ast.AST, lines: list[bytes]) -> Iterator[Edit]:
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            yield from _between(left, right, *OPERATORS[type(op)], lines)
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in OPERATORS:
            yield from _between(target, value, *OPERATORS[type(op)], lines)
        case ast.Compare(left=left, ops=ops, comparators=others):
            for first, sign, second in zip([left, *others], ops, others, strict=False):
                if type(sign) in COMPARISONS:
                    yield from _between(first, second, *COMPARISONS[type(sign)], lines)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield node.lineno, node.col_offset, operand.col_offset, ""
        case ast.keyword(arg="axis", value=ast.Constant(value=int(axis)) as axis_node):
            yield *_place(axis_node), str(1 - axis)
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            yield *_place(node), _other(number)
        case ast.Call(func=func, args=args):
            called = ast.unparse(func)
            if called in SWAPPED:
                yield *_place(func), SWAPPED[called]
            elif called in DROPPED and len(args) == 1:
                yield *_place(func), ""
            elif called == "np.clip" and len(args) == 3:
                yield *_place(args[1]), "-np.inf"
                yield *_place(args[2]), "np.inf"


def _place(node: ast.expr) -> tuple[int, int, int]:
    """Line, first byte and last; names and numbers are on one line."""
    assert node.end_col_offset is not None
    assert node.end_lineno == node.lineno
    return node.lineno, node.col_offset, node.end_col_offset


def _between(left: ast.expr, right: ast.expr, sign: str, other: str, lines: list[bytes]) -> Iterator[Edit]:
    """The sign between two expressions, if all is on one line."""
    if left.end_lineno != right.lineno or left.end_col_offset is None:
        return
    here = lines[right.lineno - 1].find(sign.encode(), left.end_col_offset, right.col_offset)
    if here >= 0:
        yield right.lineno, here, here + len(sign), other


def _other(number: float) -> str:
    """Another number of its kind: 0 → 1, 2 → 1, n → n + 1; twice what is no whole number, and 1 for a tolerance."""
    if number != int(number) or abs(number) > 1e9:
        return repr(2 * number) if abs(number) > TOLERANCES else "1.0"
    return repr(type(number)(1 if number in (0, 2) else number + 1))

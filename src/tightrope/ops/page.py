"""An inspection in words and tables."""

from collections.abc import Sequence
from math import isnan

from tightrope.ops.inspection import Inspection, Widths
from tightrope.ops.status import Standing, Status


def page(found: Inspection) -> list[str]:
    """The lines of it."""
    lines = [f"{found.folder}"]
    if problem := found.facts.get("problem"):
        lines[0] += f", for {problem}"
    if found.status is not None:
        lines += _of(found.status, found.widths)
    growth = found.growth
    lines += [
        "",
        f"on disk    journal {_bytes(growth.journal)} ({_bytes(growth.unused)} unused), {growth.events} events kept "
        f"of {_bytes(growth.event_bytes // max(growth.events, 1))} each; snapshots {_bytes(growth.snapshots)}; "
        f"{growth.since_snapshot} events since the last",
        f"integrity  {'whole: every row, policy and snapshot is as it was written' if not found.damage else 'DAMAGED'}",
        *(f"           {words}" for words in found.damage),
    ]
    return lines


def _of(status: Status, widths: dict[str, Widths]) -> list[str]:
    lines = [
        f"episodes   {status.told} told, {status.open} open, {status.given_up} given up; event {status.event}",
        f"playing    {'the safe policy, for a stop-loss' if status.stopped else status.champion}",
        *(f"failed     {one.name}: {one.failed}" for one in status.standings if one.failed),
        "",
    ]
    rows = [["budget", "unit", "an episode", "spent", "allowed", "share", "price", "stopped"]]
    for one in status.spending:
        numbers = [f"{x:.6g}" for x in (one.budget, one.spent, one.allowed)]
        stopped = "yes" if one.stopped else "no"
        price = f"{one.price:.4g} {one.price_unit}".rstrip()
        rows.append([one.name, one.unit or "-", *numbers, f"{one.share:.1%}", price, stopped])
    lines += table(rows) if status.spending else ["no budgets"]
    lines += ["", *table([["learner", "epoch", "set", "pairs", "free", "width: least", "median", "most"]] + [
        [one.name, str(status.epoch) if one.name == status.champion else "", *_wide(widths.get(one.name))]
        for one in status.standings
    ])]  # fmt: skip
    if len(status.standings) > 1 or any(one.on_paths or one.uncovered for one in status.standings):
        lines += ["", "would have spent, had its policy been played", *table(_would(status))]
    return lines


def _wide(wide: Widths | None) -> list[str]:
    if wide is None:
        return ["-"] * 6
    numbers = ["-" if isnan(x) else f"{x:.4g}" for x in (wide.least, wide.median, wide.most)]
    return [wide.kind, str(wide.pairs), str(wide.free), *numbers]


def _would(status: Status) -> list[list[str]]:
    rows = [["learner", "by importance", *(one.name for one in status.spending), "from the played path"]]
    for one in status.standings:
        sums = zip(one.would_have_spent, one.standard_errors, strict=True)
        uses = [f"{x:.6g} ± {e:.2g}" if one.weighed else "-" for x, e in sums]
        left_out = f", {one.uncovered} left out" if one.uncovered else ""
        rows.append([one.name, f"{one.weighed} episodes{left_out}", *uses, _on_paths(one)])
    return rows


def _on_paths(one: Standing) -> str:
    return f"{one.on_paths} episodes: {', '.join(f'{x:.6g}' for x in one.spent_on_paths)}" if one.on_paths else "-"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns that line up: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in rows
    ]


def _bytes(n: int) -> str:
    return f"{n} bytes" if n < 10_000 else f"{n / 1e6:.2f} MB"

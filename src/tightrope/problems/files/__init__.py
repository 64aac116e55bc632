"""Problems in folders of files: `load_problem` reads one, `write_example` writes an example to begin with."""

from tightrope.problems.files.folder import load_problem, load_with_digest, write_example

__all__ = ["load_problem", "load_with_digest", "write_example"]

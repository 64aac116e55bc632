"""A user's own problem, in a folder of her own: `load_problem` reads it, `write_example` writes a first one."""

from tightrope.problems.files.folder import load_problem, load_with_digest, write_example

__all__ = ["load_problem", "load_with_digest", "write_example"]

"""The bundled problems, one a file; `tightrope.problems.PROBLEMS` lists them."""

"""Studies: learners × problems × losses × parameters × seeds, from one file, that survive whatever ends them."""

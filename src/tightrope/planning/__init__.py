"""Planning with a known model, or with a set of models."""

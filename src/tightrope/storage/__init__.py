"""Files: checkpoints of learners, and files that are replaced atomically."""

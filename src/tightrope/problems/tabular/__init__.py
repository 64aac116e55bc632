"""A tabular MDP of one's own in layers: unrolled over time, or padded to paths of one length."""

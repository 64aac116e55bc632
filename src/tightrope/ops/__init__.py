"""Operations: a learner kept in a directory on disk, and served over HTTP."""

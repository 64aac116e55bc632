"""Runs, comparisons and studies: playing, exact accounting, results, tables, figures and the report."""

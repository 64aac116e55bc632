"""The report of a study: one HTML page that works offline, figures for a paper, and a live page."""

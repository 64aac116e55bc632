"""A study as one page that needs nothing else: read the folder, reduce it to what is shown, write or serve the page."""

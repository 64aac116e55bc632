"""Commands for developers; see CONTRIBUTING.md."""

"""`python -m tightrope` is `tightrope`."""

from tightrope.cli import main

if __name__ == "__main__":
    main()

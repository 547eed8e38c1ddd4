"""`python -m partage.cli` is `partage`."""

from partage.cli import main

if __name__ == "__main__":
    main()

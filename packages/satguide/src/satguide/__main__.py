"""`python -m satguide`."""

from satguide.cli import app

if __name__ == "__main__":
    app()

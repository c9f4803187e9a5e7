"""`python -m zoprox`."""

from zoprox.cli import app

if __name__ == "__main__":
    app()

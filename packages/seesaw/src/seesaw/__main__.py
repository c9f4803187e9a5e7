"""`python -m seesaw`, which is what torchrun starts."""

from seesaw.cli import app

if __name__ == "__main__":
    app()

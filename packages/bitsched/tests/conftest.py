"""Lets the tests import the modules that lie beside them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

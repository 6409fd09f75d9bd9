"""Makes the slow reference beside the tests importable by its own name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

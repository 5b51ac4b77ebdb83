"""Programs of the source tree: benchmarks, and makers of documents and recorded data.

Each runs from the root of the tree: `python -m tools.NAME`.
"""

import sys
from pathlib import Path

# The published studies, whether they are installed or not.
sys.path.append(str(Path(__file__).parents[1] / "studies"))

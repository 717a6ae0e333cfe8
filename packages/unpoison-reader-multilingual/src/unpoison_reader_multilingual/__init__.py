"""The files of unpoison's multilingual reader; `unpoison.models` reads with them.

`FOLDER` holds `model.onnx` (int8), `tokenizer.json`, and `reader.json` with the calibration and the hashes of both.
"""

from pathlib import Path

__all__ = ["FOLDER", "__version__"]

__version__ = "0.1.0"

FOLDER = Path(__file__).parent

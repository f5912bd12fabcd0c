"""The version of the package, for rooms that cannot import the package itself, which stands above them."""

__version__ = "0.1.0"

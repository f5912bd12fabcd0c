"""Old names: `measured` is `mmaformal.errors`, and the file is `mmaformal.queries.errors`."""

from mmaformal.renamed import elsewhere

__getattr__ = elsewhere(__name__, "mmaformal.queries.errors", measured="errors")

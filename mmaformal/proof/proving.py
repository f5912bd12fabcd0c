"""Claims proved one after another."""

from mmaformal.proof.composition import Composing as Composing
from mmaformal.proof.kernel import NotProvedError as NotProvedError

Proving = Composing

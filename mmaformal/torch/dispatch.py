"""Products that torch computes within its functions: they reach its dispatcher, and no call in Python names them.

A product of two matrices there runs in the arithmetic; its gradients are torch's, who has recorded them already.  An
operator whose kernel holds products, or may hold them, is left to torch and reported.
"""

from __future__ import annotations

import re
from functools import cache

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

from mmaformal.torch.arithmetic import Arithmetic
from mmaformal.torch.calls import DEVICES, FLOATS, autocast_device
from mmaformal.torch.functions import IN_PLACE, OPERATORS
from mmaformal.torch.report import Report, here, recorded_as
from mmaformal.torch.tensors import Call, Tensor

#: Names of operators whose kernels hold products, and what these are; the first that fits counts.
LEFT: tuple[tuple[str, str], ...] = (
    (r"sparse_(coo|csr|csc|bsr|bsc|compressed)|to_sparse|sparse_semi_structured_tile|coalesce", ""),
    (r"sparse.*(mm|mul|linear|apply|addmm)|spmm|sspaddmm|smm|_spsolve", "a product of sparse tensors"),
    (
        r"int4pack_mm|int8pack_mm|quantized_(linear|gru|lstm|rnn)|fbgemm_linear|qmatmul|mixed_dtypes",
        "a quantised product",
    ),
    (r"attention|transformer_encoder|flash", "fused attention"),
    (
        r"mkldnn_rnn|cudnn_rnn($|_b)|miopen_rnn|lstm_mps|(quantized_)?(lstm|gru|rnn_tanh|rnn_relu)(_cell)?$",
        "a recurrent layer",
    ),
    (
        r"linalg_(inv|solve|lu|ldl|cholesky|qr|svd|eig|det|slogdet|lstsq|pinv|matrix_exp|householder)"
        r"|_linalg_(det|eig|slogdet|solve|svd)|cholesky|lu_solve|_lu_with_info|triangular_solve|geqrf|orgqr|ormqr"
        r"|matrix_exp|^(qr|svd|inverse|pinverse)$|_compute_linear_combination",
        "a solver or a decomposition",
    ),
    (
        r"conv(olution)?([123]d|_depthwise[23]d|_dilated[23]d|_transpose[23]d|_tbc)?(_|$)(?!ert)",
        "a convolution",
    ),
    (r"conv_(depthwise|transpose|dilated)", "a convolution"),
    (
        r"(^|_)(scaled_|grouped_|foreach_|int_)*(add)?b?(add)?b?(mm|mv)(_|$)|(^|_)v?dot$",
        "a product of matrices",
    ),
    (
        r"(^|_)(linear|bilinear|trilinear|einsum|matmul|tensordot|dyn_quant_matmul)(_|$)",
        "a product of matrices",
    ),
)

#: names that the patterns fit, of operators that hold no product
_OTHERS = re.compile(
    r"upsample|_prepack$|_unpack|_prepack_|pack_(gemm_matrix|quantized_matrix|4bit_weight)|quantize_weight|_convert|reorder_conv|search"
)

#: libraries whose operators hold no product beside those that `LEFT` names
_KNOWN_LIBRARIES = ("aten", "prim", "prims", "quantized", "inductor", "profiler", "mmaformal", "rngprims")


@cache
def held(name: str) -> str:
    """Return which products an operator of torch's holds, by its name without its library; "" for none."""
    if _OTHERS.search(name):
        return ""
    return next((what for pattern, what in LEFT if re.search(pattern, name)), "")


@cache
def _split(func: Call) -> tuple[str, str, str]:
    """Library, name and form of an operator."""
    if not isinstance(func, torch._ops.OpOverload):
        return "higher_order", func.name(), "default"
    library, _, name = func._schema.name.partition("::")
    return library, name, func._overloadname


@cache
def _composite(func: Call) -> bool:
    """Whether an operator is made of calls of others."""
    return isinstance(func, torch._ops.OpOverload) and bool(
        torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
    )


#: forms of an operator that differ in how they are called, not in what they compute
_FORMS = ("default", "", "out", "deprecated", "padding", "input")


#: operators that traced code calls with tensors of one number, which torch shows as numbers and does not take back
_OF_NUMBERS = frozenset(
    getattr(torch.ops.aten, name).default for name in ("equal", "item", "_local_scalar_dense")
)


class Below(TorchDispatchMode):
    """The dispatcher's side of `arithmetic`: takes what its other side did not see."""

    supports_higher_order_operators = True

    def __init__(self, arithmetic: Arithmetic, report: Report) -> None:
        super().__init__()
        self.arithmetic, self.report = arithmetic, report
        #: the backward pass that it was made in, whose operators are not gradients to it
        self.task = torch._C._current_graph_task_id()

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """True: torch.compile, which knows the other side of `arithmetic`, compiles as if this one were not there."""
        return True

    def __torch_dispatch__(
        self, func: Call, types: object, args: tuple[Call, ...] = (), kwargs: dict[str, Call] | None = None
    ) -> Call:
        if func in _OF_NUMBERS:
            args = tuple(torch.as_tensor(x) for x in args)
        with torch._C.DisableTorchFunction():
            return self._called(func, args, kwargs or {})

    def _called(self, func: Call, args: tuple[Call, ...], kwargs: dict[str, Call]) -> Call:
        library, name, form = _split(func)
        if here.report is not self.report or here.own:  # within another context, or in a product of ours
            return func(*args, **kwargs)
        if library == "aten" and (name in OPERATORS or name in IN_PLACE):
            return self._product(func, name, form, args, kwargs)
        what = held(name) if library in _KNOWN_LIBRARIES else "an operator that may hold products"
        tensors = _tensors(args)
        if name.startswith("_embedding_bag") and len(args) > 6 and args[6] is not None:
            what = "a weighted sum"
        if what and any(x.is_floating_point() or x.is_complex() or x.is_quantized for x in tensors):
            self._leave(f"{library}.{name}", tensors, what)
        elif not what and _composite(func):  # in inference mode torch shows functions whole
            with self:
                return func.decompose(*args, **kwargs)
        return func(*args, **kwargs)

    def _product(
        self, func: Call, name: str, form: str, args: tuple[Call, ...], kwargs: dict[str, Call]
    ) -> Call:
        tensors = _tensors(args)
        why = _hindrance(tensors, form)
        if why is None:  # of integers, or of no numbers
            return func(*args, **kwargs)
        recorded = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
        if self._gradient():
            why = why or "a gradient that torch computes"
        elif forward_ad._current_level >= 0:
            raise NotImplementedError(
                f"{name}: a product within another function of torch's has no forward-mode derivative in an arithmetic"
            )
        if why:
            self._leave(f"aten.{name}", tensors, why)
            return func(*args, **kwargs)
        if recorded and self.arithmetic.backward == "through":
            self._leave(f"aten.{name}, its gradients", tensors, "torch has recorded its own")
        out = kwargs.pop("out", None)
        with (
            torch.no_grad(),
            torch.autocast(autocast_device(tensors[0]), enabled=False),
            recorded_as(f"aten.{name}"),
        ):
            d = (IN_PLACE[name] if name in IN_PLACE else OPERATORS[name])(self.arithmetic, *args, **kwargs)
            if name in IN_PLACE:
                return args[0].copy_(d)
            return d if out is None else out.resize_(d.shape).copy_(d)

    def _gradient(self) -> bool:
        """Whether torch is in a backward pass that began after this mode was entered."""
        return bool(torch._C._current_graph_task_id() != self.task)

    def _leave(self, name: str, tensors: list[Tensor], why: str) -> None:
        """Report what torch computes; gradients are torch's by `backward="full"`, and not reported."""
        if self._gradient() and self.arithmetic.backward == "full":
            return
        self.report.leave(name, ", ".join("×".join(map(str, x.shape)) or "1" for x in tensors), why)


def _tensors(args: tuple[Call, ...]) -> list[Tensor]:
    found = []
    for each in args:
        if isinstance(each, torch.Tensor):
            found.append(each)
        elif isinstance(each, (list, tuple)):
            found += [x for x in each if isinstance(x, torch.Tensor)]
    return found


def _hindrance(tensors: list[Tensor], form: str) -> str | None:
    """Why a product does not run in the arithmetic; "" where it does, None where torch's own is exact or of nothing."""
    from torch._subclasses import FakeTensor

    if any(isinstance(x, FakeTensor) or x.is_meta for x in tensors) or not any(
        x.is_floating_point() or x.is_complex() for x in tensors
    ):
        return None
    if form not in _FORMS:
        return f"the form {form} has a type of its own"
    for x in tensors:
        if x.layout is not torch.strided or x.is_nested:
            return "a tensor that is not dense"
        if (x.dtype not in FLOATS and x.is_floating_point()) or x.is_complex():
            return f"a tensor of {x.dtype}"
        if x.device.type not in DEVICES:
            return f"a tensor on {x.device}"
    return ""

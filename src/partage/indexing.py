"""Indices of kernels count from the start of an array, as in C: a negative index is not one from the end.

For every index that is a signed number, numba compiles a comparison with 0, and an addition of the array's length if
the number is negative. Kernels never count from the end by a number that is computed, and without this step they take
up to a quarter less time. Constants still count from the end: numbers, and names of numbers outside of the function,
as in `marks[-1]`, `table[-1, i]` or `table[LAST, i]`.
"""

from typing import Any

from numba import types
from numba.core import ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.errors import ConstantInferenceError
from numba.core.ir_utils import find_build_sequence, guard
from numba.core.typed_passes import NoPythonSupportedFeatureValidation


@register_pass(mutates_CFG=False, analysis_only=False)
class FromTheStart(FunctionPass):
    """Let the indices of arrays be unsigned: numba reads those as they are."""

    _name = "partage_indices_from_the_start"

    def __init__(self) -> None:  # numba's own is abstract
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Change the types that indices are converted to before an array is read or written."""
        changed = False
        for node, signature in list(state.calltypes.items()):
            if not (isinstance(node, ir.SetItem) or (isinstance(node, ir.Expr) and node.op == "getitem")):
                continue
            of, index, *value = signature.args
            if not isinstance(of, types.Array):
                continue
            unsigned = _unsigned(index, node.index, state.func_ir)
            if unsigned != index:
                del state.calltypes[node]  # numba refuses to write over it
                state.calltypes[node] = signature.replace(args=(of, unsigned, *value))
                changed = True
        return changed


def _unsigned(index: Any, variable: ir.Var, code: ir.FunctionIR) -> Any:
    """Return the unsigned type of an index, or of a tuple of them; constants and slices stay what they are."""
    if isinstance(index, types.BaseTuple):
        parts, _ = guard(find_build_sequence, code, variable) or ([variable] * len(index), None)
        return types.Tuple([_unsigned(each, part, code) for each, part in zip(index, parts, strict=True)])
    if not isinstance(index, types.Integer) or not index.signed or _is_constant(variable, code):
        return index
    return types.uintp


def _is_constant(variable: ir.Var, code: ir.FunctionIR) -> bool:
    """Whether numba knows the number. It reads an index that is one by itself, but not one in a tuple."""
    try:
        code.infer_constant(variable)
    except ConstantInferenceError:
        return False
    return True


class KernelCompiler(CompilerBase):
    """numba's compiler with this pass, just before code is made."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(FromTheStart, NoPythonSupportedFeatureValidation)
        passes.finalize()
        return [passes]

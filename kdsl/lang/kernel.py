"""The decorators: what turns a function into a kernel, gives it examples, and lets it call helpers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from kdsl.diagnostics import fail

if TYPE_CHECKING:
    from kdsl.ir.kernel import Kernel as IRKernel

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

EXAMPLES, INLINE = "__kdsl_examples__", "__kdsl_inline__"


@dataclass(frozen=True)
class Example:
    """Sizes, dtypes, constants and tile sizes to run a kernel with, by name, and how to draw inputs."""

    values: Mapping[str, Any]
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(f"{key}={getattr(value, '__name__', value)}" for key, value in self.values.items())


class Kernel:
    """A kernel: the function as written, its examples, and what it declares to be refused by which target.

    Called with arrays, it runs on the oracle, allocates its outputs and returns them. `elaborate` gives its IR.
    Raises KdslError K0101 for what is no function.
    """

    def __init__(self, function: Callable[..., None], refuses: Mapping[str, str]) -> None:
        if not inspect.isfunction(function):
            raise fail("K0101", None, name=repr(function))
        self.function = function
        self.name = function.__name__
        self.refuses = dict(refuses)
        self.examples: tuple[Example, ...] = tuple(getattr(function, EXAMPLES, ()))
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__

    def elaborate(self, **bindings: Any) -> IRKernel:
        """The kernel's IR for dtypes of its dtype variables and values of its constants; sizes stay symbolic.

        Raises KdslError for whatever the function says wrong.
        """
        from kdsl.frontends.python import elaborate

        return elaborate(self, bindings)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run on NumPy arrays: inputs by position or name, sizes and tile sizes by name; returns the written arrays."""
        from kdsl.runtime.call import call

        return call(self, arguments, keywords)

    def __repr__(self) -> str:
        return f"<kdsl.kernel {self.__module__}:{self.name}>"


@overload
def kernel(function: Callable[..., None], /) -> Kernel: ...
@overload
def kernel(*, refuses: Mapping[str, str]) -> Callable[[Callable[..., None]], Kernel]: ...
def kernel(
    function: Callable[..., None] | None = None, /, *, refuses: Mapping[str, str] | None = None
) -> Kernel | Callable[[Callable[..., None]], Kernel]:
    """Makes a function a kernel. `refuses={"tpu": "K0301"}` declares that a target must refuse it, with that code."""
    if function is not None:
        return Kernel(function, {})
    return lambda written: Kernel(written, refuses or {})


def example(*, inputs: Mapping[str, Any] | None = None, **values: Any) -> Callable[[F], F]:
    """Sizes, dtypes and constants that the tools use when told nothing; the first example is the default.

    `inputs` says how to draw tensors whose elements the kernel relies on, by parameter name: what `kdsl.testing` has
    (`integers`, `distinct`, `offsets`), a number for all elements, or a function of a NumPy generator, the shape and
    the sizes by name that returns an array.
    """
    given = Example(values, inputs or {})

    def attach(function: F) -> F:
        if isinstance(function, Kernel):
            function.examples = (given, *function.examples)
        else:
            # Decorators apply from the bottom up; the topmost example comes first.
            setattr(function, EXAMPLES, (given, *getattr(function, EXAMPLES, ())))
        return function

    return attach


def inline(function: Callable[P, R]) -> Callable[P, R]:
    """Makes a function callable from kernels: its body is traced where it is called. Plain Python can call it too."""
    setattr(function, INLINE, True)
    return function

"""From SRC[::KERNEL], as the commands take it, to kernels. SRC is a file, a folder of files, or an importable module.

A file inside a package is imported under its name there, so that it is the module other code imports. A file on its own
becomes a module that no other code can meet.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import linecache
import pkgutil
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from kdsl.diagnostics import KdslError, Location, fail
from kdsl.lang.kernel import Kernel

READY_MADE = "kdsl.kernels"
NO_KERNELS = ("__init__", "__main__")  # importing a package's __main__ may run a program


@dataclass(frozen=True)
class Loaded:
    """A kernel and its `label`, `module:function`, as verdicts name it; a file on its own goes by its path in SRC."""

    kernel: Kernel
    label: str


def load(source: str) -> list[Loaded]:
    """The kernels of SRC[::KERNEL], in the order of files and definitions.

    `kernels`, where there is no such folder or module, means the ready-made kernels. Raises KdslError: K0401 for what
    cannot be imported, K0402 where no kernel is, or none of that name.
    """
    place, _, name = source.partition("::")
    found = [each for label, module in _modules(place) for each in _kernels(label, module)]
    chosen = [each for each in found if name in ("", each.kernel.name)]
    if not chosen:
        known = ", ".join(dict.fromkeys(each.kernel.name for each in found)) or "none"
        raise fail("K0402", None, path=place, name=f" {name}" if name else "", known=known)
    return chosen


def _kernels(label: str, module: ModuleType) -> list[Loaded]:
    """The kernels that a module defines; those that it imports belong elsewhere."""
    defined = [value for value in vars(module).values() if isinstance(value, Kernel)]
    own = dict.fromkeys(kernel for kernel in defined if kernel.__module__ == module.__name__)
    return [Loaded(kernel, f"{label}:{kernel.name}") for kernel in own]


def _modules(place: str) -> Iterator[tuple[str, ModuleType]]:
    path = Path(place)
    if place and path.is_dir():
        for file in _python_files(path):
            yield _file(file, ".".join(file.relative_to(path).with_suffix("").parts))
    elif path.is_file():
        if path.suffix != ".py":
            raise fail("K0401", None, path=place, problem="it is no Python file")
        yield _file(path, path.stem)
    elif not all(part.isidentifier() for part in place.split(".")) or place.endswith(".py"):
        raise fail("K0401", None, path=place or "''", problem="there is no such file or folder")
    else:
        for module in _named(place):
            yield module.__name__, module


def _python_files(folder: Path) -> list[Path]:
    """Every Python file below that mentions kdsl, sorted; hidden folders and a package's __init__ and __main__ aside.

    To look for kernels in a file is to run it, which scripts that happen to lie there are to be spared.
    """
    return [
        file
        for file in sorted(folder.rglob("*.py"))
        if file.stem not in NO_KERNELS and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        if _mentions_kdsl(file)
    ]


def _mentions_kdsl(file: Path) -> bool:
    try:
        return file.is_file() and b"kdsl" in file.read_bytes()
    except OSError:
        return True  # loading it will say what is wrong


# -- modules by name -----------------------------------------------------------------------------------------------


def _named(name: str) -> Iterator[ModuleType]:
    """A module; a package and what it holds."""
    try:
        found = _exists(name)
    except (Exception, SystemExit) as error:
        raise _failure(name, error, None) from None
    if not found:
        if name == "kernels":
            yield from _named(READY_MADE)
            return
        raise fail("K0401", None, path=name, problem="there is no such file, folder or module")
    package = _import(name)
    yield package
    for inner in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{name}.", onerror=lambda _: None):
        if not inner.name.endswith(".__main__"):
            yield _import(inner.name)


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        # It or a package on the way is missing; not one that it imports.
        if f"{name}.".startswith(f"{error.name}."):
            return False
        raise


def _import(name: str, file: Path | None = None) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise _failure(str(file or name), error, file) from None


# -- modules by file -----------------------------------------------------------------------------------------------


def _file(path: Path, label: str) -> tuple[str, ModuleType]:
    file = path.resolve()
    root, names = _package_names(file)
    with _importable(root):
        for name in names:
            try:
                spec = importlib.util.find_spec(name)
            except ModuleNotFoundError:
                continue
            except (Exception, SystemExit) as error:  # of the package on the way
                raise _failure(str(path), error, None) from None
            if spec is not None and spec.origin is not None and Path(spec.origin).resolve() == file:
                return name, _import(name, file)
        return label.replace(":", "_"), _execute(path, file)


def _package_names(file: Path) -> tuple[Path, list[str]]:
    """The folder to import from, and the names that a file inside a package may have; none for a file on its own."""
    parts, folder = [file.stem], file.parent
    names = []
    while (folder / "__init__.py").is_file():
        if folder == _ready_made():
            names.append(".".join([READY_MADE, *parts]))
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, [*names, ".".join(parts)] if len(parts) > 1 else []


def _ready_made() -> Path | None:
    """The folder of the ready-made kernels, which has another name in a checkout than it has installed."""
    spec = importlib.util.find_spec(READY_MADE)
    return Path(spec.origin).resolve().parent if spec is not None and spec.origin is not None else None


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Lets a file import its neighbours. Last on the path, so that no neighbour hides an installed package."""
    importlib.invalidate_caches()
    sys.path.append(str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the file may have changed the path
            sys.path.remove(str(folder))


def _execute(path: Path, file: Path) -> ModuleType:
    """Run a file as a module of its own. It is read anew each time: no stale bytecode, no module of an earlier text."""
    module = ModuleType(f"kdsl_source_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}_{file.stem}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # where typing and dataclasses look names up
    linecache.checkcache(str(file))
    try:
        exec(compile(file.read_bytes(), str(file), "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise _failure(str(path), error, file) from None
    return module


# -- what went wrong -----------------------------------------------------------------------------------------------


def _failure(path: str, error: BaseException, file: Path | None) -> KdslError:
    """The diagnostic for what an import raised, at the line of the user's that raised it."""
    if isinstance(error, KdslError):  # a decorator's: nothing was loaded, whatever the reason
        problem = f"{error.code}: {error.message}; {error.hint}"
        return fail("K0401", error.location or _place(error, file), path=path, problem=problem)
    problem = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    return fail("K0401", _place(error, file), path=path, problem=problem)


def _place(error: BaseException, file: Path | None) -> Location | None:
    if isinstance(error, SyntaxError) and error.filename is not None and error.lineno:
        return Location(error.filename, error.lineno, max(1, error.offset or 1))
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and frame.filename != __file__
    ]
    own = [frame for frame in frames if file is not None and Path(frame.filename) == file]
    if not own and not frames:
        return None
    frame = (own or frames)[-1]
    line = frame.lineno or 1
    text = linecache.getline(frame.filename, line).encode()
    start, end = (
        None if offset is None else len(text[:offset].decode(errors="replace")) + 1
        for offset in (frame.colno, frame.end_colno)
    )
    return Location(frame.filename, line, start or 1, end if frame.end_lineno == line else None)

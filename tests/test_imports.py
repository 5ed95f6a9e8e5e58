"""The dependency rules, read from the imports of every source file, those inside functions included."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"kdsl": "kdsl", "backends": "kdsl.backends", "kernels": "kdsl.kernels"}
TOOL_CHAINS = frozenset({"jax", "jaxlib", "libtpu", "torch", "triton", "nki", "neuronxcc"})
IMPORTERS = frozenset({"importlib.import_module", "import_module", "__import__"})


def module_name(path: Path) -> str:
    """The name a file has once installed; a package ends in .__init__, so that its parent is the package itself."""
    folder, *rest = path.with_suffix("").parts
    return ".".join([FOLDERS[folder], *rest])


def imports(source: str, module: str) -> Iterator[tuple[int, str, bool]]:
    """Line, absolute name and whether written relatively, of each import in a module's source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, False
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")[: -node.level] if node.level else []
            base = [*parents, *([node.module] if node.module else [])]
            for alias in node.names:
                yield node.lineno, ".".join([*base, alias.name]), node.level > 0
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in IMPORTERS
            and isinstance(node.args[0], ast.Constant)
        ):
            yield node.lineno, str(node.args[0].value), False


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def complaint(module: str, name: str, relative: bool) -> str | None:
    """What is wrong with this import in this module, or None."""
    if within(module, "kdsl.backends"):
        return complaint_in_backend(module, name, relative)
    if within(module, "kdsl.kernels"):
        allowed = within(name, "kdsl") and not within(name, "kdsl.backends") and not within(name, "kdsl.integrations")
        return None if allowed or name.split(".")[0] in sys.stdlib_module_names else "kernels import kdsl only"
    if within(name, "kdsl.backends"):
        return "a target arrives by entry point"
    if name.split(".")[0] in TOOL_CHAINS and not within(module, "kdsl.integrations"):
        return "only kdsl.integrations imports a tool-chain"
    return None


def complaint_in_backend(module: str, name: str, relative: bool) -> str | None:
    own = ".".join(module.split(".")[:3])  # kdsl.backends.<target>
    if relative:
        return None if within(name, own) else "a relative import stays in its own target"
    if within(name, "kdsl.backends"):
        return "no other target is imported, and its own files relatively"
    return "the folder is installed as kdsl.backends" if within(name, "backends") else None


def complaints(source: str, path: str) -> list[str]:
    module = module_name(Path(path))
    found = ((line, name, complaint(module, name, relative)) for line, name, relative in imports(source, module))
    return [f"{path}:{line}: import of {name}: {reason}" for line, name, reason in found if reason]


def source_files() -> list[Path]:
    return [path.relative_to(ROOT) for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def test_every_file_keeps_the_dependency_rules() -> None:
    files = source_files()
    assert {path.parts[0] for path in files} == set(FOLDERS)
    assert [each for path in files for each in complaints((ROOT / path).read_text(), str(path))] == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("kdsl/ir/ops.py", "def f():\n    import jax.numpy as jnp"),
        ("kdsl/ir/ops.py", "if TYPE_CHECKING:\n    from torch import Tensor"),
        ("kdsl/ir/ops.py", "import importlib\nimportlib.import_module('triton.language')"),
        ("kdsl/ir/ops.py", "from kdsl import backends"),
        ("kdsl/ir/ops.py", "from ..backends.triton import TARGET"),
        ("kdsl/__init__.py", "from . import backends"),
        ("kdsl/integrations/jax/a.py", "from kdsl.backends.pallas import TARGET"),
        ("backends/triton/emit.py", "from kdsl.backends.triton import toolchain"),
        ("backends/triton/emit.py", "import kdsl.backends.pallas"),
        ("backends/triton/emit.py", "from ..pallas import emit"),
        ("backends/triton/__init__.py", "from .. import pallas"),
        ("backends/triton/emit.py", "from ...codegen import format"),
        ("backends/triton/emit.py", "import backends.triton"),
        ("kernels/softmax.py", "import numpy as np"),
        ("kernels/softmax.py", "import kdsl.backends.triton"),
    ],
)
def test_a_breach_is_found(path: str, source: str) -> None:
    assert len(complaints(source, path)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("kdsl/ir/ops.py", "import numpy\nfrom . import kernel\nfrom ..lang import dtypes\nimport jaxtyping"),
        ("kdsl/integrations/jax/a.py", "import jax"),
        ("backends/triton/emit.py", "from kdsl.ir import ops\nfrom . import a\nfrom .a import b\nimport triton"),
        ("backends/triton/__init__.py", "from . import emit\nfrom .emit import f"),
        ("backends/triton/deep/a.py", "from .. import emit\nfrom ..emit import f"),
        ("kernels/softmax.py", "from __future__ import annotations\nimport kdsl\nfrom .rows import f\nimport math"),
    ],
)
def test_what_is_allowed_is_not_a_breach(path: str, source: str) -> None:
    assert complaints(source, path) == []


def test_every_folder_with_modules_is_a_package() -> None:
    """Or the wheel would not have it."""
    folders = {path.parent for path in source_files()}
    assert sorted(str(folder) for folder in folders if not (ROOT / folder / "__init__.py").is_file()) == []


MEASURE = """
import sys, time
started = time.perf_counter()
import kdsl
print(time.perf_counter() - started, *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_importing_kdsl_is_quick_and_loads_no_tool_chain() -> None:
    seconds = []
    for _ in range(5):
        run = subprocess.run([sys.executable, "-c", MEASURE], cwd=ROOT, capture_output=True, text=True, check=True)
        elapsed, *modules = run.stdout.split()
        assert TOOL_CHAINS.isdisjoint(modules)
        seconds.append(float(elapsed))
    assert min(seconds) < 0.2, f"import kdsl took {seconds} s"

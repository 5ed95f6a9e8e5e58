from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kdsl.diagnostics import KdslError, fail
from kdsl.runtime.loading import load

ROOT = Path(__file__).parents[2]
READY_MADE = ["attention", "layernorm", "matmul", "softmax", "vector_add"]
KERNEL = """
import kdsl

class N(kdsl.Dim): ...

@kdsl.kernel
@kdsl.example(N=8)
def {name}(x: kdsl.Tensor[N, kdsl.f32], y: kdsl.Out[N, kdsl.f32], *, BN: kdsl.Tile = 8) -> None:
    for n in kdsl.grid(N.tiles(BN)):
        y[n] = x[n]
"""


def write(path: Path, text: str = "", name: str = "copy") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or KERNEL.format(name=name))
    return path


def labels(source: str | Path) -> list[str]:
    return [each.label for each in load(str(source))]


def failure(source: str | Path) -> KdslError:
    with pytest.raises(KdslError) as caught:
        load(str(source))
    return caught.value


def place(error: KdslError) -> tuple[str, int, int]:
    assert error.location is not None
    return Path(error.location.file).name, error.location.line, error.location.column


def test_a_file_on_its_own_is_named_by_its_stem_and_meets_no_other_module(tmp_path: Path) -> None:
    write(tmp_path / "json.py")
    assert labels(tmp_path / "json.py") == ["json:copy"]
    assert "dumps" in dir(sys.modules.get("json", __import__("json")))


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    file = write(tmp_path / "a.py", name="one")
    assert labels(file) == ["a:one"]
    assert labels(write(file, name="two")) == ["a:two"]


def test_a_folder_is_searched_in_order_hidden_parts_and_package_files_aside(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "inner/c.py", ".hidden/d.py", "__main__.py"):
        write(tmp_path / "src" / name, name=Path(name).stem.strip("_"))
    assert labels(tmp_path / "src") == ["a:a", "b:b", "inner.c:c"]


def test_files_in_a_folder_that_do_not_mention_kdsl_are_not_run(tmp_path: Path) -> None:
    write(tmp_path / "a.py")
    write(tmp_path / "script.py", "raise SystemExit('run')\n")
    (tmp_path / "folder.py").mkdir()
    assert labels(tmp_path) == ["a:copy"]


def test_a_kernel_is_picked_by_name(tmp_path: Path) -> None:
    file = write(tmp_path / "a.py", KERNEL.format(name="one") + KERNEL.format(name="two"))
    assert labels(file) == ["a:one", "a:two"]
    assert labels(f"{file}::two") == ["a:two"]


def test_imported_kernels_and_second_names_do_not_count(tmp_path: Path) -> None:
    write(
        tmp_path / "a.py", "from kdsl.kernels.softmax import softmax\n" + KERNEL.format(name="own") + "\nalias = own\n"
    )
    assert labels(tmp_path / "a.py") == ["a:own"]


def test_a_file_may_import_its_neighbours_and_the_path_is_left_as_it_was(tmp_path: Path) -> None:
    write(tmp_path / "helper_of_a.py", "SIZE = 8\n")
    write(tmp_path / "a.py", "from helper_of_a import SIZE\n" + KERNEL.format(name="copy"))
    before = list(sys.path)
    assert labels(tmp_path / "a.py") == ["a:copy"]
    assert sys.path == before


def test_a_file_in_a_package_may_import_relatively(tmp_path: Path) -> None:
    write(tmp_path / "relative_package/__init__.py", "# a package\n")
    write(tmp_path / "relative_package/sizes.py", "SIZE = 8\n")
    file = write(tmp_path / "relative_package/a.py", "from .sizes import SIZE\n" + KERNEL.format(name="copy"))
    assert labels(file) == ["relative_package.a:copy"]
    assert labels(tmp_path / "relative_package") == ["relative_package.a:copy"]


def test_a_package_of_the_same_name_elsewhere_is_not_taken_for_it(tmp_path: Path) -> None:
    for folder, name in (("one", "first"), ("two", "second")):
        write(tmp_path / folder / "same_package/__init__.py", "# a package\n")
        write(tmp_path / folder / "same_package/a.py", name=name)
    assert labels(tmp_path / "one/same_package/a.py") == ["same_package.a:first"]
    assert labels(tmp_path / "two/same_package/a.py") == ["a:second"]


def test_the_ready_made_kernels_are_found_by_folder_file_and_name() -> None:
    expected = [f"kdsl.kernels.{name}:{name}" for name in READY_MADE]
    assert labels(ROOT / "kernels") == labels("kdsl.kernels") == expected
    assert labels(ROOT / "kernels/softmax.py") == labels("kdsl.kernels.softmax") == ["kdsl.kernels.softmax:softmax"]


def test_kernels_means_the_ready_made_ones_where_no_such_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if Path(entry).resolve() != ROOT])
    assert labels("kernels::matmul") == ["kdsl.kernels.matmul:matmul"]
    write(tmp_path / "kernels/mine.py", name="mine")
    assert labels("kernels") == ["mine:mine"]


@pytest.mark.parametrize("source", ["no/such.py", "nowhere.py", "no_such_module", "os.no_such", "", "a b", "::softmax"])
def test_what_is_not_there_is_k0401(source: str) -> None:
    error = failure(source)
    assert (error.code, error.location) == ("K0401", None)
    assert "there is no such" in error.message


def test_another_kind_of_file_is_k0401(tmp_path: Path) -> None:
    assert failure(write(tmp_path / "a.txt")).message.endswith("a.txt cannot be loaded: it is no Python file")


def test_a_syntax_error_has_its_line(tmp_path: Path) -> None:
    error = failure(write(tmp_path / "a.py", "x = 1\n\ny = (1 +\n"))
    assert (error.code, place(error)[:2]) == ("K0401", ("a.py", 3))
    assert "SyntaxError" in error.message


def test_binary_files_are_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\x00\xff\xfe")
    assert failure(tmp_path / "a.py").code == "K0401"


@pytest.mark.parametrize("raised", ["1 / 0", "raise SystemExit(3)", "raise ValueError('two\\nlines')"])
def test_an_exception_while_importing_has_the_line_of_the_file(tmp_path: Path, raised: str) -> None:
    before = set(sys.modules)
    error = failure(write(tmp_path / "a.py", f"def f():\n    é = 'é'; {raised}\n\nf()\n"))
    assert (error.code, place(error)) == ("K0401", ("a.py", 2, 14))
    assert set(sys.modules) == before


def test_an_exception_inside_a_library_is_shown_where_the_file_called_it(tmp_path: Path) -> None:
    error = failure(write(tmp_path / "a.py", "import json\n\njson.loads('{')\n"))
    assert place(error)[:2] == ("a.py", 3)
    assert "JSONDecodeError" in error.message


def test_a_diagnostic_while_importing_keeps_its_code_and_gets_a_line(tmp_path: Path) -> None:
    raising = "from kdsl.diagnostics import fail\n\nraise fail('K0112', None, name='N')\n"
    error = failure(write(tmp_path / "a.py", raising))
    assert (error.code, place(error)[:2]) == ("K0401", ("a.py", 3))
    raised = fail("K0112", None, name="N")
    assert error.message.endswith(f"K0112: {raised.message}; {raised.hint}")


def test_an_exception_in_a_module_by_name_has_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "failing_package/__init__.py", "# a package\n")
    write(tmp_path / "failing_package/a.py", "\nimport no_such_thing\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    error = failure("failing_package")
    assert (error.code, place(error)[:2]) == ("K0401", ("a.py", 2))
    assert "no_such_thing" in error.message


def test_no_kernel_and_an_unknown_name_are_k0402_with_what_is_there(tmp_path: Path) -> None:
    error = failure(write(tmp_path / "a.py", "x = 1\n"))
    assert (error.code, error.message) == ("K0402", f"{tmp_path}/a.py has no kernel")
    error = failure("kdsl.kernels::softmaxx")
    assert (error.code, error.message) == ("K0402", "kdsl.kernels has no kernel softmaxx")
    assert error.hint.endswith(", ".join(READY_MADE))
    (tmp_path / "empty").mkdir()
    assert failure(tmp_path / "empty").code == "K0402"

"""Every mistake in a kernel's source gives its code, at the line and the column of what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

import kdsl
from kdsl.diagnostic_codes import CODES
from kdsl.diagnostics import KdslError
from tests.frontends.python.sources import kernel_of

GRID = "    for m, n in kdsl.grid(M.tiles(BM), N.tiles(BN)):\n"

# Bodies of the kernel in sources.py, or whole kernels; «...» is what the caret must stand under.
SOURCE = {
    "K0102 no grid": ("K0102", "@kdsl.kernel\ndef «kernel»(c: Out[M, T]) -> None:\n    pass\n"),
    "K0102 second grid": ("K0102", GRID + "        pass\n    «for m in kdsl.grid(M):\n        pass»\n"),
    "K0102 loop outside": ("K0102", "    «for k in K:\n        pass»\n" + GRID + "        pass\n"),
    "K0102 store outside": ("K0102", GRID + "        pass\n    «c[0, 0]» = 1\n"),
    "K0103 while": ("K0103", GRID + "        «while causal:\n            pass»\n"),
    "K0103 return": ("K0103", GRID + "        «return»\n"),
    "K0103 unused tile": ("K0103", GRID + "        «v[n] + 1»\n"),
    "K0103 else": ("K0103", GRID + "        for k in K:\n            pass\n        else:\n            «pass»\n"),
    "K0103 power": ("K0103", GRID + "        c[m, n] = «v[n] ** 2»\n"),
    "K0103 matmul": ("K0103", GRID + "        c[m, n] = «a[m, :] @ b[:, n]»\n"),
    "K0103 in": ("K0103", GRID + "        x = «n.index in (1, 2)»\n"),
    "K0103 star": ("K0103", GRID + "        x = kdsl.exp(«*(1, 2)»)\n"),
    "K0103 walrus": ("K0103", GRID + "        x = 1 + («y := 2»)\n"),
    "K0103 append": ("K0103", GRID + "        parts = []\n        «parts.append(1)»\n"),
    "K0103 slice": ("K0103", GRID + "        c[m, n] = b[0, «1:3»]\n"),
    "K0103 constant dimension": (
        "K0103",
        "@kdsl.kernel\ndef kernel(x: Tensor[M, Literal[4], T], y: Out[M, T]) -> None:\n"
        "    for m in kdsl.grid(M):\n        y[m] = kdsl.sum(x[m, «:»], over=M)\n",
    ),
    "K0103 unpack": ("K0103", GRID + "        «x, y» = v[n]\n"),
    "K0104 tensor operand": ("K0104", GRID + "        c[m, n] = «v» + 1\n"),
    "K0104 string operand": ("K0104", GRID + "        c[m, n] = v[n] * «'two'»\n"),
    "K0104 function argument": ("K0104", GRID + "        c[m, n] = kdsl.exp(«v»)\n"),
    "K0104 attribute": ("K0104", GRID + "        c[m, n] = «v.shape»\n"),
    "K0104 value as index": ("K0104", GRID + "        c[m, n] = b[0, «v[n]»]\n"),
    "K0104 limit": ("K0104", GRID + "        for k in K.tiles(BK, stop=«m.index»):\n            pass\n"),
    "K0104 loop over a tile": ("K0104", GRID + "        for x in «v[n]»:\n            pass\n"),
    "K0104 too few arguments": ("K0104", GRID + "        c[m, n] = «kdsl.maximum(v[n])»\n"),
    "K0104 kernel": ("K0104", GRID + "        «kernel(v, v)»\n"),
    "K0104 grid names": ("K0104", "    for «m» in kdsl.grid(M, N):\n        pass\n"),
    "K0104 require": ("K0104", "    kdsl.require(«causal == M»)\n" + GRID + "        pass\n"),
    "K0104 require of an index": ("K0104", GRID + "        kdsl.require(«m.start == 0»)\n"),
    "K0104 dtype": ("K0104", GRID + "        c[m, n] = v[n].to(«M»)\n"),
    "K0104 axis extent": ("K0104", GRID + "        x = kdsl.axis(«m.stop - m.start»)\n"),
    "K0105 unknown": ("K0105", GRID + "        c[m, n] = «w»[n]\n"),
    "K0105 after a loop": ("K0105", GRID + "        for k in K:\n            x = 1\n        c[m, n] = «x»\n"),
    "K0105 tuple in a loop": (
        "K0105",
        GRID + "        x = (1, 2)\n        for k in K:\n            x = («x»[0], 3)\n        c[m, n] = 0\n",
    ),
    "K0105 comprehension": ("K0105", GRID + "        x = [«w» for i in range(2)]\n"),
    "K0106 annotation": ("K0106", "@kdsl.kernel\ndef kernel(x: «int», c: Out[M, T]) -> None:\n    pass\n"),
    "K0106 no annotation": ("K0106", "@kdsl.kernel\ndef kernel(«x», c: Out[M, T]) -> None:\n    pass\n"),
    "K0106 unknown name": (
        "K0106",
        "@kdsl.kernel\ndef kernel(x: Tensor[«Q», T]) -> None:\n    pass\n",
    ),
    "K0106 dimension": ("K0106", "@kdsl.kernel\ndef kernel(x: Tensor[M, «f32», T]) -> None:\n    pass\n"),
    "K0106 dtype": ("K0106", "@kdsl.kernel\ndef kernel(x: Tensor[M, «N»]) -> None:\n    pass\n"),
    "K0106 no dtype": ("K0106", "@kdsl.kernel\ndef kernel(x: «Tensor[()]») -> None:\n    pass\n"),
    "K0106 star": ("K0106", "@kdsl.kernel\ndef kernel(x: Tensor[M, T], *«more: int») -> None:\n    pass\n"),
    "K0106 tile": ("K0106", "@kdsl.kernel\ndef kernel(x: Tensor[M, T], *, «B: Tile» = 0) -> None:\n    pass\n"),
    "K0106 default": ("K0106", "@kdsl.kernel\ndef kernel(«x: Tensor[M, T]» = None) -> None:\n    pass\n"),
    "K0107 operand": ("K0107", GRID + "        c[m, n] = v[n] * «BM»\n"),
    "K0107 size": ("K0107", "    kdsl.require(K % «BK» == 0)\n" + GRID + "        pass\n"),
    "K0107 condition": ("K0107", GRID + "        if «BM»:\n            pass\n"),
    "K0107 stored": ("K0107", GRID + "        for i in range(«BM»):\n            pass\n"),
    "K0108 tile": ("K0108", "@kdsl.kernel\ndef kernel(x: Tensor[M, T], *, «B: Tile») -> None:\n    pass\n"),
    "K0108 constant": ("K0108", "@kdsl.kernel\ndef kernel(x: Tensor[M, T], *, «f: Const[int]») -> None:\n    pass\n"),
    "K0109 signature": (
        "K0109",
        "class U(kdsl.DType): ...\n@kdsl.kernel\ndef kernel(x: Tensor[M, «U»]) -> None:\n    pass\n",
    ),
    "K0110 builtin": ("K0110", GRID + "        c[m, n] = max(«v[n]», 0)\n"),
    "K0110 in a list": ("K0110", GRID + "        x = any(«[v[n]]»)\n"),
    "K0111 division": ("K0111", GRID + "        c[m, n] = v[n] * («1 / 0»)\n"),
    "K0111 form": ("K0111", GRID + "        c[m, n] = v[n] * («N // 0»)\n"),
    "K0111 exit": ("K0111", GRID + "        «exit()»\n"),
    "K0111 require": ("K0111", "    kdsl.require(«causal»)\n" + GRID + "        pass\n"),
    "K0112 dimension and parameter": (
        "K0112",
        "@kdsl.kernel\ndef kernel(x: Tensor[M, T], *, «M: Const[int]» = 1) -> None:\n    pass\n",
    ),
    "K0112 two dimensions": (
        "K0112",
        "def other():\n    class M(kdsl.Dim): ...\n    return M\nM2 = other()\n"
        "@kdsl.kernel\ndef kernel(x: Tensor[M, «M2», T]) -> None:\n    pass\n",
    ),
    "K0114": (
        "K0114",
        "@kdsl.inline\ndef again(x):\n    return «again(x)»\n@kdsl.kernel\n"
        "def kernel(x: Tensor[M, T], y: Out[M, T]) -> None:\n    for m in kdsl.grid(M):\n        y[m] = again(x[m])\n",
    ),
    "K0115": (
        "K0115",
        "@kdsl.kernel\ndef kernel(x: Tensor[M, T], *, «f: Const[Literal['a', 'b']]» = 'c') -> None:\n    pass\n",
    ),
    "K0201 nothing shared": ("K0201", GRID + "        c[m, n] = «kdsl.dot(a[m, 0], v[n])»\n"),
    "K0201 two shared": ("K0201", GRID + "        c[m, n] = «kdsl.dot(v[n] + m.index, v[n] + m.index)»\n"),
    "K0201 operand": ("K0201", GRID + "        c[m, n] = kdsl.dot(a[m, :], «v[n]», over=K)\n"),
    "K0201 precision": ("K0201", GRID + "        c[m, n] = kdsl.dot(a[m, :], b[:, n], precision=«'tf32'»)\n"),
    "K0201 unsigned": ("K0201", GRID + "        x = «kdsl.dot(words[n], words[n])»\n"),
    "K0202": ("K0202", GRID + "        c[m, n] = kdsl.sum(«v[n] + 1», over=m)\n"),
    "K0203": ("K0203", GRID + "        c[m, n] = «b[n]»\n"),
    "K0204": ("K0204", GRID + "        «c[m, 0]» = v[n]\n"),
    "K0205": ("K0205", GRID + "        «v[n]» = 1\n"),
    "K0206 operator": ("K0206", GRID + "        c[m, n] = «(v[n] > 0) + (v[n] < 1)»\n"),
    "K0206 constant": ("K0206", GRID + "        x = «words[n] - (-1)»\n"),
    "K0206 fill": ("K0206", GRID + "        x = words.load(n.index + 1, fill=«-inf»)\n"),
    "K0206 any": ("K0206", GRID + "        c[m, n] = kdsl.any(«v[n]», over=n)\n"),
    "K0206 where": ("K0206", GRID + "        c[m, n] = kdsl.where(«v[n]», 0, 1)\n"),
    "K0206 store": (
        "K0206",
        "@kdsl.kernel\ndef kernel(x: Tensor[M, f32], y: Out[M, i32]) -> None:\n"
        "    for m in kdsl.grid(M):\n        «y[m]» = x[m]\n",
    ),
    "K0207": ("K0207", GRID + "        x = «words[n] + n.index»\n"),
    "K0208": ("K0208", GRID + "        x = «c[m, n]»\n"),
    "K0209": (
        "K0209",
        GRID
        + "        x = kdsl.zeros((n,), f16)\n        for k in K:\n            «x» = x.to(f32)\n        c[m, n] = x\n",
    ),
    "K0209 number": (
        "K0209",
        GRID + "        x = 0.5\n        for k in K:\n            «x» = k.start\n        c[m, n] = x\n",
    ),
    "K0210": (
        "K0210",
        GRID + "        x = kdsl.zeros((m,), f32)\n        for k in K.tiles(BK):\n            «x» = x + a[m, k]\n",
    ),
    "K0211 if": ("K0211", GRID + "        if «N > 4»:\n            pass\n"),
    "K0211 and": ("K0211", GRID + "        x = «v[n] > 0» and causal\n"),
    "K0211 not": ("K0211", GRID + "        x = not «s»\n"),
    "K0212": (
        "K0212",
        "@kdsl.kernel\ndef kernel(x: Tensor[M, M, T], y: Out[M, T]) -> None:\n"
        "    for m in kdsl.grid(M):\n        y[m] = kdsl.sum(x[:, «:»], over=M)\n",
    ),
    "K0213 number": ("K0213", GRID + "        c[m, n] = kdsl.sum(v[n], over=«0»)\n"),
    "K0213 point": ("K0213", GRID + "        for k in K:\n            x = kdsl.zeros((m, «k»), f32)\n"),
    "K0213 grid": ("K0213", "    for m, n in kdsl.grid(M.tiles(BM), «4»):\n        pass\n"),
    "K0213 argmax": ("K0213", GRID + "        x = kdsl.argmax(v[n] + m.index, over=«(m, n)»)\n"),
    "K0214": ("K0214", GRID + "        c[m, n] = b[«m», n]\n"),
    "K0214 axis": ("K0214", GRID + "        x = kdsl.axis(4)\n        c[m, n] = kdsl.sum(b[«x», n], over=x)\n"),
    "K0215 ragged": ("K0215", GRID + "        x = «kdsl.reshape(v[n], (n,), (m,))»\n"),
    "K0215 extents": ("K0215", GRID + "        x = «kdsl.reshape(b[:, n], (K,), (kdsl.axis(4),))»\n"),
    "K0215 operand": ("K0215", GRID + "        x = kdsl.reshape(«v[n]», (K,), (kdsl.axis(4),))\n"),
    "K0216 loop": ("K0216", GRID + "        for «m» in K:\n            pass\n"),
    "K0216 assigned": ("K0216", GRID + "        «m» = 1\n"),
    "K0216 output": ("K0216", GRID + "        «c» = v[n]\n"),
    "K0217": ("K0217", GRID + "        c[m, n] = b[«-1», n]\n"),
}


@pytest.mark.parametrize(("code", "body"), SOURCE.values(), ids=SOURCE)
def test_a_mistake_is_reported_where_it_is(code: str, body: str, tmp_path: Path) -> None:
    kernel, place = kernel_of(tmp_path, body)
    assert place is not None
    with pytest.raises(KdslError) as caught:
        kernel.elaborate(T=kdsl.f32)
    error = caught.value
    assert error.code == code, error.render()
    assert error.location is not None
    assert (error.location.line, error.location.column) == (place.line, place.column), error.render()
    if place.end is not None:
        assert error.location.end_column == place.end, error.render()
    assert error.hint and "%" not in error.message.replace("K %", "").replace("`%`", ""), error.message


def test_every_code_of_the_front_end_is_tested() -> None:
    tested = {code for code, _ in SOURCE.values()} | {"K0101", "K0113"}
    assert {code for code in CODES if code < "K03"} == tested


def test_a_function_without_a_file_has_no_source() -> None:
    names: dict[str, kdsl.Kernel] = {}
    exec("import kdsl\n@kdsl.kernel\ndef kernel() -> None: pass", names)
    with pytest.raises(KdslError, match=r"K0101.*kernel cannot be read"):
        names["kernel"].elaborate()


def test_only_a_function_can_be_a_kernel() -> None:
    with pytest.raises(KdslError, match="K0101"):
        kdsl.kernel(3)  # type: ignore[call-overload]


def test_a_binding_that_the_kernel_does_not_have_is_named(tmp_path: Path) -> None:
    kernel, place = kernel_of(
        tmp_path, "@kdsl.kernel\ndef «kernel»(c: Out[M, T]) -> None:\n    for m in kdsl.grid(M):\n        c[m] = 0\n"
    )
    with pytest.raises(KdslError, match=r"K0113.*no dtype variable or constant named U") as caught:
        kernel.elaborate(T=kdsl.f32, U=kdsl.f32)
    assert caught.value.location is not None and place is not None
    assert (caught.value.location.line, caught.value.location.column) == (place.line, place.column)


@pytest.mark.parametrize(
    ("body", "underlined"),
    [
        ("\tfor m, n in kdsl.grid(M.tiles(BM), N.tiles(BN)):\n\t\tc[m, n] = «w»[n]\n", "w"),
        (GRID + "        Größe = 'äöü€'; c[m, n] = «w»[n]\n", "w"),
        (GRID + "        c[m, n] = '😀' + «wörter»\n", "wörter"),
    ],
    ids=["tabs", "two bytes", "four bytes"],
)
def test_the_caret_stands_under_the_character_that_is_meant(body: str, underlined: str, tmp_path: Path) -> None:
    kernel, place = kernel_of(tmp_path, body)
    assert place is not None
    with pytest.raises(KdslError) as caught:
        kernel.elaborate(T=kdsl.f32)
    source, carets = (line.partition(" | ")[2] for line in caught.value.render().splitlines()[2:4])
    assert source == place.text
    start = place.column - 1
    # A tab before the caret is a tab in both lines, so that a terminal moves both by as much.
    assert carets == "".join("\t" if character == "\t" else " " for character in source[:start]) + "^" * len(underlined)
    assert source[start:].startswith(underlined)


def test_a_message_has_the_position_the_reason_and_the_way_out(tmp_path: Path) -> None:
    kernel, place = kernel_of(
        tmp_path, GRID + "        peak = kdsl.max(v[n], over=n)\n        x = kdsl.sum(«peak», over=n)\n"
    )
    assert place is not None
    with pytest.raises(KdslError) as caught:
        kernel.elaborate(T=kdsl.f32)
    error = caught.value
    assert error.location is not None
    assert error.render().splitlines() == [
        "error[K0202]: `peak` does not vary over n",
        f"  --> {error.location.file}:{place.line}:{place.column}",
        f"  {place.line} |         x = kdsl.sum(peak, over=n)",
        f"  {' ' * len(str(place.line))} |                      ^^^^",
        "  help: reduce over one of its own axes: it has none",
        "  (kdsl explain K0202)",
    ]


def test_a_mistake_in_a_helper_is_shown_in_the_helper(tmp_path: Path) -> None:
    helper = "@kdsl.inline\ndef twice(x):\n    return «x» + x\n"
    signature = "@kdsl.kernel\ndef kernel(x: Tensor[M, T], y: Out[M, T]) -> None:\n"
    kernel, place = kernel_of(tmp_path, helper + signature + "    for m in kdsl.grid(M):\n        y[m] = twice(x)\n")
    assert place is not None
    with pytest.raises(KdslError, match=r"K0104.*the tensor x") as caught:
        kernel.elaborate(T=kdsl.f32)
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.column) == (place.line, place.column)

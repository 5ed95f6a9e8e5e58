"""Mistakes in calls of operations, accesses by name, branches and run-time loops; in the form of mistakes.py."""

from __future__ import annotations

from tests.frontends.python.mistakes import GRID

HELPER = "@kdsl.inline\ndef helper(x, y):\n    return {}\n"
SIGNATURE = (
    "@kdsl.kernel\ndef kernel(x: Tensor[M, f32], i: Tensor[M, i32], y: InOut[M, f32], z: Out[M, f32]) -> None:\n"
    "    for m in kdsl.grid(M.tiles(4)):\n"
)


def call(body: str, helper: str = "") -> str:
    """A kernel with this body over tiles of x, indices i, in-out y and output z."""
    return (HELPER.format(helper) if helper else "") + SIGNATURE + f"        {body}\n"


OPERATIONS = {
    # Scans, combines and sorts.
    "K0202 scan": ("K0202", GRID + "        x = kdsl.cumsum(«v[n]», over=m)\n"),
    "K0202 sort": ("K0202", GRID + "        x = kdsl.sort(«v[n]», over=m)\n"),
    "K0202 reduce": ("K0202", GRID + "        x = kdsl.reduce(«v[n]», over=m, combine=kdsl.maximum)\n"),
    "K0202 scale": (
        "K0202",
        GRID + "        x = kdsl.dot_scaled(a[m, :], «v[n]», b[:, n], v[n], over=K, groups=(m, n))\n",
    ),
    "K0206 scan": ("K0206", call("h = «kdsl.scan(x[m], over=m, combine='and')»")),
    "K0206 gather": ("K0206", call("y[m] = «kdsl.gather(x[m], x[m], over=m)»")),
    "K0206 histogram": ("K0206", call("h = «kdsl.histogram(x[m], kdsl.axis(4), over=m)»")),
    "K0206 seed": ("K0206", call("y[m] = kdsl.uniform(«i[m]», m.index)")),
    "K0206 offset": ("K0206", call("y[m] = kdsl.uniform(3, «x[m]»)")),
    "K0206 bitcast": ("K0206", call("h = «kdsl.bitcast(x[m], i64)»")),
    "K0206 saturate": ("K0206", call("h = «kdsl.cast(x[m], i32, saturate=True)»")),
    "K0206 power": ("K0206", call("h = «i[m] ** i[m]»")),
    "K0206 check": ("K0206", call("kdsl.check(«x[m]», 'positive')")),
    "K0213 groups": (
        "K0213",
        GRID + "        x = kdsl.dot_scaled(a[m, :], v[n], b[:, n], v[n], over=K, groups=«(m,)»)\n",
    ),
    "K0213 program": ("K0213", call("h = kdsl.program_id(«M»)")),
    "K0215 flip": ("K0215", call("y[m] = «kdsl.flip(x[m], over=m)»")),
    "K0215 split": ("K0215", GRID + "        x, y = «kdsl.split(b[:, n], over=K)»\n"),
    "K0215 join": ("K0215", call("h = «kdsl.join(x[m], x[m], into=kdsl.axis(3))»")),
    "K0215 concat": ("K0215", GRID + "        x = «kdsl.concat([b[:, n], b[:, n]], (K, K), kdsl.axis(2 * K + 1))»\n"),
    "K0215 topk": ("K0215", GRID + "        x = «kdsl.topk(b[:, n], n, over=K)»\n"),
    "K0218 no helper": ("K0218", call("h = kdsl.reduce(x[m], over=m, combine=«max»)")),
    "K0218 number of results": ("K0218", call("h = kdsl.reduce(x[m], over=m, combine=«helper»)", "(x, y)")),
    "K0218 dtype": ("K0218", call("h = kdsl.reduce(x[m], over=m, combine=«helper»)", "x > y")),
    "K0218 index": ("K0218", call("h = «kdsl.reduce(x[m], over=m, combine=helper)»", "x + kdsl.axis(4).index")),
    "K0218 size": ("K0218", call("h = «kdsl.associative_scan(x[m], over=m, combine=helper)»", "x + M")),
    "K0220 combine": ("K0220", call("h = kdsl.scan(x[m], over=m, combine=«'sub'»)")),
    "K0220 rounding": ("K0220", call("h = kdsl.cast(x[m], f16, rounding=«'up'»)")),
    "K0220 message": ("K0220", call("kdsl.print(«x[m]», x[m])")),
    # Accesses by name, and at loaded integers.
    "K0104 float index": ("K0104", call("y[m] = x[«x[m]»]")),
    "K0203 atomic": ("K0203", call("«y.atomic_add(m, m, value=1)»")),
    "K0204 masked": ("K0204", call("«y.store(0, value=1, mask=x[m] > 0)»")),
    "K0205 atomic": ("K0205", call("«x.atomic_add(m, value=1)»")),
    "K0205 scatter": ("K0205", call("«x[i[m]]» = 1")),
    "K0206 mask": ("K0206", call("y[m] = x.load(m, mask=«x[m]», fill=0)")),
    "K0206 atomic": ("K0206", call("«y.atomic_and(m, value=1)»")),
    "K0208 atomic": ("K0208", call("«z.atomic_add(m, value=1)»")),
    "K0208 gather": ("K0208", call("y[m] = «z[i[m]]»")),
    "K0221 missing": ("K0221", call("«y.atomic_cas(m, value=1)»")),
    "K0221 unknown": ("K0221", call("y[m] = «x.load(m, other=0)»")),
    # Branches, loops and limits that are known only when the kernel runs.
    "K0102 condition outside": ("K0102", "    if «s > 0»:\n        pass\n" + GRID + "        pass\n"),
    "K0102 while outside": ("K0102", "    «while s > 0:\n        pass»\n" + GRID + "        pass\n"),
    "K0103 return": (
        "K0103",
        "@kdsl.inline\ndef helper(x):\n    if x > 0:\n        «return 1»\n    return 2\n"
        + SIGNATURE
        + "        y[m] = helper(x[0])\n",
    ),
    "K0104 float limit": ("K0104", GRID + "        for k in K.tiles(BK, stop=«s»):\n            pass\n"),
    "K0104 step": ("K0104", GRID + "        for k in kdsl.range(0, K, «m.start»):\n            pass\n"),
    "K0104 step of zero": ("K0104", GRID + "        for k in kdsl.range(0, K, «0»):\n            pass\n"),
    "K0105 one way": (
        "K0105",
        GRID + "        if s > 0:\n            x = v[n]\n        c[m, n] = «x»\n",
    ),
    "K0107 condition": ("K0107", GRID + "        while «BM» > 4:\n            pass\n"),
    "K0206 condition": ("K0206", GRID + "        if «s»:\n            pass\n"),
    "K0209 while": (
        "K0209",
        GRID + "        x = 0.5\n        while x > s:\n            «x» = K\n        c[m, n] = x\n",
    ),
    "K0219": (
        "K0219",
        GRID + "        x = v[n]\n        if «s > 0»:\n            x = v[n].to(f16)\n        c[m, n] = x\n",
    ),
}

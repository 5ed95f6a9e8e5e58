"""The Triton front end: TTIR text, which Triton's own front end makes of a `@triton.jit` function.

`text.parse_module` reads the text: `ttir.lark` is its grammar, generic over ops; `raw.py` sorts what stands in an op,
`resolve.py` finds the value that each name means and its type; `types.py`, `constants.py` and `places.py` decode types,
numbers and locations. `module.py` is what comes out. Nothing here imports triton: the text is all there is.

`importer.import_kernel` makes a kernel of that: `signature.py` its parameters, `axes.py` which dimensions are one axis,
`scope.py` what each name means; `pointwise.py`, `memory.py`, `tiles.py` and `loops.py` have the ops.
"""

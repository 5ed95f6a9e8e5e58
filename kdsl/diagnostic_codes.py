"""Every diagnostic: its message, what to do, and a page of explanation.

K01xx the source of a kernel   K02xx tiles, axes and types   K03xx what a target cannot do   K04xx the command line
K05xx calling a kernel         K06xx running on the oracle   K07xx IR text   K08xx passes
K09xx the debugger; from K0911 kernels in other languages
"""

from __future__ import annotations

from kdsl.diagnostics import Code

CODES: dict[str, Code] = {
    "K0101": Code(
        "the source of {name} cannot be read",
        "put the kernel in a file; kdsl reads the text of a function, so code made by exec or typed at a prompt "
        "has none",
        "A kernel is compiled from its syntax tree, with the author's lines kept for every message and in every "
        "emitted file. A function that was not defined in a readable file has no such text.",
    ),
    "K0102": Code(
        "a kernel has exactly one grid, at the top level of its body; {name} {problem}",
        "write one `for ... in kdsl.grid(...)` at the top level and put all work inside",
        "The grid says which programs there are. Work that needs two grids, one after the other, is two kernels.",
    ),
    "K0103": Code(
        "{what} has no meaning in a kernel",
        "{instead}",
        "A kernel body may assign names, store to tensors, loop over tiles, points or compile-time sequences, loop "
        "with `while`, and branch. Other Python statements cannot run on a device.",
    ),
    "K0104": Code(
        "this expression has no meaning in a kernel: {what}",
        "use tile operations (`kdsl.exp`, `+`, ...), index variables, and plain Python on values known at compile time",
        "Expressions on tiles are limited to what every target can do. Everything known when the kernel is "
        "compiled may use plain Python.",
    ),
    "K0105": Code(
        "{name} is not defined here{why}",
        "define it before this line; what a loop assigns must have a value before the loop to be used after it",
        "Names follow Python's rules, except that a loop's own names end with the loop: a loop may run zero times, and "
        "the name would have no value then.",
    ),
    "K0106": Code(
        "the parameter or signature of {name} is not understood: {problem}",
        "annotate with Tensor[...], Out[...], InOut[...], Scalar[...], Tile or Const[...]; dims first, the dtype last",
        "A parameter's annotation says its role, its dimensions and its element type, as in "
        "`a: Tensor[M, K, T], c: Out[M, N, f32], BM: Tile = 64, causal: Const[bool] = False`.",
    ),
    "K0107": Code(
        "the tile size {name} is used in an expression",
        "use it only in `Dim.tiles({name})`; if the result shall depend on it, declare it `Const[int]`",
        "Tile sizes belong to the schedule: each target may choose its own. So that this never changes a result, "
        "a Tile parameter may not be computed with, stored, or given as an extent.",
    ),
    "K0108": Code(
        "{name} has no value",
        "{instead}",
        "Constants and tile sizes must be known when a kernel is compiled.",
    ),
    "K0109": Code(
        "the dtype variable {name} is not bound to a dtype",
        "give it in the example: `@kdsl.example({name}=kdsl.bf16)`, or pass arrays whose dtype says it",
        "A kernel is compiled for given element types, because they decide how values promote and where they round.",
    ),
    "K0110": Code(
        "{name} is a plain Python function and is given {argument}, which is known only when the kernel runs",
        "decorate the function with @kdsl.inline to trace its body, or use a kdsl operation",
        "Plain Python functions run while the kernel is compiled, so they can only compute with compile-time values.",
    ),
    "K0111": Code(
        "this fails while the kernel is compiled: {problem}",
        "correct the expression; sizes are symbolic here, so use kdsl operations for what depends on them",
        "Expressions on compile-time values run as plain Python. This one raised an exception.",
    ),
    "K0112": Code(
        "two different things are both named {name}",
        "rename one of them",
        "Dimensions, dtype variables and parameters are all given by name in examples, calls and emitted files, so no "
        "two of a kernel may share one; nor may two Dim classes from different modules.",
    ),
    "K0113": Code(
        "{kernel} has no dtype variable or constant named {name}",
        "check the spelling against the kernel's signature",
        "Examples and elaboration bind dtype variables and Const parameters by name.",
    ),
    "K0114": Code(
        "the calls of @kdsl.inline functions are nested more than {limit} deep",
        "write a loop; a kernel cannot recurse",
        "Helpers are copied into the kernel where they are called, so recursion would never end.",
    ),
    "K0115": Code(
        "the constant {name} is {value}, which is no {expected}",
        "give it a value of that type",
        "A Const parameter decides what a kernel does, so its value has to be one that the annotation names.",
    ),
    "K0201": Code(
        "{operation}: {problem}",
        "name the axis with `over=`; both tiles must vary over it, and share no other tile axis",
        "A dot contracts one tile axis that both operands have. Left out, `over` is the one they share.",
    ),
    "K0202": Code(
        "{value} does not vary over {axis}",
        "reduce over one of its own axes: {axes}",
        "A reduction names the axis that it removes. Axes are told apart by their index variable, so two tiles "
        "over the same dimension have different axes.",
    ),
    "K0203": Code(
        "{tensor} has {rank} dimensions and is accessed with {given} indices",
        "give one index for each dimension; `:` takes a dimension whole",
        "Each dimension of a tensor needs an index variable, an integer, a form of them, or `:`.",
    ),
    "K0204": Code(
        "the stored value varies over {axes}, which the index does not mention",
        "reduce over {axes} first, or index the tensor with it",
        "Every lane of a stored tile needs a place of its own; lanes that share one would overwrite each other.",
    ),
    "K0205": Code(
        "{tensor} is an input and cannot be stored to",
        "declare it Out[...] or InOut[...]",
        "Only outputs and in-out tensors may be written.",
    ),
    "K0206": Code(
        "{operation}: {problem}",
        "give operands of types that it takes, with `.to(...)` where need be",
        "Each operation takes certain kinds of element types; the op table lists them.",
    ),
    "K0207": Code(
        "no dtype holds both {left} and {right}",
        "cast one of the operands with `.to(...)`",
        "Operands promote to a common type, as in JAX. Unsigned 64-bit and signed integers have none.",
    ),
    "K0208": Code(
        "{tensor} is an output and cannot be read",
        "declare it InOut[...], or keep the value in a name",
        "An output holds nothing until the kernel has written it.",
    ),
    "K0209": Code(
        "{name} is {before} before the loop and {after} after an iteration",
        "make both the same dtype, with `.to(...)` or by starting from `kdsl.zeros(axes, {after})`",
        "What a loop carries from one iteration to the next keeps its dtype; a silent cast would hide a rounding.",
    ),
    "K0210": Code(
        "{name} would leave the loop while it varies over {axis}, which ends with the loop",
        "reduce over {axis}, or store the tile inside the loop",
        "Which lanes of a loop's tile are valid differs from one iteration to the next, so its axis means nothing "
        "after the loop.",
    ),
    "K0211": Code(
        "the condition {condition} and known only when the kernel runs",
        "use `kdsl.where(condition, x, y)`, and `&`, `|`, `~` on bool tiles; the statements `if` and `while` take one "
        "bool a program, and `and`, `or`, `not`, `x if c else y` compile-time values (Const parameters)",
        "A branch on a tile would have to take both ways at once; `kdsl.where` says so. A statement `if` or `while` "
        "may depend on one value a program, such as a scalar, a loaded number or the result of a reduction.",
    ),
    "K0212": Code(
        "{dim} is met twice in one access with `:`",
        "use an index variable for one of them",
        "`:` is the dimension's own axis, the same wherever it occurs; two different places need two axes.",
    ),
    "K0213": Code(
        "{thing} is no axis",
        "give index variables of tiles, or Dim classes",
        "Shapes and reductions are stated by axes, never by positions or numbers.",
    ),
    "K0214": Code(
        "dimension {dimension} of {tensor} is {expected}, but {index} runs over {got}",
        "index it with a variable over {expected}, or with `{index}.index`, which promises that it stays inside; "
        "`{tensor}.load(..., fill=...)` is for what may not",
        "An index variable is in bounds only in the dimension that it runs over.",
    ),
    "K0215": Code(
        "{operation}: {problem}",
        "use whole dimensions (`:`) and axes made by `kdsl.axis`, with as many lanes as the operation needs",
        "Reshape, flip, concat, join, split and relabel move lanes, so they are only legal where every lane is valid, "
        "and source and target have as many lanes. The last tile of a dimension may be ragged, so the axes of `tiles` "
        "cannot be rearranged.",
    ),
    "K0216": Code(
        "{name} is already in use as {what} here",
        "give the inner loop's variable, or what is assigned, another name; a store is written `{name}[...] = ...`",
        "An axis is told apart by its index variable, which must be unique and unchanged while it lives. An output "
        "whose name is assigned to could no longer be written.",
    ),
    "K0217": Code(
        "index {index} is outside dimension {dimension} of {tensor}, which has {extent} elements",
        "count from 0; for the last element write the dimension minus one, as in `x[N - 1]`",
        "Indices are places counted from the start; negative ones do not count from the end, because an index "
        "form such as `i - 1` may become negative by mistake.",
    ),
    "K0218": Code(
        "{operation}: {problem}",
        "give an @kdsl.inline function of two values (of two tuples, for a tuple of tiles) that returns as much, of "
        "the same dtypes, and uses nothing but its arguments, numbers and elementwise operations",
        "The combine of a reduction or scan is applied to any two lanes, in an order that each target chooses, so it "
        "has to be a function of those two lanes alone, and associative.",
    ),
    "K0219": Code(
        "{name} is {first} after one way of the branch and {second} after the other",
        "make both the same dtype, with `.to(...)`",
        "What a branch assigns has one dtype after it; a silent cast would hide a rounding.",
    ),
    "K0220": Code(
        "{operation}: {problem}",
        "give a word that it knows; messages are plain text",
        "Options of operations are given as words that are known when the kernel is compiled.",
    ),
    "K0221": Code(
        "{tensor}.{access}: {problem}",
        "write `{tensor}.load(*index, mask=, fill=)`, `.store(*index, value=, mask=)`, `.atomic_add(*index, value=, "
        "mask=)` or `.atomic_cas(*index, expected=, value=, mask=)`",
        "Accesses by name take one index for each dimension by position, and everything else by name.",
    ),
    "K0301": Code(
        "{target} cannot do this: {problem}",
        "{instead}",
        "The target has no way to say this operation. A refusal is a verdict: nothing is emitted rather than something "
        "else.",
    ),
    "K0302": Code(
        "{target} has no {dtype} {what}",
        "cast to a type that it has, such as f32 or i32",
        "Targets differ in the element types that they can load, store and compute with.",
    ),
    "K0303": Code(
        "{target} needs tiles whose sizes are powers of two, and `{op}` moves lanes along {axis} of {extent} lanes",
        "rearrange axes whose numbers of lanes are powers of two",
        "A target with power-of-two tiles pads other axes; padded lanes cannot be moved by reshape, flip, concat and "
        "their like.",
    ),
    "K0304": Code(
        "{target} cannot use the tile size {name} = {value}: {problem}",
        "choose another with `--set {name}=...`",
        "Targets restrict tile sizes: powers of two for Triton, multiples of the register tile for Pallas.",
    ),
    "K0305": Code(
        "the tool-chain of {target} is not installed: {missing}",
        "install it with `pip install 'kdsl-lang[{extra}]'`",
        "Source can be written without the tool-chain, but neither compiled nor run.",
    ),
    "K0306": Code(
        "{target} does not compile it for {arch}: {problem}",
        "change the tile sizes or the kernel; the message is the compiler's own",
        "The target's own compiler rejected the emitted source.",
    ),
    "K0307": Code(
        "the emitted code for {target} fails when it runs: {problem}",
        "this is a bug in kdsl unless the kernel accesses memory out of bounds: please report it with the kernel",
        "The emitted code was run on a host stand-in and raised an error.",
    ),
    "K0308": Code(
        "{target}: no form fits this kernel: {problem}",
        "{instead}",
        "A target maps kernels in one of a few forms, each with conditions. The message says which condition failed.",
    ),
    "K0309": Code(
        "the target {target} is not installed",
        "install a backend for it; `kdsl targets` lists what is installed",
        "Targets are found among the installed packages, by the entry point group `kdsl.backends`. This name is "
        "one that kdsl knows, but no installed package provides it.",
    ),
    "K0310": Code(
        "the emitted code for {target} does not end: {problem}",
        "try smaller sizes; a loop that ends only where a rounded number meets a limit may never end elsewhere",
        "The emitted code was run on a host stand-in, which is slow for large sizes, and was stopped. Or it never "
        "ends: a `while` that waits for a number to come within a tolerance ends on the oracle, and on a target that "
        "rounds otherwise it may not.",
    ),
    "K0401": Code(
        "{path} cannot be loaded: {problem}",
        "give a Python file, a folder of them, or an importable module",
        "SRC is a file, a folder or a module; `SRC::NAME` picks one kernel.",
    ),
    "K0402": Code(
        "{path} has no kernel{name}",
        "decorate a function with @kdsl.kernel; kernels there: {known}",
        "Only functions decorated with @kdsl.kernel at the top level of a module are found.",
    ),
    "K0403": Code(
        "there is no target {name}",
        "choose from: {known}",
        "Targets are found among the installed packages, by entry point.",
    ),
    "K0404": Code(
        "there is no architecture {name}",
        "choose from: {known}",
        "Architectures are named as in `kdsl targets`.",
    ),
    "K0405": Code(
        "{text} is no setting",
        "write NAME=VALUE with a tile size of the kernel, as in `--set BM=64`",
        "`--set` chooses tile sizes; names that a kernel does not have are an error unless another kernel has them.",
    ),
    "K0406": Code(
        "{kernel} has no example",
        "decorate it with @kdsl.example(M=..., T=...)",
        "Build, check and verify need sizes and dtypes to work on.",
    ),
    "K0407": Code(
        "the example of {kernel} does not fit: {problem}",
        "give every size, dtype variable and constant that has no default, and nothing else",
        "An example names sizes, dtypes, constants and tile sizes of the kernel.",
    ),
    "K0408": Code(
        "{first} and {second} would both be written to {file}",
        "build them to different folders: `SRC::KERNEL` picks one, `--out` says where to",
        "An emitted file is named for its kernel, so that it can be found. Two kernels of one name need two folders.",
    ),
    "K0409": Code(
        "{path} cannot be written: {problem}",
        "give a file or folder that kdsl may write to",
        "`--out` names a folder and `--json` a file. Both are made where they do not exist; a manifest that kdsl "
        "did not write is not overwritten.",
    ),
    "K0410": Code(
        "cannot tell what {name} may hold: {problem}",
        'declare it: `@kdsl.example(..., inputs={{"{name}": kdsl.testing.integers(0, N)}})`',
        "`kdsl verify` draws the inputs of a kernel. Integers that become places or limits of loops have to lie inside "
        "the tensors, and what is stored to must not be stored to twice: ranges are read off the kernel. Where that is "
        "not possible, the example says how to draw: `kdsl.testing.integers(low, high)`, `kdsl.testing.distinct(low, "
        "high)`, `kdsl.testing.offsets(total)`, a number for all elements, or a function of a NumPy generator, the "
        "shape and the sizes.",
    ),
    "K0411": Code(
        "the inputs that {kernel} declares for {name} do not fit: {problem}",
        "correct `inputs={{...}}` of the example",
        "`inputs` of an example names tensors of the kernel that are not outputs, and gives for each a number or a "
        "function of a NumPy generator, the shape and the sizes that returns an array of that shape.",
    ),
    "K0412": Code(
        "{path} is no counter-example of `kdsl verify`: {problem}",
        "delete it, or name another folder with `--save-failures`",
        "`kdsl verify --save-failures DIR` keeps one Python file for each kernel and target that failed, and tries it "
        "first the next time. The files are read, not run: `CASE` has to be a literal as it was written.",
    ),
    "K0501": Code(
        "{kernel} needs the size {size}",
        "pass it by name",
        "Sizes that no array's shape shows are passed as integers.",
    ),
    "K0502": Code(
        "the kernel requires {constraint}, which does not hold for {sizes}",
        "call it with sizes that satisfy the constraint",
        "`kdsl.require` states what a kernel needs of its sizes; it is checked at every call.",
    ),
    "K0503": Code(
        "{kernel} has no size or tile parameter named {name}",
        "check the spelling against the kernel's signature",
        "Sizes and tile sizes are passed by name; `kdsl show` lists the `size` and `tile` names of a kernel.",
    ),
    "K0504": Code(
        "{name} = {value} is no valid size",
        "sizes are zero or more, tile sizes one or more",
        "A dimension may be empty; a tile may not.",
    ),
    "K0505": Code(
        "{name}: expected {expected}, got {got}",
        "pass an array of that dtype and shape",
        "Arrays must have the dtype that the signature says, and shapes that agree with each other.",
    ),
    "K0601": Code(
        "out of bounds: {access}, where {place}",
        "limit the index, or use `.load(..., fill=...)` for reads that may leave the tensor",
        "A valid lane accessed an element that the tensor does not have.",
    ),
    "K0602": Code(
        "assertion failed: {message}, where {place}",
        "look at the values in that program, or correct the assertion",
        "An assert in the kernel did not hold in a valid lane.",
    ),
    "K0603": Code(
        "{what} uses a value that means nothing: {cause}, where {place}",
        "give the load a fill, limit the lanes with a mask, or write the element first",
        "A lane read where its load was masked off without a fill, an element that nothing was written to, or another "
        "value that an op leaves undefined, and that reached a store, an address, a branch or an assertion. What such "
        "a lane holds differs between targets and from run to run.",
    ),
    "K0604": Code(
        "race: {what} touches {element}, which {other}, where {place}",
        "let each program write elements of its own, use an atomic, or split the kernel in two",
        "Programs of a grid run in any order and at once. An element that one of them writes may not be touched by "
        "another, but by atomics alone, or where all write the same bits and none reads.",
    ),
    "K0605": Code(
        "{count} of {total} elements of {name} are never written, {first} first",
        "let the grid cover the tensor, or make it an InOut that callers fill",
        "An output holds whatever was in memory wherever the kernel writes nothing.",
    ),
    "K0606": Code(
        "overflow in an address: {what} of {value} does not fit {dtype}, where {place}",
        "compute the index in i64",
        "Arithmetic on signed integers wraps around, and the result was used as an index, a mask, a limit of a loop or "
        "a branch.",
    ),
    "K0607": Code(
        "{value} was born from finite numbers in {cause} and reached {what}, where {place}",
        "guard the operation: keep the denominator from zero, subtract the maximum before an exponential, give rows "
        "without a valid lane a value of their own",
        "A NaN or an infinity came out of an operation whose operands were finite (a NaN: whose operands had none), in "
        "a run whose inputs were finite there, and was stored or decided an address or a branch. It may be meant so: a "
        "warning, no error.",
    ),
    "K0701": Code(
        "this is no IR text: {problem}",
        "see the grammar in kdsl/ir/kir.lark; `kdsl show` prints examples",
        "IR text is what `kdsl show` prints; it can be parsed back into an equal kernel.",
    ),
    "K0702": Code(
        "this IR is malformed: {problem}",
        "correct the op that is named; the op table in kdsl/ir/ops.py says what each takes",
        "The verifier checks every op against its row of the op table.",
    ),
    "K0801": Code(
        "{factor} points of {axis} cannot be taken at once: {problem}",
        "{instead}",
        "Batching runs neighbouring programs of a grid, or iterations of a loop, as lanes of one tile. They must not "
        "depend on one another: no element that one of them writes may be touched by another, and what a loop carries "
        "may only gather what its iterations give (a sum, a maximum). It is refused where that is not proven.",
    ),
    "K0802": Code(
        "the kernels cannot be compared: {name} is {here} in the first and {there} in the second",
        "give both kernels parameters of the same names, roles and ranks",
        "kdsl diff runs two kernels on the same arguments and compares what they read for each element of an output.",
    ),
    "K0803": Code(
        "no sizes are found that both kernels take and that have at most {most} elements in all tensors together",
        "name sizes with --size M=4",
        "kdsl diff follows each element of each tensor, which takes long for large ones, so it looks for small sizes "
        "that fit the constraints of both kernels.",
    ),
    "K0901": Code(
        "{program} is no program of {kernel}",
        "give one number for each axis of the grid, which are: {grid}; the last program is {last}",
        "A program is named by its place in the grid, as in `kdsl debug SRC::KERNEL --program 3,0`. Each number counts "
        "tiles (or points) of one axis, from 0.",
    ),
    "K0902": Code(
        "{name} has no value here{why}",
        "`values` lists what has one",
        "A debugger shows what a name stands for before the statement at which the program has stopped. Names that "
        "only a loop assigns end with it.",
    ),
    "K0903": Code(
        "line {place} {what}",
        "lines that fit are: {known}",
        "A debugger stops at lines from which some operation comes. A line that only renames a tile, or whose value is "
        "known when the kernel is compiled, has none.",
    ),
    "K0904": Code(
        "{text} cannot be shown: {problem}",
        "write NAME, NAME[3, 0:4] or NAME.start",
        "A debugger shows names and parts of tiles and tensors. Indices of a tile count its lanes from 0; those of a "
        "tensor are places in it. It computes no expressions.",
    ),
    "K0905": Code(
        "the grid of {kernel} has no program: it is {grid}",
        "choose an example with larger sizes: `--example N`",
        "A dimension of size 0 leaves a grid empty, so there is nothing to step through.",
    ),
    "K0906": Code(
        "the program cannot go on: {why}",
        "`program` starts it again, `program 3,0` another",
        "After a fault, or at the end of the grid, tiles and tensors can still be looked at.",
    ),
    "K0907": Code(
        "{path} has {count} kernels",
        "choose one, as in `{path}::{first}`; they are: {known}",
        "A debugger runs one kernel. A file or module may define several, and a name after `::` picks one of them.",
    ),
    "K0911": Code(
        "this is no TTIR text: {problem}",
        "give the text that Triton prints for its `ttir` stage",
        "TTIR is the MLIR text that Triton's front end makes of a @triton.jit function. Any op is read; what the text "
        "must have is MLIR's form: ops with their types, blocks, attributes and locations. The place that is named is "
        "in the TTIR text, not in the Python source.",
    ),
    "K0912": Code(
        "Triton makes no TTIR of {name}: {problem}",
        "correct the kernel, the signature or the constexprs; what Triton's front end refuses cannot be read",
        "A @triton.jit function is read by way of Triton's own front end, which needs a type or a value for each "
        "parameter and no GPU.",
    ),
    "K0913": Code(
        "{what} is not read (line {line} of the TTIR)",
        "write that part of the kernel with operations that are read, or write the kernel with @kdsl.kernel",
        "A Triton kernel is read op by op from its TTIR. An op, or a form of it, that this version of the reader does "
        "not know is refused: nothing is guessed or left out.",
    ),
}

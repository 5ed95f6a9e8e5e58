"""Long lines of emitted Python, broken as the repository's formatter breaks them."""

from __future__ import annotations

WIDTH = 120

_OPEN, _CLOSE = "([{", ")]}"


def wrap(line: str, width: int = WIDTH) -> list[str]:
    """The line, broken inside its longest bracket if it is longer than `width`: the content on a line of its own, or
    one element a line. A line without brackets, or of one long string, stays as it is."""
    if len(line) <= width:
        return [line]
    line = _with_brackets(line, width)
    pairs = _top_level_brackets(line)
    if not pairs:
        return [line]
    first = line.index("(") if line.lstrip().startswith(("(", "def ")) else None
    start, end = next((pair for pair in pairs if pair[0] == first), max(pairs, key=lambda pair: pair[1] - pair[0]))
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    body = line[start + 1 : end].rstrip(",")
    head, tail = line[: start + 1], indent[4:] + line[end:]
    if len(indent + body) <= width:
        return [head, indent + body, *wrap(tail, width)]
    elements = _elements(body)
    if len(elements) == 1:
        return [head, *wrap(indent + body, width), tail]
    return [head, *(part for element in elements for part in wrap(f"{indent}{element},", width)), *wrap(tail, width)]


def _with_brackets(line: str, width: int) -> str:
    """Brackets around the names of a tuple that is returned, or assigned to and too long to stand before a call."""
    statement = line.lstrip()
    indent = line[: len(line) - len(statement)]
    keyword, _, returned = statement.partition("return ")
    if not keyword and len(_elements(returned)) > 1:
        return f"{indent}return ({returned})"
    targets, equals, value = statement.partition(" = ")
    if equals and len(_elements(targets)) > 1 and len(f"{indent}{targets} = {value.partition('(')[0]}(") > width:
        return f"{indent}({targets}) = {value}"
    return line


def _top_level_brackets(line: str) -> list[tuple[int, int]]:
    """Places of the brackets that are in no other, outside strings, that hold something."""
    pairs, depth, start = [], 0, 0
    for place, character in _code(line):
        if character in _OPEN:
            start = place if depth == 0 else start
            depth += 1
        elif character in _CLOSE and depth:  # a line may begin with the end of another's bracket
            depth -= 1
            if depth == 0 and place > start + 1:
                pairs.append((start, place))
    return pairs


def _elements(body: str) -> list[str]:
    """What the commas of a bracket's content separate."""
    elements, depth, start = [], 0, 0
    for place, character in _code(body):
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == "," and depth == 0:
            elements.append(body[start:place].strip())
            start = place + 1
    return [element for element in (*elements, body[start:].strip()) if element]


def _code(text: str) -> list[tuple[int, str]]:
    """The characters with their places, without those in string literals."""
    found, quote = [], ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote and text[place - 1] != "\\" else quote
        elif character in "\"'":
            quote = character
        else:
            found.append((place, character))
    return found

"""What several targets print: the host side of a kernel, integer expressions, layouts, source formatting."""

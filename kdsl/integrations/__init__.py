"""Bridges to other people's libraries: the only part of kdsl that imports them, and only inside functions."""

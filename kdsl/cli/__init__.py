"""The command `kdsl`."""

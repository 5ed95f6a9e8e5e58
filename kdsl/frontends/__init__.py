"""Front ends: source languages read into the IR, one folder each."""

"""Running things: worker processes for the tool-chains, calls, artefacts."""

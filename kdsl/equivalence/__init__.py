"""Is the result right: verdicts, input generation, comparison with the oracle."""

"""The targets, one package each; installed as kdsl.backends and found by the entry-point group "kdsl.backends"."""

"""Ready-made kernels written in kdsl; installed as kdsl.kernels."""

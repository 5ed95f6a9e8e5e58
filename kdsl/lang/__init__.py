"""What a kernel author writes: dimensions, dtypes, tensors, tile operations and the decorators. Pure declarations."""

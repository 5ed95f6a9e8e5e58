"""Mutation: does the judge notice a kernel that is wrong? `mutants_of` makes such kernels, `Judge` tries them."""

"""The judge of the judge: faults and mutants that verify has to find, and what it takes for that."""

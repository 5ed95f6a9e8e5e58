"""The IR: typed SSA over named axes, with structured regions. `ops.py` is the table that everything else reads."""

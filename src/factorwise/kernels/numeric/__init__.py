"""Numbers in lanes, optimizers' steps, losses."""

"""SIMD lanes, optimizer steps, boosting of tables, and losses."""

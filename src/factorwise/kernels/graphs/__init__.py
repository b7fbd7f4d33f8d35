"""Trees, message passing and mean field on factor graphs."""

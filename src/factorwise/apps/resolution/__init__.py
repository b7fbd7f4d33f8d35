"""Entity resolution: records in, entities out."""

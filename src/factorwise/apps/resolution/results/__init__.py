"""What resolving gives: entities, how sure they are, their names, and why."""

"""Clusterings of up to millions of items, in shards and threads: walks, search and posterior."""

"""Tables of records from files, folders, databases, object stores and memory."""

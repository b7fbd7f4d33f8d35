"""Tables of records, wherever they are: files, folders, databases, object stores, memory."""

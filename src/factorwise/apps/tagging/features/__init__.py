"""Attributes of tokens: from columns, dictionaries, matrices, lists of words."""

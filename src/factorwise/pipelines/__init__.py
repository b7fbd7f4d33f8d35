"""Applications put together: plain text to mentions and entities."""

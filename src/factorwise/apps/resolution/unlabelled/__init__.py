"""Resolution without labels: measured on anchors, pairs that are equal in a rare identity."""

"""Entity resolution without labels, fitted on anchors: pairs with the same rare identity."""

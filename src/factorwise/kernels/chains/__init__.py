"""Linear chains: attributes, forward-backward, gradients, decoding."""

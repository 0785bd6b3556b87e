"""tensorflow.python.autograph.core: options, states and scopes of conversions."""

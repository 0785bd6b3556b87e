"""tensorflow.python.autograph.converters: one step of the conversion each, from trees to trees."""

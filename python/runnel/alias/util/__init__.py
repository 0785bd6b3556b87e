"""What is behind tensorflow.python.util (decorators, deprecation, strict mode), and tools of tensorflow.python.framework."""

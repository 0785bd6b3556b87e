"""tensorflow.examples, as far as published programs import it: the reader of MNIST."""

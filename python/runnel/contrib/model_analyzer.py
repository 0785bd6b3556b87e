"""tf.contrib.slim.model_analyzer: the size of a graph."""


def analyze_vars(variables, print_info=False):
    """Returns (number of elements, bytes) of variables."""
    total, total_bytes = 0, 0
    if print_info:
        print("---------")
        print("Variables: name (type shape) [size]")
        print("---------")
    for var in variables:
        count = var.shape.num_elements() or 0
        total, total_bytes = total + count, total_bytes + count * var.dtype.size
        if print_info:
            print("%s (%s %s) [%d, bytes: %d]" % (
                var.name, var.dtype.name, "x".join(str(d) for d in var.shape.as_list()), count,
                count * var.dtype.size))
    if print_info:
        print("Total size of variables: %d" % total)
        print("Total bytes of variables: %d" % total_bytes)
    return total, total_bytes


def analyze_ops(graph, print_info=False):
    """Returns the number of elements of all outputs of a graph, as far as they are known."""
    total = 0
    for op in graph.get_operations():
        for output in op.outputs:
            total += output.shape.num_elements() or 0 if output.shape.is_fully_defined() else 0
            if print_info:
                print("%s -> (%s %s)" % (op.name, output.dtype.name, output.shape))
    return total

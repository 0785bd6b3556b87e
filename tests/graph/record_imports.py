#!/usr/bin/env python3
"""Records stock TensorFlow's results of importing small GraphDefs.

usage: record_imports.py > data/import_cases.txt     (with the python of the venv that has the wheel)
       record_imports.py --graphs data               (writes the larger fixtures, *.pb)

Each case of the output is a block of lines "key value" that import_test.c reads: what is in the graph
before (pre), the options, the GraphDef in hex (def), then the answer: code, message, the nodes that
the graph then has, and the mappings that were missing.
"""
import ctypes as C
import os
import socket
import sys

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import attr_value_pb2, graph_pb2

lib = C.CDLL(os.path.join(os.path.dirname(tf.__file__), 'libtensorflow_cc.so.2'))
Pointer = C.c_void_p


class Output(C.Structure):
    _fields_ = [('op', Pointer), ('index', C.c_int)]


class Buffer(C.Structure):
    _fields_ = [('data', Pointer), ('length', C.c_size_t), ('deallocator', Pointer)]


for name in ('NewStatus NewGraph NewOperation FinishOperation GraphOperationByName '
             'NewImportGraphDefOptions NewBuffer NewBufferFromString '
             'GraphImportGraphDefWithResults').split():
    getattr(lib, 'TF_' + name).restype = Pointer
lib.TF_Message.restype = C.c_char_p
status = Pointer(lib.TF_NewStatus())
keep = []  # stock borrows the names of mappings


def add_placeholder(graph, name, dtype):
    desc = Pointer(lib.TF_NewOperation(graph, b'Placeholder', name.encode()))
    value = attr_value_pb2.AttrValue(type=dtype).SerializeToString()
    lib.TF_SetAttrValueProto(desc, b'dtype', value, C.c_size_t(len(value)), status)
    lib.TF_FinishOperation(desc, status)


def operation(graph, name):
    return Pointer(lib.TF_GraphOperationByName(graph, name.encode()))


def text(name):
    keep.append(name.encode())
    return keep[-1]


def export(graph):
    pointer = lib.TF_NewBuffer()
    lib.TF_GraphToGraphDef(graph, Pointer(pointer), status)
    buffer = C.cast(pointer, C.POINTER(Buffer))[0]
    out = graph_pb2.GraphDef()
    out.ParseFromString(C.string_at(buffer.data, buffer.length) if buffer.length else b'')
    return out


def missing(results):
    count = C.c_int()
    names = C.POINTER(C.c_char_p)()
    indexes = C.POINTER(C.c_int)()
    lib.TF_ImportGraphDefResultsMissingUnusedInputMappings(
        results, C.byref(count), C.byref(names), C.byref(indexes))
    return sorted((names[i].decode(), indexes[i]) for i in range(count.value))


def record(title, definition, pre=(), prefix=None, uniquify_names=False, uniquify_prefix=False,
           device=None, maps=(), controls=(), returns=(), return_nodes=()):
    """pre: "name" or "name:int32"; maps: ("x:0" or "^x", "in:0" or "^in"); returns: "x:0"."""
    graph = Pointer(lib.TF_NewGraph())
    lines = ['case ' + title]
    for item in pre:
        name, _, dtype = item.partition(':')
        add_placeholder(graph, name, 3 if dtype == 'int32' else 1)
        lines.append('pre ' + item)
    options = Pointer(lib.TF_NewImportGraphDefOptions())
    if prefix is not None:
        lib.TF_ImportGraphDefOptionsSetPrefix(options, text(prefix))
        lines.append('prefix ' + prefix)
    if uniquify_names:
        lib.TF_ImportGraphDefOptionsSetUniquifyNames(options, 1)
        lines.append('uniquify_names')
    if uniquify_prefix:
        lib.TF_ImportGraphDefOptionsSetUniquifyPrefix(options, 1)
        lines.append('uniquify_prefix')
    if device:
        lib.TF_ImportGraphDefOptionsSetDefaultDevice(options, text(device))
        lines.append('device ' + device)
    for source, target in maps:
        lines.append(f'map {source} {target}')
        if target.startswith('^'):
            edge = Output(operation(graph, target[1:]), -1)
        else:
            name, _, index = target.partition(':')
            edge = Output(operation(graph, name), int(index))
        name, index = (source[1:], -1) if source.startswith('^') else source.split(':')
        lib.TF_ImportGraphDefOptionsAddInputMapping(options, text(name), int(index), edge)
    for name in controls:
        lines.append('control ' + name)
        lib.TF_ImportGraphDefOptionsAddControlDependency(options, operation(graph, name))
    for item in returns:
        lines.append('return ' + item)
        name, index = item.split(':')
        lib.TF_ImportGraphDefOptionsAddReturnOutput(options, text(name), int(index))
    for name in return_nodes:
        lines.append('return_node ' + name)
        lib.TF_ImportGraphDefOptionsAddReturnOperation(options, text(name))
    data = definition
    if isinstance(definition, str):
        data = text_format.Parse(definition, graph_pb2.GraphDef()).SerializeToString(
            deterministic=True)
    lines.append('def ' + data.hex())
    buffer = Pointer(lib.TF_NewBufferFromString(data, C.c_size_t(len(data))))
    results = lib.TF_GraphImportGraphDefWithResults(graph, buffer, options, status)
    message = lib.TF_Message(status).decode().replace(socket.gethostname(), '<host>')
    message = message.replace('\\', '\\\\').replace('\n', '\\n').replace('\t', '\\t')
    lines.append(f'code {lib.TF_GetCode(status)}')
    lines.append('message ' + message)
    exported = export(graph)
    for node in exported.node:
        lines.append(' '.join(['node', node.name, node.op, node.device or '-', *node.input]))
        for key in sorted(node.attr):
            if node.attr[key].WhichOneof('value') != 'tensor':
                value = node.attr[key].SerializeToString(deterministic=True).hex()
                lines.append(f'attr {key} {value}')
    lines.append(f'versions {exported.versions.producer} {exported.versions.min_consumer}')
    if results:
        lines += [f'missing {name} {index}' for name, index in missing(Pointer(results))]
    print('\n'.join(lines + ['end', '']))


def placeholder(name, dims=None, dtype='DT_FLOAT'):
    shape = '' if dims is None else 'attr{key:"shape" value{shape{%s}}}' % ''.join(
        'dim{size:%d}' % d for d in dims)
    return 'node{name:"%s" op:"Placeholder" attr{key:"dtype" value{type:%s}} %s}' % (
        name, dtype, shape)


def node(name, op, *inputs, T='DT_FLOAT', attrs=''):
    listed = ' '.join('input:"%s"' % i for i in inputs)
    typed = 'attr{key:"T" value{type:%s}}' % T if T else ''
    return 'node{name:"%s" op:"%s" %s %s %s}' % (name, op, listed, typed, attrs)


def attr(key, value):
    return 'attr{key:"%s" value{%s}}' % (key, value)


X = placeholder('x')
LOOP = (node('e', 'Enter', 'x', attrs=attr('frame_name', 's:"f"')) +
        node('m', 'Merge', 'e', 'ni', attrs=attr('N', 'i:2')) + node('ls', 'Less', 'm', 'e') +
        node('lc', 'LoopCond', 'ls', T=None) + node('s', 'Switch', 'm', 'lc') +
        node('n', 'Neg', 's:1') + node('ni', 'NextIteration', 'n') + node('ex', 'Exit', 's'))
FUNCTION = ('library{function{signature{name:"F" input_arg{name:"a" type:DT_FLOAT} '
            'output_arg{name:"b" type:DT_FLOAT}} node_def{name:"n" op:"Neg" input:"a" ' +
            attr('T', 'type:DT_FLOAT') + '} ret{key:"b" value:"n:y:0"}} '
            'gradient{function_name:"F" gradient_func:"F"}}')


def record_all():
    neg = node('n', 'Neg', 'x')
    record('plain', X + neg)
    record('any order', neg + X)
    record('missing type', X + node('n', 'Neg', 'x', T=None))
    record('unknown input', neg)
    record('wrong type', X + node('n', 'Neg', 'x', T='DT_INT32'))
    record('type not allowed', X + node('n', 'Neg', 'x', T='DT_STRING'))
    record('output out of range', X + node('n', 'Neg', 'x:1'))
    record('output is no number', X + node('n', 'Neg', 'x:abc'))
    record('negative output', X + node('n', 'Neg', 'x:-1'))
    record('too few inputs', X + node('n', 'Neg'))
    record('too many inputs', X + node('n', 'Neg', 'x', 'x'))
    record('name twice', X + X)
    record('name taken', X, pre=['x'])
    record('name is a prefix', X, pre=['x/y'])
    for name in ('', 'a b', '_a', '-a', 'a>', '>a', 'a>b', 'a>_b', '.a', 'a:0', '^a', 'a//b/', '0'):
        record('name ' + repr(name), 'node{name:"%s" op:"NoOp"}' % name)
    record('bad prefix', X, prefix='p q')
    record('prefix of an internal name', X, prefix='_p')
    record('unknown op', node('a', 'NoSuchOp', T=None))
    record('no op', 'node{name:"a"}')
    record('control before data', X + node('n', 'Neg', '^x', 'x'))
    record('controls sorted, once', placeholder('b') + placeholder('a') + X +
           node('n', 'Neg', 'x', '^x', '^b', '^a', '^b'))
    record('empty input', X + node('n', 'Neg', ''))
    record('unknown control', node('n', 'NoOp', '^y', T=None))
    record('control with a port', X + node('n', 'NoOp', '^x:0', T=None))
    record('prefix with slash', X, prefix='p/')
    record('prefix, device, class', X + node('k', 'NoOp', T=None, attrs='') +
           node('n', 'Neg', 'x', '^x', attrs=attr('_class', 'list{s:"loc:@x" s:"other"}')),
           prefix='p', device='/gpu:1')
    record('class of an unknown node',
           X + node('n', 'Neg', 'x', attrs=attr('_class', 'list{s:"loc:@zz"}')))
    record('class that is no list', X + node('n', 'Neg', 'x', attrs=attr('_class', 's:"loc:@zz"')))
    record('min consumer', 'versions{producer:5 min_consumer:3000}')
    record('newer producer', 'versions{producer:3000 min_consumer:3}')
    record('bad consumer', 'versions{producer:10 bad_consumers:2474}')
    record('negative producer', 'versions{producer:-1}')
    topk = X + node('k', 'TopK', 'x', attrs=attr('k', 'i:1'))
    record('removed op in an old graph', 'versions{producer:6}' + topk)
    record('removed op', 'versions{producer:8}' + topk)
    record('removed op in a graph too new', 'versions{producer:2900}' + topk)
    record('attribute of the wrong kind', X + 'node{name:"n" op:"Neg" input:"x" ' +
           attr('T', 'i:1') + '}')
    record('attribute with no value', 'versions{producer:2900}' + X +
           'node{name:"n" op:"Neg" input:"x" ' + attr('T', '') + '}')
    record('unknown attribute', X + node('n', 'Neg', 'x', attrs=attr('bogus', 'i:1')))
    record('reference type', X + node('n', 'Identity', 'x', T='DT_FLOAT_REF'))
    record('number too small', X + node('a', 'AddN', 'x', attrs=attr('N', 'i:0')))
    record('number and inputs', X + node('a', 'AddN', 'x', attrs=attr('N', 'i:3')))
    record('list too short', X + node('a', 'AvgPool', 'x', attrs=attr('ksize', 'list{i:1}') +
                                      attr('strides', 'list{i:[1,1,1,1]}') +
                                      attr('padding', 's:"SAME"')))
    record('string not allowed', X + node('a', 'AvgPool', 'x', attrs=attr('ksize', 'list{i:[1,1,1,1]}') +
                                          attr('strides', 'list{i:[1,1,1,1]}') +
                                          attr('padding', 's:"NO"')))
    record('reference to value', 'node{name:"v" op:"VariableV2" ' + attr('dtype', 'type:DT_FLOAT') +
           attr('shape', 'shape{}') + '}' + node('n', 'Neg', 'v'))
    record('value to reference', X + node('a', 'Assign', 'x', 'x'))
    record('garbage', b'\xff\xff\xffabc')
    record('truncated', b'\x0a\x10\x0a')
    record('nothing', b'')
    record('shapes disagree', X + node('n', 'MatMul', 'x', 'z') + placeholder('z', [3]))
    shapes = attr('_output_shapes', 'list{shape{dim{size:3}}}')
    record('output shapes', X + node('n', 'Neg', 'x', attrs=shapes))
    record('output shapes disagree', placeholder('x', [2]) + node('n', 'Neg', 'x', attrs=shapes))
    record('output shapes are used', X + node('n', 'Neg', 'x', attrs=shapes) +
           node('m', 'MatMul', 'n', 'n'))
    record('output shapes of another kind', X +
           node('n', 'Neg', 'x', attrs=attr('_output_shapes', 'i:3')))
    record('map', X + neg, pre=['in'], maps=[('x:0', 'in:0')], prefix='p')
    record('map without a node', neg, pre=['in'], maps=[('x:0', 'in:0')], prefix='p')
    # Two missing ones at once: stock's answer holds pointers that are stale.
    record('map unused', X, pre=['in', 'i2'], prefix='p', maps=[('x:0', 'in:0'), ('y:0', 'i2:0')])
    record('map unused output', X, pre=['i3'], prefix='p', maps=[('x:3', 'i3:0')])
    record('map wrong type', X + neg, pre=['in:int32'], maps=[('x:0', 'in:0')], prefix='p')
    record('map bad index', X + neg, pre=['in'], maps=[('x:0', 'in:3')], prefix='p')
    record('map control', X + node('n', 'NoOp', '^x', T=None), pre=['in'],
           maps=[('^x', '^in')], prefix='p')
    record('map data, use control', X + node('n', 'NoOp', '^x', T=None), pre=['in'],
           maps=[('x:0', 'in:0')], prefix='p')
    record('map control to data', X + node('n', 'NoOp', '^x', T=None), pre=['in'],
           maps=[('^x', 'in:0')], prefix='p')
    record('map data to control', X + neg, pre=['in'], maps=[('x:0', '^in')], prefix='p')
    record('map twice', X + neg, pre=['in', 'in2'], maps=[('x:0', 'in:0'), ('x:0', 'in2:0')],
           prefix='p')
    record('control dependencies', X + neg + node('z', 'NoOp', '^x', T=None), pre=['b', 'a'],
           controls=['b', 'a'], prefix='p')
    record('control dependencies and mapping', X + neg + node('m', 'Neg', 'n'),
           pre=['b', 'a', 'in'], controls=['b', 'a'], maps=[('x:0', 'in:0')], prefix='p')
    record('returns', X + neg, returns=['n:0', 'x:0'], return_nodes=['x'])
    record('return unknown', X + neg, returns=['q:0'])
    record('return out of range', X + neg, returns=['n:100'])
    record('return unknown node', X + neg, return_nodes=['qqq'])
    record('return mapped', X + neg, pre=['in'], maps=[('x:0', 'in:0')], prefix='p',
           returns=['x:0'])
    record('uniquify names', X + neg + node('n_1', 'Neg', 'n') + placeholder('n/y') +
           placeholder('x_1'), pre=['x', 'n', 'n_2', 'n/y'], uniquify_names=True)
    record('uniquify names that are prefixes', X + placeholder('x/y') + neg, pre=['x/y/z'],
           uniquify_names=True)
    record('uniquify names, class', X +
           node('n', 'Neg', 'x', '^x', attrs=attr('_class', 'list{s:"loc:@x"}')),
           pre=['x', 'n', 'n_2'], uniquify_names=True)
    record('uniquify prefix', X + neg, pre=['p/x', 'p_1'], uniquify_prefix=True, prefix='p')
    record('uniquify prefix that is a node', X + neg, pre=['p'], uniquify_prefix=True, prefix='p')
    record('prefix in use', X + neg, pre=['p/z'], prefix='p')
    record('uniquify both', X + neg, pre=['p/x', 'p/n'], uniquify_prefix=True, uniquify_names=True,
           prefix='p')
    record('uniquify names below a prefix', X + neg, pre=['p/x', 'p/n'], uniquify_names=True,
           prefix='p')
    record('loop', X + LOOP)
    record('loop, other way round', X + LOOP.replace('input:"e" input:"ni"',
                                                     'input:"ni" input:"e"'))
    record('loop, prefixed and uniquified', LOOP, prefix='p', pre=['in', 'p/m', 'p/ni'],
           maps=[('x:0', 'in:0')], uniquify_names=True)
    record('loop back edge unknown', X + LOOP.replace('input:"ni"', 'input:"nix"'))
    record('loop back edge out of range', X + LOOP.replace('input:"ni"', 'input:"ni:2"'))
    record('function', FUNCTION + X + node('f', 'F', 'x', T=None))
    record('function with the wrong type', FUNCTION + placeholder('x', dtype='DT_INT32') +
           node('f', 'F', 'x', T=None))
    record('function with the name of an op', FUNCTION.replace('name:"F"', 'name:"Neg"'))
    second = FUNCTION.replace('library{', '').replace('name:"a"', 'name:"c"').replace(
        'input:"a"', 'input:"c"')
    record('function twice, different', FUNCTION[:FUNCTION.index('gradient{')] + second)


def write_graphs(folder):
    v1 = tf.compat.v1

    def write(name, build):
        graph = tf.Graph()
        with graph.as_default():
            build()
        with open(os.path.join(folder, name + '.pb'), 'wb') as file:
            file.write(graph.as_graph_def().SerializeToString(deterministic=True))

    def network():
        v1.disable_resource_variables()
        x = v1.placeholder(tf.float32, [None, 4], 'x')
        y = v1.placeholder(tf.int64, [None], 'y')
        with v1.variable_scope('layer'):
            w = v1.get_variable('w', [4, 3])
            b = v1.get_variable('b', [3], initializer=v1.zeros_initializer())
        logits = tf.nn.bias_add(tf.matmul(x, w), b)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        v1.train.GradientDescentOptimizer(0.5).minimize(loss, name='train')
        v1.global_variables_initializer()

    def loops():
        v1.disable_control_flow_v2()
        i = tf.constant(0)
        a = v1.placeholder(tf.float32, [2, 3], 'a')
        inner = lambda k, v: v1.while_loop(lambda j, _: j < 3, lambda j, u: (j + 1, u * 2.0), [k, v])
        v1.while_loop(lambda k, _: k < 10, lambda k, v: (k + 1, inner(0, v)[1]), [i, a])
        v1.cond(a[0, 0] > 0, lambda: a + 1, lambda: a - 1)

    def functions():
        v1.enable_control_flow_v2()

        @tf.function
        def f(x):
            return tf.while_loop(lambda v: tf.reduce_sum(v) < 10.0, lambda v: [v + 1.0], [x])[0]

        f(v1.placeholder(tf.float32, [2], 'x'))

    write('network', network)
    write('loops', loops)
    write('functions', functions)


if __name__ == '__main__':
    if len(sys.argv) == 3 and sys.argv[1] == '--graphs':
        write_graphs(sys.argv[2])
    else:
        record_all()

"""Random small programs with side effects, the same for every seed.

A program is a tf.function over three scalar variables, a vector, a table and a queue. It assigns,
reads, branches, loops and calls other functions, nested at random. None of its operations commute,
so the values after some calls show the order of the side effects.

Other programs only pass numbers to a Python function, because stock orders such calls among each
other only if no resource is involved.

A block is a list of statements and an expression for its value. Statements and expressions are
tuples; `_Trace` builds them with either library.
"""

import random

CALLS = 4  # how often a program runs


class _Writer:
    """Draws a program."""

    def __init__(self, seed, tells):
        self._draw = random.Random(seed)
        self._tells = tells
        self.functions = [self.block(2, 0, False) for _ in range(2)]

    def expression(self, depth=0):
        kinds = ("local", "local") if self._tells else ("local", "local", "variable", "variable", "element")
        kind = self._draw.choice(kinds + ("sum", "slow") if depth < 2 else kinds)
        if kind in ("local", "variable", "element"):
            return (kind, self._draw.randrange(1000))
        if kind == "slow":
            return (kind, self.expression(depth + 1))
        return (kind, self._number(), self.expression(depth + 1), self._number(), self.expression(depth + 1), self._number())

    def _number(self):
        return self._draw.choice((-0.5, -0.25, 0.25, 0.5, 0.75))

    def test(self):
        return self._draw.choice((("given", self._draw.randrange(4)), ("given", self._draw.randrange(4)), ("above", self.expression(1), self._number())))

    def block(self, size, depth, calls):
        statements = [self.statement(depth, calls) for _ in range(self._draw.randint(1, size))]
        return (statements, self.expression())

    def statement(self, depth, calls):
        kinds = ["assign", "assign_add", "assign_sub", "assign_sub", "let", "unread", "scatter", "insert", "lookup", "queue"]
        if self._tells:
            kinds = ["tell"] * 4 + ["let"]
        if depth < 3:
            kinds += ["cond", "cond", "cond", "while", "while", "switch", "case", "check"]
        if calls:
            kinds += ["call"]
        kind = self._draw.choice(kinds)
        if kind in ("assign", "assign_add", "assign_sub", "unread", "scatter", "insert"):
            return (kind, self._draw.randrange(3), self.expression())
        if kind in ("let", "queue", "check", "tell"):
            return (kind, self.expression())
        if kind == "lookup":
            return (kind, self._draw.randrange(3))
        if kind == "call":
            return (kind, self._draw.randrange(len(self.functions)), self.expression())
        if kind == "cond":
            return (kind, self.test(), self.block(3, depth + 1, calls), self.block(3, depth + 1, calls))
        if kind == "while":
            effect = self.statement(3, False) if self._draw.random() < 0.3 else None
            return (kind, self._draw.randint(0, 3), effect, self.block(3, depth + 1, calls))
        if kind == "switch":
            return (kind, self._draw.randrange(2), [self.block(2, depth + 1, calls) for _ in range(3)])
        return (kind, [self.test() for _ in range(2)], [self.block(2, depth + 1, calls) for _ in range(3)])


class _Trace:
    """Builds a program."""

    def __init__(self, tf, writer, state):
        self.tf, self.state = tf, state
        self.functions = [tf.function(lambda x, given, body=body: self.block(body, [x], given)) for body in writer.functions]

    def value(self, e, local, given):
        tf = self.tf
        if e[0] == "local":
            return tf.convert_to_tensor(local[e[1] % len(local)])
        if e[0] == "variable":
            return self.state.scalars[e[1] % 3] * 1.0
        if e[0] == "element":
            return self.state.vector.sparse_read(tf.constant(e[1] % 3))
        if e[0] == "slow":
            x = self.value(e[1], local, given)
            square = tf.matmul(tf.fill([60, 60], x), tf.fill([60, 60], x))
            return x + 0.0 * tf.tanh(tf.reduce_sum(tf.matmul(square, square)))
        return e[1] * self.value(e[2], local, given) + e[3] * self.value(e[4], local, given) + e[5]

    def test(self, e, local, given):
        if e[0] == "given":
            return given[e[1]]
        return self.value(e[1], local, given) > e[2] + 1e-3

    def block(self, block, local, given):
        local = list(local)
        for statement in block[0]:
            self.statement(statement, local, given)
        return self.value(block[1], local, given)

    def statement(self, s, local, given):
        tf, state = self.tf, self.state
        branch = lambda body: lambda: self.block(body, local, given)
        if s[0] in ("assign", "assign_add", "assign_sub"):
            getattr(state.scalars[s[1]], s[0])(self.value(s[2], local, given))
        elif s[0] == "unread":
            local.append(state.scalars[s[1]].assign_add(self.value(s[2], local, given)))
        elif s[0] == "let":
            local.append(self.value(s[1], local, given))
        elif s[0] == "scatter":
            value = tf.reshape(self.value(s[2], local, given), [1])
            state.vector.scatter_sub(tf.IndexedSlices(0.5 * value + 0.25, tf.constant([s[1]])))
        elif s[0] == "insert":
            state.table.insert(tf.constant(s[1], tf.int64), self.value(s[2], local, given))
        elif s[0] == "lookup":
            local.append(tf.reshape(state.table.lookup(tf.constant(s[1], tf.int64)), []))
        elif s[0] == "queue":
            state.queue.enqueue(self.value(s[1], local, given))
            local.append(tf.reshape(state.queue.dequeue(), []))
        elif s[0] == "tell":
            tf.py_func(state.hear, [self.value(s[1], local, given)], tf.float32)
        elif s[0] == "check":
            tf.debugging.assert_less(self.value(s[1], local, given), 1e30)
        elif s[0] == "call":
            local.append(self.functions[s[1]](self.value(s[2], local, given), given))
        elif s[0] == "cond":
            local.append(tf.cond(self.test(s[1], local, given), branch(s[2]), branch(s[3])))
        elif s[0] == "switch":
            index = tf.cast(given[s[1]], tf.int32) + tf.cast(given[2], tf.int32)
            local.append(tf.switch_case(index, [branch(body) for body in s[2]]))
        elif s[0] == "case":
            tests = [self.test(t, local, given) for t in s[1]]
            local.append(tf.case([(test, branch(body)) for test, body in zip(tests, s[2])], default=branch(s[2][2])))
        elif s[0] == "while":
            self.loop(s, local, given)

    def loop(self, s, local, given):
        tf = self.tf

        def go_on(i, x):
            if s[2] is not None:
                self.statement(s[2], local + [x], given)
            return i < s[1]

        def turn(i, x):
            return i + 1, self.block(s[3], local + [x, tf.cast(i, tf.float32)], given)
        local.append(tf.while_loop(go_on, turn, [tf.constant(0), self.value(("local", 0), local, given)])[1])


class State:
    """What programs change."""

    def __init__(self, tf):
        self.scalars = [tf.Variable(x, use_resource=True) for x in (0.5, -1.0, 2.0)]
        self.vector = tf.Variable([1.0, -2.0, 3.0], use_resource=True)
        self.table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.125)
        self.queue = tf.queue.FIFOQueue(100, [tf.float32], shapes=[[]])
        self.heard = []

    def hear(self, x):
        """What programs tell numbers."""
        self.heard.append(float(x))
        return x

    def start(self):
        """Fills the queue, so that what comes out of it is old."""
        return self.queue.enqueue_many([[0.5, 1.5, -1.0]])

    def tensors(self, tf):
        return [x.read_value() for x in self.scalars + [self.vector]] + [self.table.lookup(tf.constant([0, 1, 2], tf.int64))]


def make(tf, seed, state, tells=False):
    """A tf.function of (a scalar, four bools), which returns three values; `tells`: numbers, to
    `state.hear`."""
    writer = _Writer(seed, tells)
    statements, results = writer.block(6, 0, True)[0], [writer.expression(), writer.expression()]
    trace = _Trace(tf, writer, state)

    @tf.function
    def program(x, given):
        local = [x]
        for statement in statements:
            trace.statement(statement, local, given)
        return [trace.value(e, local, given) for e in results] + [local[-1]]
    return program


def arguments(np, call):
    """The arguments of a call."""
    return np.float32(0.5 * call - 0.75), np.array([(call * 7 + 3 * k) % 5 < 2 for k in range(4)])

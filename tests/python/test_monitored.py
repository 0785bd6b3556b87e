"""Monitored sessions, hooks, the session manager and the supervisor."""

import os
import tempfile

import pytest
from both import both


def model(tf):
    x = tf.Variable([1.0, 2.0], name="x")
    local = tf.get_local_variable("local", initializer=tf.constant(3.0))
    loss = tf.reduce_sum(tf.square(x) * local, name="loss")
    step = tf.train.get_or_create_global_step()
    return x, loss, step, tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)


def watcher(tf, log):
    class Watcher(tf.train.SessionRunHook):
        def begin(self):
            log.append("begin")

        def after_create_session(self, session, coord):
            log.append("created")

        def before_run(self, run_context):
            return tf.train.SessionRunArgs({"l": "loss:0"})

        def after_run(self, run_context, run_values):
            log.append("ran %.4f %s" % (run_values.results["l"], run_context.original_args.fetches is not None))

        def end(self, session):
            log.append("end %d" % session.run("global_step:0"))
    return Watcher()


@both
def test_hooks(tf, np):
    log = []
    x, loss, step, train = model(tf)
    with tf.train.MonitoredTrainingSession(hooks=[
            watcher(tf, log), tf.train.StopAtStepHook(last_step=3), tf.train.NanTensorHook(loss),
            tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=1)]) as sess:
        while not sess.should_stop():
            log.append(sess.run([train, loss])[0])
        log.append(sess.should_stop())
    return log, [node.name for node in tf.get_default_graph().as_graph_def().node if not node.name.startswith(("gradients", "save"))]


@both
def test_checkpoints(tf, np):
    where = tempfile.mkdtemp(prefix="runnel_monitored")
    log = []
    for last in (3, 5):
        with tf.Graph().as_default():
            x, loss, step, train = model(tf)
            tf.summary.scalar("loss", loss)
            with tf.train.MonitoredTrainingSession(checkpoint_dir=where, hooks=[watcher(tf, log), tf.train.StopAtStepHook(last_step=last)],
                                                   save_checkpoint_steps=2) as sess:
                while not sess.should_stop():
                    sess.run(train)
        log.append(sorted({name.split(".data")[0] for name in os.listdir(where) if "events" not in name}))
    return log, tf.train.load_variable(where, "x")


@both
def test_singular(tf, np):
    x, loss, step, train = model(tf)
    with tf.train.SingularMonitoredSession(hooks=[tf.train.FeedFnHook(lambda: {x.value(): [2.0, 2.0]})]) as sess:
        out = [sess.raw_session().run(x), sess.run(loss)]
        out.append(sess.run_step_fn(lambda step_context: step_context.run_with_hooks(loss)))
        out.append(sess.run_step_fn(lambda step_context: step_context.session.run(loss)))
    return out


@both
def test_end_of_input(tf, np):
    batch = tf.train.batch([tf.train.range_input_producer(5, num_epochs=1, shuffle=False).dequeue()], 2)
    out = []
    with tf.train.MonitoredSession() as sess:
        while not sess.should_stop():
            out.append(sess.run(batch))
    return out


@both
def test_final_ops(tf, np):
    x, loss, step, train = model(tf)
    final = tf.train.FinalOpsHook([loss, step])
    with tf.train.MonitoredSession(hooks=[final]) as sess:
        for _ in range(2):
            sess.run(train)
    return final.final_ops_values


@both
def test_scaffold(tf, np):
    v = tf.Variable(1.0)
    fed = tf.placeholder(tf.float32, [])
    scaffold = tf.train.Scaffold(init_op=v.assign(fed), init_feed_dict={fed: 7.0},
                                 init_fn=lambda scaffold, sess: sess.run(scaffold.init_op, {fed: 8.0}))
    creator = tf.train.ChiefSessionCreator(scaffold)
    with tf.train.MonitoredSession(creator) as sess:
        out = sess.run(v)
    return out, len(tf.get_collection(tf.GraphKeys.SAVERS))


@both(raises=True)
def test_not_ready(tf, np):
    tf.Variable(1.0)
    tf.train.SessionManager(ready_op=tf.report_uninitialized_variables()).prepare_session("", init_op=tf.no_op())


@both(raises=True)
def test_nan(tf, np):
    loss = tf.log(tf.Variable(-1.0))
    with tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(loss)]) as sess:
        sess.run(loss)


@both(raises=True)
def test_two_feeds(tf, np):
    x = tf.placeholder(tf.float32, [])
    with tf.train.MonitoredSession(hooks=[tf.train.FeedFnHook(lambda: {x: 1.0})]) as sess:
        sess.run(x, {x: 2.0})


@both
def test_timer(tf, np):
    timer = tf.train.SecondOrStepTimer(every_steps=3)
    out = []
    for step in range(8):
        if timer.should_trigger_for_step(step):
            out.append((step, timer.update_last_triggered_step(step)[1]))
    return out, timer.last_triggered_step()


@both
def test_supervisor(tf, np):
    where = tempfile.mkdtemp(prefix="runnel_supervisor")
    out = []
    for _ in range(2):
        with tf.Graph().as_default():
            x = tf.Variable([1.0, 2.0], name="x")
            step = tf.Variable(0, name="global_step", trainable=False)
            loss = tf.reduce_sum(tf.square(x))
            train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
            batch = tf.train.batch([tf.train.range_input_producer(10, shuffle=False).dequeue()], 2)
            tf.summary.scalar("loss", loss)
            supervisor = tf.train.Supervisor(logdir=where, save_model_secs=0, save_summaries_secs=0, saver=tf.train.Saver())
            with supervisor.managed_session() as sess:
                out.append(sess.run(step))
                for _ in range(3):
                    sess.run(train)
                out += [sess.run(batch), sess.run(x)]
                out.append(os.path.basename(supervisor.saver.save(sess, supervisor.save_path, global_step=supervisor.global_step)))
            out.append(supervisor.should_stop())
    return out


@both(raises=True, message=True)
def test_supervisor_error(tf, np):
    tf.Variable(1.0)
    supervisor = tf.train.Supervisor()
    with supervisor.managed_session():
        raise ValueError("mine")


def test_recovers_from_a_lost_session():
    """A step that fails as when a task of the cluster dies: the session is made anew."""
    import runnel as tf
    with tf.Graph().as_default():
        x, loss, step, train = model(tf)
        created = []

        class Lose(tf.train.SessionRunHook):
            def after_create_session(self, session, coord):
                created.append(session)

            def before_run(self, run_context):
                if len(created) == 1:
                    raise tf.errors.UnavailableError(None, None, "gone")

        with tf.train.MonitoredSession(hooks=[Lose()]) as sess:
            sess.run(train)
            assert len(created) == 2 and sess.run(step) == 1


def test_listener_and_saved_events(tmp_path):
    import runnel as tf
    told = []

    class Listener(tf.train.CheckpointSaverListener):
        def before_save(self, session, global_step_value):
            told.append(("before", int(global_step_value)))

        def after_save(self, session, global_step_value):
            told.append(("after", int(global_step_value)))
            return global_step_value >= 4

        def end(self, session, global_step_value):
            told.append(("end", int(global_step_value)))

    with tf.Graph().as_default():
        x, loss, step, train = model(tf)
        hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=2, listeners=[Listener()], saver=tf.train.Saver())
        with tf.train.MonitoredSession(hooks=[hook]) as sess:
            while not sess.should_stop():
                sess.run(train)
    assert told == [("before", 0), ("after", 0), ("before", 2), ("after", 2), ("before", 4), ("after", 4), ("end", 4)]
    assert any("events" in name for name in os.listdir(tmp_path)) and "graph.pbtxt" in os.listdir(tmp_path)


def test_closed_session():
    import runnel as tf
    with tf.Graph().as_default():
        with tf.train.MonitoredSession() as sess:
            pass
        with pytest.raises(RuntimeError):
            sess.run(tf.constant(1))


@both
def test_what_hooks_log(tf, np):
    import logging
    logged = []

    class Handler(logging.Handler):
        def emit(self, record):
            logged.append(record.getMessage())
    handler = Handler()
    tf.logging.set_verbosity(tf.logging.WARN)
    logging.getLogger("tensorflow").addHandler(handler)
    try:
        element = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1)).get_next()
        step = tf.train.get_or_create_global_step()
        hook = tf.train.StepCounterHook(every_n_steps=1)
        with tf.train.SingularMonitoredSession([hook]) as session:
            for _ in range(2):
                session.run(step)
        final = tf.train.FinalOpsHook(element)
        final.begin()
        with tf.Session() as session:
            session.run(element)
            try:
                final.end(session)
            except tf.errors.OutOfRangeError:
                logged.append("out of range")
    finally:
        logging.getLogger("tensorflow").removeHandler(handler)
    try:
        tf.train.ProfilerHook(save_steps=1, save_secs=1)
    except ValueError:
        logged.append("steps and seconds")
    return [sum("not been increased" in text for text in logged), "dependency back to some input source" in logged[-3], logged[-2:]]

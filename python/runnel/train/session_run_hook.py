"""Hooks: what is done around the steps of a monitored session."""

import collections


class SessionRunHook:
    """The base of hooks. What a subclass says is called:

    begin() before the graph is finished; after_create_session(session, coord) with each new session;
    before_run(run_context), which may ask for more fetches and feeds by a SessionRunArgs;
    after_run(run_context, run_values) with their values; end(session) at the end.
    """

    def begin(self):
        """The graph may still be added to."""

    def after_create_session(self, session, coord):
        """There is a session, a new one after a failure."""

    def before_run(self, run_context):
        """A step is about to run; what the hook asks of it, a SessionRunArgs, or None."""
        return None

    def after_run(self, run_context, run_values):
        """The step has run; `run_values.results` is what was asked for."""

    def end(self, session):
        """The last step has run without an error."""


class SessionRunArgs(collections.namedtuple("SessionRunArgs", ["fetches", "feed_dict", "options"])):
    """What a step is asked for: fetches, feeds, RunOptions."""

    def __new__(cls, fetches, feed_dict=None, options=None):
        return super().__new__(cls, fetches, feed_dict, options)


class SessionRunValues(collections.namedtuple(
        "SessionRunValues", ["results", "options", "run_metadata"])):
    """What a step gave: the values of the fetches, the RunOptions, the RunMetadata."""


class SessionRunContext:
    """A step, as hooks see it: what was asked for, and the session."""

    def __init__(self, original_args, session):
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self):
        """The SessionRunArgs of the call itself."""
        return self._original_args

    @property
    def session(self):
        return self._session

    @property
    def stop_requested(self):
        return self._stop_requested

    def request_stop(self):
        """Asks the loop to end."""
        self._stop_requested = True

"""Hooks, which a monitored session calls around its steps."""

import collections


class SessionRunHook:
    """The base of hooks. Subclasses define the methods they need:

    begin() before the graph is finalized; after_create_session(session, coord) for each new session;
    before_run(run_context), which may return more fetches and feeds as a SessionRunArgs;
    after_run(run_context, run_values) with their values; end(session) at the end.
    """

    def begin(self):
        """Is called before the graph is finalized: operations may still be added."""

    def after_create_session(self, session, coord):
        """Is called when a session was created, also after a failure."""

    def before_run(self, run_context):
        """Is called before a step. Returns a SessionRunArgs with more fetches and feeds, or None."""
        return None

    def after_run(self, run_context, run_values):
        """Is called after a step; `run_values.results` has the values of the fetches."""

    def end(self, session):
        """Is called after the last step, if there was no error."""


class SessionRunArgs(collections.namedtuple("SessionRunArgs", ["fetches", "feed_dict", "options"])):
    """Fetches, feeds and RunOptions of a step."""

    def __new__(cls, fetches, feed_dict=None, options=None):
        return super().__new__(cls, fetches, feed_dict, options)


class SessionRunValues(collections.namedtuple(
        "SessionRunValues", ["results", "options", "run_metadata"])):
    """The results of a step: the values of the fetches, the RunOptions and the RunMetadata."""


class SessionRunContext:
    """A step as hooks see it: its arguments and the session."""

    def __init__(self, original_args, session):
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self):
        """The SessionRunArgs of the caller."""
        return self._original_args

    @property
    def session(self):
        return self._session

    @property
    def stop_requested(self):
        return self._stop_requested

    def request_stop(self):
        """Asks the training loop to end."""
        self._stop_requested = True

"""Servers of the tf.data service, as processes of the command: data-server."""

import os
import signal
import subprocess


class Server:
    """A dispatcher, or a worker if `--dispatcher` is among the arguments."""

    def __init__(self, runnel, *arguments):
        self._command = [runnel, "data-server", *arguments]
        self._start()

    def _start(self):
        self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        assert self.address, "the server did not start: %s" % self._command
        self.port = int(self.address.rpartition(":")[2])

    def kill(self):
        """Ends the process without warning."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def restart(self):
        """Starts it again on the same port."""
        self._command = [word for word in self._command if not word.startswith("--port=")] + ["--port=%d" % self.port]
        self._start()

    def stop(self):
        """Ends it as an operator does; returns its exit status."""
        self.process.terminate()
        return self.process.wait(timeout=30)

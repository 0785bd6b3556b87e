"""Makes `import tensorflow` find Runnel where there is no TensorFlow. Python imports this file when it starts, so it does little."""

import sys

VERSION = "2.21.0"  # of the API


class _Finder:
    """Comes after all other finders: it is asked for `tensorflow` only if nothing else has it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "tensorflow":
            return None
        try:
            from runnel.alias import finder
        except ImportError:
            return None
        finder.install(is_v2=True)
        return next(f for f in sys.meta_path if isinstance(f, finder._Finder)).find_spec(name)

    @staticmethod
    def find_distributions(context=None):
        """Yields the distribution "tensorflow", unless there is a real one."""
        import importlib.machinery
        import importlib.metadata
        wanted = getattr(context, "name", None)
        if wanted not in (None, "tensorflow") or importlib.machinery.PathFinder.find_spec("tensorflow") is not None:
            return

        class Stub(importlib.metadata.Distribution):
            def read_text(self, filename):
                return "Metadata-Version: 2.1\nName: tensorflow\nVersion: %s\nSummary: Runnel\n" % VERSION if filename == "METADATA" else None

            def locate_file(self, path):
                return path
        yield Stub()


if not any(type(finder).__name__ == "_Finder" and type(finder).__module__ == __name__ for finder in sys.meta_path):
    sys.meta_path.append(_Finder())

"""tf.app: run(main) parses the command line's flags and calls main."""

import sys

from runnel import flags


def run(main=None, argv=None):
    """Parses the flags, calls `main` with the remaining arguments, and exits with its result."""
    argv = sys.argv if argv is None else argv
    main = main or sys.modules["__main__"].main
    try:
        rest = flags.FLAGS(argv, known_only=True)
    except flags.Error as error:
        sys.stderr.write("FATAL Flags parsing error: %s\nPass --help to see help on flags.\n" % error)
        sys.exit(1)
    sys.exit(main(rest))


__all__ = ["flags", "run"]

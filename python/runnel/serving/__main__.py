"""python3 -m runnel.serving MODULE:NAME"""

import sys

from runnel.serving.container import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

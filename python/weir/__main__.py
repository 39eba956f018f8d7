"""``python3 -m weir``: what ``weir run`` and ``weir ryu-manager`` of the program call."""

from __future__ import annotations

import sys
from typing import List, Optional

USAGE = """\
usage: python3 -m weir run FILE [options]              run the apps of a file
       python3 -m weir ryu-manager APP.. [options]    run apps of Ryu
"""


def main(arguments: Optional[List[str]] = None) -> int:
    """The exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    match arguments[:1]:
        case ["run"]:
            from weir import running

            return running.main(arguments[1:])
        case ["ryu-manager"]:
            from weir import manager

            return manager.main(arguments[1:])
        case ["-h" | "--help"]:
            print(USAGE, end="")
            return 0
    print(USAGE, end="", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())

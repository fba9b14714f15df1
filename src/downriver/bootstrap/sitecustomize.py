"""Python runs this at its start, when `downriver run` put its folder first on the path."""

import importlib.machinery
import importlib.util
import os
import sys


def _run_the_one_behind() -> None:
    """Run the sitecustomize that this one hides, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]
    found = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if found is not None and found.loader is not None:
        found.loader.exec_module(importlib.util.module_from_spec(found))


_run_the_one_behind()

try:
    from downriver.bootstrap.session_hook import install_session_hook
except ImportError:  # another Python, as Spark's workers may have
    pass
else:
    install_session_hook()

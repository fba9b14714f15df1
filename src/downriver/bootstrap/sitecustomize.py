"""Python imports this at startup when `downriver run` has put its folder first on the path."""

import importlib.machinery
import importlib.util
import os
import sys


def _run_shadowed_sitecustomize() -> None:
    """Run the sitecustomize that this one shadows, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_run_shadowed_sitecustomize()

try:
    from downriver.bootstrap.session_hook import install_session_hook
except ImportError:  # another Python, for example of Spark's workers
    pass
else:
    install_session_hook()

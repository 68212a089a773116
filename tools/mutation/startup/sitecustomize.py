"""Loaded by Python in each process that a recorded test starts: records its lines for that test."""

import atexit
import importlib.util
import os
import sys
from pathlib import Path

if "MQIS_REACHED_TEST" in os.environ and hasattr(sys, "monitoring"):
    _file = Path(__file__).resolve().parents[1] / "recorder.py"
    _spec = importlib.util.spec_from_file_location("mqis_recorder", _file)
    if _spec is not None and _spec.loader is not None:
        _module = importlib.util.module_from_spec(_spec)
        _spec.loader.exec_module(_module)
        _recorder = _module.Recorder()
        _recorder.start()
        _place, _test = Path(os.environ[_module.PLACE]), os.environ[_module.TEST]
        _leave, _own = _module.leave, os.getpid()

        @atexit.register
        def _end() -> None:
            lines = _recorder.stop()
            if os.getpid() == _own and _place.is_dir():
                _leave(lines, _place, _test)

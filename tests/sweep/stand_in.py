"""A run that only counts: `python stand_in.py FOLDER begin|resume HOW`.

It ends as a run does when it is told to, or when its parent is gone.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

folder, call, how = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
folder.mkdir(parents=True, exist_ok=call == "resume")
(folder / "config.json").write_text("{}")
(folder / f"call-{time.time_ns()}").write_text(f"{call} {os.getpid()}")


def stop(*args):
    (folder / "saved").touch()
    os._exit(143)


def watch():
    os.read(0, 1)
    stop()


signal.signal(signal.SIGTERM, stop)
threading.Thread(target=watch, daemon=True).start()
if how == "fail" and not (folder.parent / "mended").exists():
    print("ornstein: it cannot be: write another.\n\n", file=sys.stderr)
    sys.exit(2)
if how == "die":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "not alone":
    end = time.monotonic() + 60
    while len(list(folder.parent.glob("*/call-*"))) < 2:
        if time.monotonic() > end:
            sys.exit("nobody came")
        time.sleep(0.01)
count = folder / "count"
number = int(count.read_text()) if count.exists() else 0
while number < (200 if how == "long" else 10):
    time.sleep(0.5 if how in ("slow", "long") else 0.02)
    number += 1
    count.with_suffix(".new").write_text(str(number))
    count.with_suffix(".new").rename(count)
(folder / "result.json").write_text(json.dumps({"count": number}))
sys.exit(1 if how == "stuck" else 0)

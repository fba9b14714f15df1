"""The commands of `downriver lake` as an application for `spark-submit`.

spark-submit --master spark://host:7077 downriver_lake.py ingest s3://bucket/events --lake s3://bucket/lake
"""

from __future__ import annotations

import sys

from downriver.cli import main

sys.argv.insert(1, "lake")
main()

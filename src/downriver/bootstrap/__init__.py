"""Code that `downriver run` adds to a Python process: it tracks every new Spark session."""

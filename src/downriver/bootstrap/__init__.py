"""What `downriver run` puts into a command's Python: sessions are tracked as they are made."""

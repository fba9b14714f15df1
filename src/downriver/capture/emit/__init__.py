"""Sends events from a user's job without raising, blocking or losing any."""

from downriver.capture.emit.emitter import Emitter, Send
from downriver.capture.emit.guard import guarded
from downriver.capture.emit.http_sender import HttpSender
from downriver.capture.emit.spool import Spool

__all__ = ["Emitter", "HttpSender", "Send", "Spool", "guarded"]

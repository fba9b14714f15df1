"""Sending events from a user's job: never an exception, never a wait, never a loss."""

from downriver.capture.emit.emitter import Emitter, Send
from downriver.capture.emit.guard import guarded
from downriver.capture.emit.http_sender import HttpSender
from downriver.capture.emit.spool import Spool

__all__ = ["Emitter", "HttpSender", "Send", "Spool", "guarded"]

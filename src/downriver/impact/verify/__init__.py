"""The optional check of a verdict by a database: both sides are built in a scratch schema."""

from downriver.impact.verify.databases import VerifyOptions
from downriver.impact.verify.verification import verify_commits

__all__ = ["VerifyOptions", "verify_commits"]

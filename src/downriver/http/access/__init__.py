"""Access control for all routes: API keys, tokens, roles, namespaces and host names."""

from downriver.http.access.control import AccessControl, Principal
from downriver.http.access.hosts import AllowedHosts, check_bind
from downriver.http.access.tls import TlsFiles

__all__ = ["AccessControl", "AllowedHosts", "Principal", "TlsFiles", "check_bind"]

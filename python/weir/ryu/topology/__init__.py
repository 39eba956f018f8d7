"""``ryu.topology``: switches, links and hosts, by Weir's own discovery."""

from weir.aliases import extend

__path__ = extend(__name__, __path__)

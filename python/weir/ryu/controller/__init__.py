"""``ryu.controller``."""

from weir.aliases import extend

__path__ = extend(__name__, __path__)

"""``ryu.lib.packet``: packets as objects.

The protocols that most apps use are here, and read a packet only as far as it is asked for; others
come from an installed os-ken.
"""

from weir.aliases import extend

__path__ = extend(__name__, __path__)

"""Protocols that are taken where no os-ken is installed, which has more of them."""

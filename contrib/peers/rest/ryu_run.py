#!/usr/bin/env python3
"""Runs ryu-manager of Ryu 4.34 on a Python and an eventlet of today.

Ryu ended in 2020; what it needs of its neighbours has moved since. Each repair gives it back, and
none touches what it answers: where it is known to fail on Python 3 it fails here too.
"""
import collections
import collections.abc
import inspect
import sys

import eventlet
import eventlet.wsgi

# eventlet 0.30.3 dropped the value by which an application says that it has answered itself.
if not hasattr(eventlet.wsgi, "ALREADY_HANDLED"):
    eventlet.wsgi.ALREADY_HANDLED = object()
# Python 3.10 dropped the names of abstract classes from `collections`, and 3.11 an old function.
for name in ("Mapping", "MutableMapping", "Sequence", "Iterable", "Callable", "Hashable", "Set"):
    if not hasattr(collections, name):
        setattr(collections, name, getattr(collections.abc, name))
if not hasattr(inspect, "getargspec"):
    inspect.getargspec = lambda function: inspect.getfullargspec(function)[:4]

from ryu.cmd.manager import main  # noqa: E402  (after the repairs)

sys.exit(main())

"""The same operator functions as ge.es.all. Written by ge.es.stubs; not to be edited."""

from ge.es.all import *  # noqa: F403

"""The demo: a corpus that every Python has with it, crawled and collected on this machine, and a recipe run on it.

`python -m demo` needs no network and no data file. It is not part of the installed product.
"""

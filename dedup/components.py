"""Connected components by SQL, in logarithmic rounds, with nothing in memory that grows with the graph.

Source: Kiveris et al. 2014, "Connected components in MapReduce and beyond": large-star and small-star steps, in turn,
until each component is a star around its smallest document.
"""

from __future__ import annotations

from shards.step import Shuffle
from shards.store import join

MAX_ROUNDS = 100
"""More than any graph needs: the rounds grow with the logarithm of its size squared, and a dozen is usual."""

_ORIENTED = """SELECT DISTINCT GREATEST(e.a, e.b) AS u, LEAST(e.a, e.b) AS v FROM edges AS e WHERE e.a <> e.b"""

_LARGE_STAR = """WITH both_ways AS (
        SELECT e.u, e.v FROM edges AS e UNION ALL SELECT e.v AS u, e.u AS v FROM edges AS e),
    least AS (SELECT n.u, LEAST(n.u, MIN(n.v)) AS m FROM both_ways AS n GROUP BY n.u)
    SELECT DISTINCT n.v AS u, s.m AS v FROM both_ways AS n JOIN least AS s ON s.u = n.u WHERE n.v > n.u"""

_SMALL_STAR = """WITH least AS (SELECT e.u, MIN(e.v) AS m FROM edges AS e GROUP BY e.u)
    SELECT DISTINCT f.u, f.v FROM (
        SELECT e.v AS u, s.m AS v FROM edges AS e JOIN least AS s ON s.u = e.u WHERE e.v <> s.m
        UNION ALL SELECT s.u, s.m AS v FROM least AS s) AS f"""

# A star forest: no document has two centres, and no centre has a centre.
_UNFINISHED = """SELECT (SELECT COUNT(*) FROM edges AS e JOIN edges AS f ON f.u = e.v)
    + (SELECT COUNT(*) - COUNT(DISTINCT e.u) FROM edges AS e)"""

_LABELS = """SELECT e.u AS doc, e.v AS component FROM edges AS e
    UNION ALL SELECT DISTINCT e.v AS doc, e.v AS component FROM edges AS e"""


def components(shuffle: Shuffle, edges: str, work: str) -> str:
    """Table(doc, component) from Table(a, b, ...): each document of an edge and the smallest number it is linked to."""
    stars = shuffle.query(_ORIENTED, join(work, "stars-00"), edges=edges)
    for turn in range(1, MAX_ROUNDS):
        if shuffle.scalar(_UNFINISHED, edges=stars) == 0:
            return shuffle.query(_LABELS, join(work, "components"), edges=stars)
        large = shuffle.query(_LARGE_STAR, join(work, f"stars-{turn:02d}-large"), edges=stars)
        stars = shuffle.query(_SMALL_STAR, join(work, f"stars-{turn:02d}"), edges=large)
    raise AssertionError(f"components did not settle in {MAX_ROUNDS} rounds")

from __future__ import annotations

from pathlib import Path

from shards.views import connect
from tests.jobs.corpus import corpus, digests, mill


def test_spark_and_the_local_engine_give_the_same_digests_and_evidence(tmp_path: Path) -> None:
    data = corpus(tmp_path / "data")
    mill(data, tmp_path / "local")
    spark = tmp_path / "sp[a]{r,s}k*"  # a name in which Spark's readers see a pattern, beside what it would match
    mill(corpus(tmp_path / "other", count=50), tmp_path / "sparkx")
    assert mill(data, spark, engine="spark").exit_code == 0
    assert digests(spark) == digests(tmp_path / "local")
    evidence = "SELECT id, kept_id, similarity, method FROM duplicates ORDER BY ALL"
    with connect(str(tmp_path / "local")) as one, connect(str(spark)) as other:
        assert one.sql(evidence).fetchall() == other.sql(evidence).fetchall()

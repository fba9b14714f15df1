"""A tracked session on a real Spark: frames, models, blocks, streams, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sklearn.linear_model import LogisticRegression
from tests.spark import another_session

import downriver.spark
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from downriver.spark import TrackedSession

pytestmark = [  # PySpark leaves the sockets of toPandas to the garbage collector
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.fixture
def tracker(spark: Any, store: str) -> Iterator[TrackedSession]:
    """A new session on the shared Spark, tracked into a new store."""
    with another_session(spark) as session:
        tracked = downriver.spark.track(session, job="app", namespace="tests", to=store)
        yield tracked
        tracked.close()


@pytest.fixture
def features(tracker: TrackedSession, tmp_path: Path) -> str:
    path = str(tmp_path / "features")
    tracker.spark.range(40).selectExpr(
        "id", "id % 7 AS logins", "id % 3 AS tickets", "id % 2 AS churned"
    ).write.parquet(path)
    return path


def upstream(store: str, column: str) -> set[str]:
    """Return the columns that feed a column, by the last part of their dataset's name."""
    with Lineage.open(store) as lineage:
        answer = lineage.trace(column, "upstream")
    return {node.id.rpartition("/")[2] for node in answer.nodes if node.depth}


def states(store: str, job: str) -> list[str]:
    with Lineage.open(store) as lineage, lineage.session.reading() as view:
        return [
            run.state.name
            for run in view.reader.runs.latest(lineage.session.resolve(job, view).node, 10)
        ]


def test_a_model_connects_its_features_to_its_predictions(
    tracker: TrackedSession, features: str, store: str, tmp_path: Path
) -> None:
    frame = tracker.spark.read.parquet(features).where("id > 1").toPandas()
    given = frame[["logins", "tickets"]]
    fitted = LogisticRegression().fit(given, frame["churned"])
    model = tracker.model(
        "churn_v3", fitted, features=given, target=frame["churned"], path=str(tmp_path / "m.joblib")
    )
    frame["probability"] = fitted.predict_proba(given)[:, 1]
    model.predicted(frame, "probability")
    predictions = frame[["id", "probability"]]
    tracker.spark.createDataFrame(predictions).write.parquet(str(tmp_path / "predictions"))
    tracker.flush()
    assert upstream(store, "predictions.probability") == {
        "column:model:churn_v3:prediction",
        *("features:logins", "features:tickets", "features:churned", "features:id"),
    }
    assert upstream(store, "predictions.id") == {"features:id"}
    assert upstream(store, "churn_v3.logins") == {"features:logins", "features:id"}


def test_a_file_written_by_pandas_can_be_registered(
    tracker: TrackedSession, features: str, store: str, tmp_path: Path
) -> None:
    frame = tracker.spark.read.parquet(features).select("id", "logins").toPandas()
    frame.to_parquet(tmp_path / "copy.parquet")  # its attrs go into the file as JSON
    tracker.wrote(frame, str(tmp_path / "copy.parquet"))
    tracker.flush()
    assert upstream(store, "copy.parquet.logins") == {"features:logins"}


def test_a_column_made_in_pandas_may_use_any_of_the_others(
    tracker: TrackedSession, features: str, store: str, tmp_path: Path
) -> None:
    frame = tracker.spark.read.parquet(features).select("logins", "tickets").toPandas()
    frame["ratio"] = frame["logins"] / (frame["tickets"] + 1)
    tracker.spark.createDataFrame(frame).write.parquet(str(tmp_path / "ratios"))
    tracker.flush()
    assert upstream(store, "ratios.ratio") == {"features:logins", "features:tickets"}
    assert upstream(store, "ratios.logins") == {"features:logins"}


@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_an_autologged_mlflow_run_is_a_model(
    tracker: TrackedSession,
    features: str,
    store: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/mlruns")
    mlflow.set_experiment("churn")
    mlflow.sklearn.autolog(silent=True)
    try:
        frame = tracker.spark.read.parquet(features).toPandas()
        LogisticRegression().fit(frame[["logins", "tickets"]], frame["churned"])
    finally:
        mlflow.sklearn.autolog(disable=True)
    tracker.flush()
    tracker.flush()  # a run is registered once
    assert upstream(store, "churn.LogisticRegression.prediction") == {
        "features:logins",
        "features:tickets",
    }
    assert states(store, "job:app.churn.LogisticRegression") == ["COMPLETE"]


def test_a_block_is_a_run_of_a_separate_job(
    tracker: TrackedSession, features: str, store: str, tmp_path: Path
) -> None:
    with tracker.block("nightly.copy"):
        tracker.spark.read.parquet(features).write.parquet(str(tmp_path / "copy"))
    tracker.flush()
    assert states(store, "job:nightly.copy") == ["COMPLETE"]
    assert states(store, "job:nightly.copy.copy") == ["COMPLETE"]


def test_a_block_that_raises_is_a_run_that_failed(tracker: TrackedSession, store: str) -> None:
    with pytest.raises(ZeroDivisionError), tracker.block("nightly.broken"):
        raise ZeroDivisionError
    tracker.flush()
    assert states(store, "job:nightly.broken") == ["FAIL"]


def test_a_stream_and_what_foreach_batch_writes_lead_back_to_its_source(
    tracker: TrackedSession, features: str, store: str, tmp_path: Path
) -> None:
    stream = (
        tracker.spark.readStream.schema("id long, logins long, tickets long, churned long")
        .parquet(features)
        .where("tickets > 0")
        .selectExpr("id", "logins + 1 AS more")
    )
    out, each = str(tmp_path / "out"), str(tmp_path / "each")

    def write(frame: Any, _: int) -> None:
        frame.selectExpr("more * 2 AS twice").write.mode("append").parquet(each)

    for at, writer in enumerate(
        (
            stream.writeStream.format("parquet").option("path", out),
            stream.writeStream.foreachBatch(write),
        )
    ):
        query = (
            writer.option("checkpointLocation", str(tmp_path / f"checkpoint{at}"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)
    tracker.flush()
    assert upstream(store, "out.more") == {"features:logins", "features:tickets"}
    assert upstream(store, "each.twice") == {"features:logins", "features:tickets"}
    assert states(store, "job:app.out") == ["COMPLETE"]


def test_tracking_twice_changes_nothing(spark: Any, tracker: TrackedSession, store: str) -> None:
    assert downriver.spark.track(tracker.spark, to=store) is tracker
    with another_session(spark) as session:
        assert downriver.spark.track(session, to=store) is tracker


def test_every_session_of_the_application_is_captured(
    spark: Any, tracker: TrackedSession, features: str, store: str, tmp_path: Path
) -> None:
    with another_session(spark) as session:
        session.read.parquet(features).write.parquet(str(tmp_path / "second"))
        third = session.newSession()
        frame = third.read.parquet(str(tmp_path / "second")).select("logins").toPandas()
        third.createDataFrame(frame).write.parquet(str(tmp_path / "third"))
        query = (
            session.readStream.schema("logins long")
            .parquet(str(tmp_path / "third"))
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "streamed"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)
    tracker.flush()
    assert upstream(store, "streamed.logins") == {
        f"{name}:logins" for name in ("third", "second", "features")
    }


def test_jobs_never_share_a_name(tracker: TrackedSession, store: str, tmp_path: Path) -> None:
    url, driver = "jdbc:derby:memory:staff;create=true", "org.apache.derby.jdbc.EmbeddedDriver"
    people = tracker.spark.range(3)
    people.write.parquet(str(tmp_path / "emp"))
    staff = tracker.spark.read.parquet(str(tmp_path / "emp"))
    staff.write.mode("overwrite").jdbc(url, "emp", properties={"driver": driver})
    staff.write.parquet(str(tmp_path / "other" / "emp"))
    tracker.flush()
    for job in ("app.emp", "app.other.emp", "app.derby:memory:staff.emp"):
        assert states(store, f"job:{job}") == ["COMPLETE"]


def test_nothing_is_captured_after_the_tracker_is_closed(
    tracker: TrackedSession, store: str, features: str, tmp_path: Path
) -> None:
    stop = tracker.spark.sparkContext.stop
    tracker.close()
    assert tracker.spark.sparkContext.stop != stop
    tracker.spark.read.parquet(features).write.parquet(str(tmp_path / "unseen"))
    with Lineage.open(store) as lineage:
        assert "unseen" not in str(lineage.trace("features").nodes)


def test_a_session_that_cannot_be_captured_does_not_fail_the_job(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class OtherSession:
        """A session of another library."""

    tracker = downriver.spark.track(OtherSession())
    assert isinstance(tracker, downriver.spark.UncapturedSession)
    assert "OtherSession is not a session of PySpark" in tracker.reason
    assert "OtherSession is not a session of PySpark" in caplog.text
    with tracker.block("nightly"):
        assert not tracker.is_open
    assert tracker.flush()
    tracker.close()


def test_the_end_of_a_tracked_session_is_one_line(
    tracker: TrackedSession, features: str, tmp_path: Path
) -> None:
    lines: list[str] = []
    tracker.on_end = lines.append
    tracker.spark.read.parquet(features).write.parquet(str(tmp_path / "copy"))
    tracker.spark.read.parquet(features).count()
    tracker.close()
    assert lines == [
        "downriver: 2 writes and 1 read of 'app' captured; no blind spots; "
        "see `downriver trace job:app`"
    ]

"""Train the churn model, and predict the churn of every customer."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import joblib
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from downriver.spark import TrackedModel, Tracker
from features import NAMES, TARGET

LIKELY = 0.5


class Trained(NamedTuple):
    """A trained model, its metrics, and its registration in Downriver."""

    estimator: Pipeline
    metrics: dict[str, float]
    tracked: TrackedModel


def train(tracker: Tracker, features: DataFrame, path: Path) -> Trained:
    """Fit the model on three quarters of the customers, and measure it on the others."""
    known, unseen = train_test_split(to_table(features), test_size=0.25, random_state=7)
    estimator = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    estimator.fit(known[NAMES], known[TARGET])
    metrics = measure(estimator, unseen)
    path.parent.mkdir(parents=True, exist_ok=True)
    joblib.dump(estimator, path)
    tracked = tracker.model(
        "churn_model",
        estimator,
        features=known[NAMES],
        target=known[TARGET],
        path=str(path),
        metrics=metrics,
    )
    return Trained(estimator, metrics, tracked)


def measure(estimator: Pipeline, unseen: pd.DataFrame) -> dict[str, float]:
    """Return the metrics of the model on customers it was not trained on."""
    likely = estimator.predict_proba(unseen[NAMES])[:, 1]
    return {
        "auc": round(float(roc_auc_score(unseen[TARGET], likely)), 3),
        "accuracy": round(float(accuracy_score(unseen[TARGET], likely > LIKELY)), 3),
    }


def predict(spark: SparkSession, trained: Trained, features: DataFrame) -> DataFrame:
    """Return the churn probability of each customer."""
    table = to_table(features)
    likely = trained.estimator.predict_proba(table[NAMES])[:, 1]
    table["churn_probability"] = likely.round(4)
    table["churn_label"] = likely > LIKELY
    trained.tracked.predicted(table, "churn_probability", "churn_label")
    return spark.createDataFrame(table[["customer_id", "churn_probability", "churn_label"]])


def to_table(features: DataFrame) -> pd.DataFrame:
    """Return the features as a pandas frame, in the same order on every run."""
    table: pd.DataFrame = features.orderBy("customer_id").toPandas()
    return table

"""Our metrics against those of scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vfedsec import metrics

LABELS = st.lists(st.integers(0, 1), min_size=2, max_size=40)
FEW = settings(max_examples=40, deadline=None)


@st.composite
def tied_scores(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    labels = np.array(draw(LABELS), dtype=np.float32)
    levels = draw(st.integers(1, 6))
    picks = st.lists(st.integers(0, levels), min_size=len(labels), max_size=len(labels))
    return labels, (np.array(draw(picks)) / levels).astype(np.float32)


@st.composite
def class_probabilities(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    classes = draw(st.integers(3, 5))
    labels = np.concatenate([np.arange(classes), rng.integers(0, classes, 20)])
    weights = rng.integers(1, 5, (len(labels), classes))  # Few levels, so many ties.
    return labels.astype(np.float32), weights / weights.sum(axis=1, keepdims=True)


@FEW
@given(tied_scores())
def test_auc_is_that_of_scikit_learn_with_ties(case: tuple[np.ndarray, np.ndarray]) -> None:
    labels, scores = case
    assume(len(set(labels)) == 2)
    assert metrics.auc(labels, scores) == pytest.approx(sklearn.metrics.roc_auc_score(labels, scores))


@FEW
@given(tied_scores())
def test_average_precision_is_that_of_scikit_learn_with_ties(
    case: tuple[np.ndarray, np.ndarray],
) -> None:
    labels, scores = case
    assume(labels.any())
    assert metrics.average_precision(labels, scores) == pytest.approx(
        sklearn.metrics.average_precision_score(labels, scores)
    )


@FEW
@given(tied_scores())
def test_binary_log_loss_is_that_of_scikit_learn(case: tuple[np.ndarray, np.ndarray]) -> None:
    labels, scores = case
    expected = sklearn.metrics.log_loss(labels, scores, labels=[0, 1])
    assert metrics.log_loss(labels, scores) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@FEW
@given(class_probabilities())
def test_multiclass_metrics_are_those_of_scikit_learn(
    case: tuple[np.ndarray, np.ndarray],
) -> None:
    labels, probabilities = case
    assert metrics.evaluate("multiclass", labels, probabilities) == pytest.approx(
        {
            "accuracy": sklearn.metrics.accuracy_score(labels, probabilities.argmax(axis=1)),
            "log_loss": sklearn.metrics.log_loss(labels, probabilities),
            "macro_auc": sklearn.metrics.roc_auc_score(labels, probabilities, multi_class="ovr"),
        }
    )


@FEW
@given(st.integers(0, 2**32 - 1), st.integers(2, 50))
def test_regression_metrics_are_those_of_scikit_learn(seed: int, rows: int) -> None:
    labels, values = np.random.default_rng(seed).normal(size=(2, rows))
    assert metrics.evaluate("regression", labels, values[:, np.newaxis]) == pytest.approx(
        {
            "rmse": sklearn.metrics.root_mean_squared_error(labels, values),
            "r2": sklearn.metrics.r2_score(labels, values),
        }
    )


def test_binary_evaluation_takes_a_column_of_probabilities() -> None:
    labels = np.array([0, 1, 1, 0], dtype=np.float32)
    outputs = np.array([[0.2], [0.5], [0.4], [0.1]], dtype=np.float32)
    found = metrics.evaluate("binary", labels, outputs)
    assert found["auc"] == 1
    assert found["average_precision"] == 1
    assert found["accuracy"] == 0.75


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_auc_of_a_single_class_is_nan(label: float) -> None:
    assert math.isnan(metrics.auc(np.full(3, label), np.array([0.1, 0.2, 0.3])))


def test_average_precision_without_positives_is_nan() -> None:
    assert math.isnan(metrics.average_precision(np.zeros(3), np.array([0.1, 0.2, 0.3])))


def test_ranking_metrics_of_nan_scores_are_nan() -> None:
    labels, scores = np.array([0, 1, 1]), np.array([0.1, math.nan, 0.3])
    assert math.isnan(metrics.auc(labels, scores))
    assert math.isnan(metrics.average_precision(labels, scores))


def test_macro_auc_leaves_out_classes_without_rows() -> None:
    probabilities = np.array([[0.8, 0.2, 0.0], [0.3, 0.6, 0.1]])
    assert metrics.macro_auc(np.array([0, 1]), probabilities) == 1


def test_macro_auc_of_nan_probabilities_is_nan() -> None:
    probabilities = np.array([[0.8, 0.2, math.nan], [0.3, 0.6, 0.1]])
    assert math.isnan(metrics.macro_auc(np.array([0, 1]), probabilities))


def test_log_loss_of_a_certain_mistake_is_finite() -> None:
    assert 10 < metrics.log_loss(np.array([1.0]), np.array([0.0])) < 20


def test_r2_of_constant_labels_is_nan() -> None:
    assert math.isnan(metrics.r2(np.full(7, 0.1), np.arange(7.0)))


@pytest.mark.parametrize(("task_kind", "width"), [("binary", 1), ("multiclass", 3), ("regression", 1)])
def test_no_rows_have_no_metrics(task_kind: str, width: int) -> None:
    found = metrics.evaluate(task_kind, np.zeros(0), np.zeros((0, width)))
    assert all(math.isnan(value) for value in found.values())


@pytest.mark.parametrize(("task_kind", "width"), [("binary", 1), ("multiclass", 3), ("regression", 1)])
def test_the_main_metric_is_among_those_evaluated(task_kind: str, width: int) -> None:
    found = metrics.evaluate(task_kind, np.array([0.0, 1.0]), np.zeros((2, width)))
    assert metrics.main_metric(task_kind)[0] in found


def test_only_errors_are_better_when_lower() -> None:
    assert metrics.main_metric("binary")[1]
    assert metrics.main_metric("multiclass")[1]
    assert not metrics.main_metric("regression")[1]

"""Metrics in the format of Prometheus, by prometheus-client.

Imported at the first request for metrics: loading it would delay the start of a server too much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.core import (
    Metric as Exposed,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from mqis.runtime.histogram import Histogram
from mqis.server.monitoring.metrics.all_metrics import Metric, MetricKind, Samples
from mqis.server.monitoring.metrics.metric_values import families
from mqis.server.monitoring.status_gathering import status_in
from mqis.server.monitoring.status_sources import Sources

CONTENT_TYPE = CONTENT_TYPE_LATEST

_FAMILIES: dict[MetricKind, type[GaugeMetricFamily | CounterMetricFamily]] = {
    MetricKind.GAUGE: GaugeMetricFamily,
    MetricKind.COUNTER: CounterMetricFamily,
}


class ServerCollector(Collector):
    """Reads a server's metrics at each request; raises ``StorageError`` if the store fails."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def describe(self) -> Iterable[Exposed]:
        return ()

    def collect(self) -> Iterator[Exposed]:
        with self._sources.store.read() as view:
            status = status_in(view, self._sources)
            found = list(families(self._sources, view, status))
        for metric, samples in found:
            yield exposed(metric, samples)


def exposed(metric: Metric, samples: Samples) -> Exposed:
    labels = list(metric.labels)
    if metric.kind is MetricKind.HISTOGRAM:
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=labels)
        for values, counted in samples:
            assert isinstance(counted, Histogram)
            buckets = [(_bound(bound), count) for bound, count in counted.buckets()]
            histogram.add_metric(values, buckets, counted.total)
        return histogram
    family = _FAMILIES[metric.kind](metric.name, metric.help, labels=labels)
    for values, value in samples:
        family.add_metric(values, cast(float, value))
    return family


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else str(bound)


class Exposition:
    """The document ``/metrics`` of one server."""

    def __init__(self, sources: Sources) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(ServerCollector(sources))
        others: tuple[Any, ...] = (ProcessCollector, GCCollector)
        for collector in others:
            collector(registry=self._registry)

    def text(self) -> bytes:
        return generate_latest(self._registry)

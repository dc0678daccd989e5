package otlp

import (
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// scope is the name under which the metrics come.
const scope = "github.com/interlockdev/interlock"

// convert maps metrics as a scrape shows them to those of OpenTelemetry. Names, labels and numbers stay:
//
//	counter            sum, cumulative, monotonic
//	gauge, untyped     gauge
//	histogram          histogram of the classic buckets, each with its own count instead of a running one, and with
//	                   the exemplars of the buckets
//	summary            summary
func (p *Pusher) convert(families []*dto.MetricFamily, now time.Time) []*metrics.ResourceMetrics {
	list := make([]*metrics.Metric, 0, len(families))
	for _, f := range families {
		list = append(list, p.family(f, uint64(now.UnixNano())))
	}
	return []*metrics.ResourceMetrics{{
		Resource: &resource.Resource{Attributes: attributes(p.cfg.Resource)},
		ScopeMetrics: []*metrics.ScopeMetrics{{
			Scope:   &common.InstrumentationScope{Name: scope, Version: p.cfg.Version},
			Metrics: list,
		}},
	}}
}

// family converts all metrics of one name.
func (p *Pusher) family(f *dto.MetricFamily, now uint64) *metrics.Metric {
	m := &metrics.Metric{Name: f.GetName(), Description: f.GetHelp(), Unit: f.GetUnit()}
	const cumulative = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		sum := &metrics.Sum{AggregationTemporality: cumulative, IsMonotonic: true}
		for _, one := range f.Metric {
			c := one.Counter
			sum.DataPoints = append(sum.DataPoints, number(one, p.since(c.CreatedTimestamp), now, c.GetValue()))
		}
		m.Data = &metrics.Metric_Sum{Sum: sum}
	case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
		all := &metrics.Histogram{AggregationTemporality: cumulative}
		for _, one := range f.Metric {
			all.DataPoints = append(all.DataPoints, p.histogram(one, now))
		}
		m.Data = &metrics.Metric_Histogram{Histogram: all}
	case dto.MetricType_SUMMARY:
		all := &metrics.Summary{}
		for _, one := range f.Metric {
			all.DataPoints = append(all.DataPoints, p.summary(one, now))
		}
		m.Data = &metrics.Metric_Summary{Summary: all}
	default:
		gauge := &metrics.Gauge{}
		for _, one := range f.Metric {
			value := one.Gauge.GetValue()
			if one.Gauge == nil {
				value = one.Untyped.GetValue()
			}
			gauge.DataPoints = append(gauge.DataPoints, number(one, 0, now, value))
		}
		m.Data = &metrics.Metric_Gauge{Gauge: gauge}
	}
	return m
}

// since is when a number began at zero: when the process began, if the metric does not know better.
func (p *Pusher) since(created *timestamppb.Timestamp) uint64 {
	if created == nil {
		return uint64(p.started.UnixNano())
	}
	return uint64(created.AsTime().UnixNano())
}

func number(one *dto.Metric, since, now uint64, value float64) *metrics.NumberDataPoint {
	return &metrics.NumberDataPoint{
		Attributes: labels(one), StartTimeUnixNano: since, TimeUnixNano: now,
		Value: &metrics.NumberDataPoint_AsDouble{AsDouble: value},
	}
}

func (p *Pusher) histogram(one *dto.Metric, now uint64) *metrics.HistogramDataPoint {
	h := one.Histogram
	sum := h.GetSampleSum()
	point := &metrics.HistogramDataPoint{
		Attributes: labels(one), StartTimeUnixNano: p.since(h.CreatedTimestamp), TimeUnixNano: now,
		Count: h.GetSampleCount(), Sum: &sum,
	}
	below := uint64(0)
	for _, b := range h.Bucket {
		if e := b.Exemplar; e != nil {
			point.Exemplars = append(point.Exemplars, exemplar(e))
		}
		if math.IsInf(b.GetUpperBound(), 1) {
			continue // the rest, which follows
		}
		point.ExplicitBounds = append(point.ExplicitBounds, b.GetUpperBound())
		point.BucketCounts = append(point.BucketCounts, b.GetCumulativeCount()-below)
		below = b.GetCumulativeCount()
	}
	point.BucketCounts = append(point.BucketCounts, h.GetSampleCount()-below)
	return point
}

// exemplar converts the example of a bucket. Its label trace_id has a place of its own.
func exemplar(e *dto.Exemplar) *metrics.Exemplar {
	converted := &metrics.Exemplar{
		TimeUnixNano: uint64(e.GetTimestamp().AsTime().UnixNano()),
		Value:        &metrics.Exemplar_AsDouble{AsDouble: e.GetValue()},
	}
	for _, l := range e.Label {
		trace, err := hex.DecodeString(l.GetValue())
		if l.GetName() == "trace_id" && err == nil && len(trace) == 16 {
			converted.TraceId = trace
		} else {
			converted.FilteredAttributes = append(converted.FilteredAttributes, attribute(l.GetName(), l.GetValue()))
		}
	}
	return converted
}

func (p *Pusher) summary(one *dto.Metric, now uint64) *metrics.SummaryDataPoint {
	s := one.Summary
	point := &metrics.SummaryDataPoint{
		Attributes: labels(one), StartTimeUnixNano: p.since(s.CreatedTimestamp), TimeUnixNano: now,
		Count: s.GetSampleCount(), Sum: s.GetSampleSum(),
	}
	for _, q := range s.Quantile {
		point.QuantileValues = append(
			point.QuantileValues, &metrics.SummaryDataPoint_ValueAtQuantile{Quantile: q.GetQuantile(), Value: q.GetValue()},
		)
	}
	return point
}

// labels returns the labels of a metric as attributes.
func labels(one *dto.Metric) (list []*common.KeyValue) {
	for _, l := range one.Label {
		list = append(list, attribute(l.GetName(), l.GetValue()))
	}
	return list
}

// attributes returns them in the order of their names.
func attributes(all map[string]string) (list []*common.KeyValue) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, attribute(name, all[name]))
	}
	return list
}

func attribute(name, value string) *common.KeyValue {
	return &common.KeyValue{
		Key: name, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}},
	}
}

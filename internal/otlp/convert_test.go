package otlp

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metrics "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
)

// Each kind of metric keeps its name, its labels and its numbers; the buckets of a histogram count apart.
func TestConvert(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c_total", Help: "Things."}, []string{"kind"})
	counter.WithLabelValues("b").Add(2)
	counter.WithLabelValues("a").Inc()
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "g"})
	gauge.Set(math.Inf(1))
	untyped := prometheus.NewUntypedFunc(prometheus.UntypedOpts{Name: "u"}, func() float64 { return 7 })
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "h_seconds", Buckets: []float64{1, 2, 4}, NativeHistogramBucketFactor: 1.1,
	})
	for _, v := range []float64{0.5, 1.5, 1.6, 9} {
		histogram.Observe(v)
	}
	bounded := prometheus.MustNewConstHistogram(
		prometheus.NewDesc("i", "", nil, nil), 3, 12, map[float64]uint64{1: 1, math.Inf(1): 3},
	)
	summary := prometheus.NewSummary(prometheus.SummaryOpts{Name: "s", Objectives: map[float64]float64{0.5: 0.1}})
	summary.Observe(5)
	registry.MustRegister(counter, gauge, untyped, histogram, summary, constant{bounded})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	p := New(Config{Resource: map[string]string{"service.name": "interlock", "a": "b"}, Version: "1.2.3"})
	now := time.Now()
	got := p.convert(families, now)[0]
	var lines []string
	for _, a := range got.Resource.Attributes {
		lines = append(lines, a.Key+"="+a.Value.GetStringValue())
	}
	for _, m := range got.ScopeMetrics[0].Metrics {
		lines = append(lines, describe(t, m, uint64(now.UnixNano()))...)
	}
	want := []string{
		"a=b", "service.name=interlock",
		"c_total [Things.] kind=a sum 1", "c_total [Things.] kind=b sum 2", "g [] gauge +Inf",
		"h_seconds [] histogram 4 12.6 [1 2 4] [1 2 0 1]", "i [] histogram 3 12 [1] [1 2]", "s [] summary 1 5 [5]",
		"u [] gauge 7",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("converted to\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// The exemplars of a histogram keep their values, times and traces, also that of the last bucket.
func TestConvertExemplars(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "h_seconds", Buckets: []float64{1, 2}, NativeHistogramBucketFactor: 1.1,
	})
	histogram.Observe(0.5)
	before := time.Now()
	for value, labels := range map[float64]prometheus.Labels{
		1.5: {"trace_id": "not a trace"}, 9: {"trace_id": trace, "k": "v"},
	} {
		histogram.(prometheus.ExemplarObserver).ObserveWithExemplar(value, labels)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(histogram)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	point := New(Config{}).convert(families, time.Now())[0].ScopeMetrics[0].Metrics[0].GetHistogram().DataPoints[0]
	if !slices.Equal(point.BucketCounts, []uint64{1, 1, 1}) || len(point.ExplicitBounds) != 2 {
		t.Errorf("the buckets are %v %v", point.ExplicitBounds, point.BucketCounts)
	}
	var lines []string
	for _, e := range point.Exemplars {
		if at := time.Unix(0, int64(e.TimeUnixNano)); at.Before(before) || at.After(time.Now()) {
			t.Errorf("an exemplar is of %v", at)
		}
		line := fmt.Sprintf("%v %x", e.GetAsDouble(), e.TraceId)
		for _, a := range e.FilteredAttributes {
			line += " " + a.Key + "=" + a.Value.GetStringValue()
		}
		lines = append(lines, line)
	}
	if want := []string{"1.5  trace_id=not a trace", "9 " + trace + " k=v"}; !slices.Equal(lines, want) {
		t.Errorf("the exemplars are %q, want %q", lines, want)
	}
}

// constant collects one metric that never changes.
type constant struct{ prometheus.Metric }

func (c constant) Describe(ch chan<- *prometheus.Desc) { ch <- c.Desc() }
func (c constant) Collect(ch chan<- prometheus.Metric) { ch <- c.Metric }

// describe returns a line for each data point, and checks the times of the cumulative ones.
func describe(t *testing.T, m *metrics.Metric, now uint64) (lines []string) {
	t.Helper()
	const cumulative = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	name := fmt.Sprintf("%s [%s]", m.Name, m.Description)
	times := func(since, at uint64) {
		t.Helper()
		if since == 0 || since > at || at != now {
			t.Errorf("%s is from %d to %d", m.Name, since, at)
		}
	}
	number := func(point *metrics.NumberDataPoint, kind string) {
		line := name
		for _, a := range point.Attributes {
			line += " " + a.Key + "=" + a.Value.GetStringValue()
		}
		lines = append(lines, fmt.Sprintf("%s %s %v", line, kind, point.GetAsDouble()))
	}
	switch data := m.Data.(type) {
	case *metrics.Metric_Sum:
		if !data.Sum.IsMonotonic || data.Sum.AggregationTemporality != cumulative {
			t.Errorf("%s is no counter: %v", m.Name, data.Sum)
		}
		for _, point := range data.Sum.DataPoints {
			times(point.StartTimeUnixNano, point.TimeUnixNano)
			number(point, "sum")
		}
	case *metrics.Metric_Gauge:
		for _, point := range data.Gauge.DataPoints {
			number(point, "gauge")
		}
	case *metrics.Metric_Histogram:
		for _, point := range data.Histogram.DataPoints {
			times(point.StartTimeUnixNano, point.TimeUnixNano)
			lines = append(lines, fmt.Sprintf(
				"%s histogram %d %v %v %v", name, point.Count, point.GetSum(), point.ExplicitBounds, point.BucketCounts,
			))
		}
	case *metrics.Metric_Summary:
		for _, point := range data.Summary.DataPoints {
			times(point.StartTimeUnixNano, point.TimeUnixNano)
			lines = append(lines, fmt.Sprintf(
				"%s summary %d %v [%v]", name, point.Count, point.Sum, point.QuantileValues[0].Value,
			))
		}
	}
	return lines
}

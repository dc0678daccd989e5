package deploy

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	core "k8s.io/api/core/v1"

	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

// push is what came to the collector.
type push struct {
	header  http.Header
	metrics pmetric.Metrics
}

// collect starts a collector, with the decoder of OpenTelemetry's own, and returns its URL.
func collect(t *testing.T) (url string, pushes <-chan push) {
	t.Helper()
	came := make(chan push)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		plain, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
			return
		}
		request := pmetricotlp.NewExportRequest()
		if err := request.UnmarshalProto(plain); err != nil || r.URL.Path != "/v1/metrics" {
			t.Errorf("%s: %v", r.URL.Path, err)
			return
		}
		select {
		case came <- push{r.Header.Clone(), request.Metrics()}:
		case <-r.Context().Done():
		}
		answer, _ := pmetricotlp.NewExportResponse().MarshalProto()
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(answer)
	}))
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return s.URL, came
}

// scrape returns the numbers of /metrics: each by its name, its labels, and the part of it.
func (s *running) scrape() map[string]float64 {
	s.t.Helper()
	answer, err := http.Get(s.url + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	numbers := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			series := seriesOf(name, labels)
			switch {
			case m.Counter != nil:
				numbers[series+" counter"] = m.Counter.GetValue()
			case m.Gauge != nil:
				numbers[series+" gauge"] = m.Gauge.GetValue()
			case m.Histogram != nil:
				numbers[series+" count"] = float64(m.Histogram.GetSampleCount())
				numbers[series+" sum"] = m.Histogram.GetSampleSum()
				for _, b := range m.Histogram.Bucket {
					numbers[fmt.Sprintf("%s to %v", series, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
			case m.Summary != nil:
				numbers[series+" count"] = float64(m.Summary.GetSampleCount())
				numbers[series+" sum"] = m.Summary.GetSampleSum()
				for _, q := range m.Summary.Quantile {
					numbers[fmt.Sprintf("%s quantile %v", series, q.GetQuantile())] = q.GetValue()
				}
			}
		}
	}
	return numbers
}

// seriesOf is the name of a metric with its labels.
func seriesOf(name string, labels map[string]string) string {
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		name += " " + label + "=" + labels[label]
	}
	return name
}

// numbersOf returns the numbers of a push as scrape does.
func numbersOf(t *testing.T, all pmetric.Metrics) map[string]float64 {
	t.Helper()
	numbers := map[string]float64{}
	series := func(m pmetric.Metric, attributes pcommon.Map) string {
		labels := map[string]string{}
		for name, value := range attributes.All() {
			labels[name] = value.Str()
		}
		return seriesOf(m.Name(), labels)
	}
	metrics := all.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for _, m := range metrics.All() {
		switch m.Type() {
		case pmetric.MetricTypeSum:
			if !m.Sum().IsMonotonic() || m.Sum().AggregationTemporality() != pmetric.AggregationTemporalityCumulative {
				t.Errorf("%s is no counter", m.Name())
			}
			for _, p := range m.Sum().DataPoints().All() {
				numbers[series(m, p.Attributes())+" counter"] = p.DoubleValue()
			}
		case pmetric.MetricTypeGauge:
			for _, p := range m.Gauge().DataPoints().All() {
				numbers[series(m, p.Attributes())+" gauge"] = p.DoubleValue()
			}
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				name, count := series(m, p.Attributes()), uint64(0)
				numbers[name+" count"], numbers[name+" sum"] = float64(p.Count()), p.Sum()
				for i, n := range p.BucketCounts().All() {
					count += n
					bound := math.Inf(1)
					if i < p.ExplicitBounds().Len() {
						bound = p.ExplicitBounds().At(i)
					}
					numbers[fmt.Sprintf("%s to %v", name, bound)] = float64(count)
				}
			}
		case pmetric.MetricTypeSummary:
			for _, p := range m.Summary().DataPoints().All() {
				name := series(m, p.Attributes())
				numbers[name+" count"], numbers[name+" sum"] = float64(p.Count()), p.Sum()
				for _, q := range p.QuantileValues().All() {
					numbers[fmt.Sprintf("%s quantile %v", name, q.Quantile())] = q.Value()
				}
			}
		default:
			t.Errorf("%s is of the type %v", m.Name(), m.Type())
		}
	}
	return numbers
}

// tracesOf returns the traces of a histogram's exemplars.
func tracesOf(all pmetric.Metrics, histogram string) (traces []string) {
	for _, m := range all.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if m.Name() != histogram {
			continue
		}
		for _, p := range m.Histogram().DataPoints().All() {
			for _, e := range p.Exemplars().All() {
				traces = append(traces, e.TraceID().String())
			}
		}
	}
	return traces
}

// next returns the next push.
func next(t *testing.T, pushes <-chan push) push {
	t.Helper()
	select {
	case p := <-pushes:
		return p
	case <-time.After(busy.Patience()):
		t.Fatal("no push came")
		return push{}
	}
}

// What a server pushes is what /metrics shows: read by the collector's decoder, each number of a push lies between
// those of the scrapes before and after it, and no series is missing or more.
func TestPushedMetricsAreThoseOfAScrape(t *testing.T) {
	t.Run("one shard", func(t *testing.T) { comparePushes(t, container(t, "insecure"), nil, "") })
	t.Run("16 shards", func(t *testing.T) {
		in := valuesOf(t, "postgres")
		delete(in.values, "credentials")
		in.values["insecure"] = true
		secrets := map[string]string{
			"interlock-journal/url": postgrestest.Start(t, "-c", "fsync=on").URL(t), "interlock-journal/password": "unused",
		}
		comparePushes(t, &pod(t, objects(t, in)).Spec.Containers[0], secrets, " shard=")
	})
}

// comparePushes compares the pushes of a server with its scrapes. Its metrics have the label shard, or not.
func comparePushes(t *testing.T, c *core.Container, secrets map[string]string, shard string) {
	url, pushes := collect(t)
	c.Args = append(c.Args, "--otlp-metrics="+url, "--otlp-interval=1s")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=sesame")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	s := run(t, c, t.TempDir(), secrets)
	s.becomes("ready")
	const lease = `{"claims": [{"key": "account:1"}], "ttl_ms": 60000, "agent": "billing-7"}`
	request, err := http.NewRequest(http.MethodPost, s.url+"/v1/leases", strings.NewReader(lease))
	if err != nil {
		t.Fatal(err)
	}
	const trace = "0af7651916cd43dd8448eb211c80319c"
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode/100 != 2 {
		t.Fatalf("no lease: %v %v", answer, err)
	}
	answer.Body.Close()

	s.scrape() // so that the route is counted
	next(t, pushes)
	s.status("/v1/status")
	before := s.scrape()
	got := next(t, pushes)
	after := s.scrape()
	if got.header.Get("Api-Key") != "sesame" {
		t.Errorf("the headers are %v", got.header)
	}
	attributes := got.metrics.ResourceMetrics().At(0).Resource().Attributes().AsRaw()
	for _, want := range []string{
		"service.name", "service.version", "service.instance.id", "deployment.environment.name",
	} {
		if attributes[want] == nil {
			t.Errorf("the resource lacks %s: %v", want, attributes)
		}
	}
	if traces := tracesOf(got.metrics, "interlock_wait_seconds"); !slices.Equal(traces, []string{trace}) {
		t.Errorf("the exemplars of waits have the traces %v", traces)
	}
	pushed := numbersOf(t, got.metrics)
	granted := 0.0
	for name, value := range pushed {
		if strings.HasPrefix(name, "interlock_acquires_total outcome=granted") && strings.Contains(name, shard) {
			granted += value
		}
	}
	// On a busy machine a push may take longer than a second, and count as failed.
	if _, ok := pushed["interlock_otlp_pushes_total outcome=failed counter"]; granted != 1 || !ok || len(pushed) < 150 {
		t.Errorf("pushed were %d numbers: %v", len(pushed), pushed)
	}
	for name, value := range pushed {
		low, high := before[name], after[name]
		if _, ok := after[name]; !ok {
			t.Errorf("%s is pushed, and no scrape shows it", name)
		}
		moves := strings.HasSuffix(name, " gauge") || strings.Contains(name, " quantile ")
		if moves && !strings.HasPrefix(name, "interlock_") {
			continue // memory, which goes up and down
		}
		if cmp.Compare(value, low) < 0 || cmp.Compare(value, high) > 0 {
			t.Errorf("%s is %v, and was %v before and %v after", name, value, low, high)
		}
	}
	for name := range before {
		if _, ok := pushed[name]; !ok {
			t.Errorf("%s is not pushed", name)
		}
	}
	s.stopWhile(func() { next(t, pushes) }) // the last push
}

// A collector that takes nothing costs a server nothing: it starts, answers and stops, and counts what failed.
func TestServerWithoutItsCollector(t *testing.T) {
	came := make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		select {
		case came <- struct{}{}:
		case <-r.Context().Done():
		}
	}))
	defer collector.Close()
	c := container(t, "insecure")
	c.Args = append(c.Args, "--otlp-metrics="+collector.URL, "--otlp-interval=1s")
	s := run(t, c, t.TempDir(), nil)
	s.becomes("ready")
	for range 3 { // when the third comes, the second has failed
		select {
		case <-came:
		case <-time.After(busy.Patience()):
			t.Fatal("no push came")
		}
		s.passes()
	}
	if failed := s.scrape()["interlock_otlp_pushes_total outcome=failed counter"]; failed < 2 {
		t.Errorf("%v failed pushes are counted, want 2", failed)
	}
	s.stop()
	if logged := strings.Count(s.log.String(), "metrics cannot be pushed"); logged != 1 {
		t.Errorf("the failures are logged %d times:\n%s", logged, s.log.String())
	}
}

package server

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// showMetrics returns the handlers of /metrics: for the figures that every caller may see, and for those by
// namespace, too.
func (s *Server) showMetrics() (common, all http.Handler) {
	show := func(tenants bool) http.Handler {
		return promhttp.HandlerFor(s.gatherer(tenants), promhttp.HandlerOpts{
			MaxRequestsInFlight: 4, EnableOpenMetrics: true, // which has exemplars
		})
	}
	return show(false), show(true)
}

// Metrics returns what /metrics shows to the role metrics.
func (s *Server) Metrics() prometheus.Gatherer { return s.gatherer(true) }

// gatherer returns what /metrics shows, with the figures by namespace or without.
func (s *Server) gatherer(tenants bool) prometheus.Gatherer {
	own := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		if s.directory != nil {
			return s.gatherShards(tenants)
		}
		return s.obs.figures.gatherer(tenants).Gather()
	})
	if s.process == nil {
		return own
	}
	return prometheus.Gatherers{own, s.process}
}

// gatherer returns the figures that every caller may see, or with the role metrics.
func (f *figures) gatherer(tenants bool) prometheus.Gatherer {
	if tenants && f.theirs != nil {
		return prometheus.Gatherers{f.registry, f.theirs}
	}
	return f.registry
}

// mostShards is the number of shards of a journal up to which each has figures of its own.
const mostShards = 64

// allShards is the label of the sums of more.
const allShards = "all"

// SeriesOfShard returns how many label sets each metric by namespace has in a shard, of so many: those of mostShards
// shards are the most that a server has, whatever number it owns.
func SeriesOfShard(series, shards int) int {
	if series == 0 || shards <= mostShards {
		return series
	}
	return max(1, series*mostShards/shards)
}

// gatherShards gathers the figures of a router: of its shards, with the label shard if there are several, and
// those of the process from itself. With more than mostShards in the journal they are sums over the server's shards:
// so the series do not depend on the shards that it owns, and their number is bounded.
func (s *Server) gatherShards(tenants bool) ([]*dto.MetricFamily, error) {
	byName := map[string]*dto.MetricFamily{}
	unreached := 0
	for _, p := range s.directory.Peers() {
		if !p.Unreached.IsZero() {
			unreached++
		}
	}
	s.obs.figures.unreached.Set(float64(unreached))
	own, failed := s.obs.figures.gatherer(tenants).Gather()
	locations := s.directory.Locations()
	sums := sums{}
	for _, at := range locations {
		if at.Server == nil {
			continue
		}
		theirs, err := at.Server.obs.figures.gatherer(tenants).Gather()
		failed = errors.Join(failed, err)
		for _, f := range theirs {
			if !strings.HasPrefix(f.GetName(), "interlock_") || f.GetName() == "interlock_build_info" ||
				f.GetName() == "interlock_relayed_streams" || f.GetName() == "interlock_unreached_servers" {
				continue // of the process: the router has it
			}
			if len(locations) > mostShards {
				if f.GetName() == "interlock_epoch" || f.GetName() == "interlock_journal_index" {
					continue // they have no sum
				}
				sums.add(f)
				f.Metric = nil
			} else if len(locations) > 1 {
				label(f, "shard", strconv.Itoa(at.Shard))
			}
			if known := byName[f.GetName()]; known != nil {
				known.Metric = append(known.Metric, f.Metric...)
			} else {
				byName[f.GetName()] = f
			}
		}
	}
	for name, list := range sums {
		for _, m := range list {
			byName[name].Metric = append(byName[name].Metric, m)
		}
		label(byName[name], "shard", allShards)
	}
	for _, f := range own {
		known := byName[f.GetName()]
		switch {
		case known == nil:
			byName[f.GetName()] = f
		case f.GetName() == "interlock_http_requests_total" || f.GetName() == "interlock_forwarded_total":
			known.Metric = append(known.Metric, f.Metric...) // what the router answered and forwarded
		}
	}
	list := make([]*dto.MetricFamily, 0, len(byName))
	for _, f := range byName {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return list, failed
}

// sums are the metrics of several shards together: by family, and then by their labels.
type sums map[string]map[string]*dto.Metric

// add adds the metrics of a shard. The registry has sorted their labels. Sums have the classic buckets alone.
func (s sums) add(f *dto.MetricFamily) {
	of := s[f.GetName()]
	if of == nil {
		of = map[string]*dto.Metric{}
		s[f.GetName()] = of
	}
	for _, m := range f.Metric {
		key := ""
		for _, l := range m.Label {
			key += strconv.Quote(l.GetName()) + strconv.Quote(l.GetValue())
		}
		if h := m.Histogram; h != nil {
			m.Histogram = &dto.Histogram{SampleCount: h.SampleCount, SampleSum: h.SampleSum, Bucket: h.Bucket}
		}
		sum := of[key]
		if sum == nil {
			of[key] = m
			continue
		}
		switch {
		case m.Counter != nil:
			*sum.Counter.Value += m.Counter.GetValue()
		case m.Gauge != nil:
			*sum.Gauge.Value += m.Gauge.GetValue()
		case m.Histogram != nil:
			*sum.Histogram.SampleCount += m.Histogram.GetSampleCount()
			*sum.Histogram.SampleSum += m.Histogram.GetSampleSum()
			for i, b := range m.Histogram.Bucket {
				*sum.Histogram.Bucket[i].CumulativeCount += b.GetCumulativeCount()
			}
		}
	}
}

// label adds a label to all metrics of a family.
func label(f *dto.MetricFamily, name, value string) {
	for _, m := range f.Metric {
		m.Label = append(m.Label, &dto.LabelPair{Name: &name, Value: &value})
		slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	}
}

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

// gatherShards gathers the figures of a router: of its shards, with the label shard if there are several, and
// those of the process from itself.
func (s *Server) gatherShards(tenants bool) ([]*dto.MetricFamily, error) {
	byName := map[string]*dto.MetricFamily{}
	own, failed := s.obs.figures.gatherer(tenants).Gather()
	locations := s.directory.Locations()
	shards := 0
	for _, at := range locations {
		if at.Server == nil {
			continue
		}
		shards++
		theirs, err := at.Server.obs.figures.gatherer(tenants).Gather()
		failed = errors.Join(failed, err)
		for _, f := range theirs {
			if !strings.HasPrefix(f.GetName(), "interlock_") || f.GetName() == "interlock_build_info" ||
				f.GetName() == "interlock_relayed_streams" {
				continue // of the process: the router has it
			}
			if len(locations) > 1 {
				label(f, "shard", strconv.Itoa(at.Shard))
			}
			if known := byName[f.GetName()]; known != nil {
				known.Metric = append(known.Metric, f.Metric...)
			} else {
				byName[f.GetName()] = f
			}
		}
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

// label adds a label to all metrics of a family.
func label(f *dto.MetricFamily, name, value string) {
	for _, m := range f.Metric {
		m.Label = append(m.Label, &dto.LabelPair{Name: &name, Value: &value})
		slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	}
}

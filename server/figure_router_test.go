package server

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/interlockdev/interlock"
)

// manyShards is a directory of shards of one server.
type manyShards struct {
	server *Server
	shards int
}

func (m manyShards) Peers() []Peer { return nil }

func (m manyShards) Locate(interlock.Namespace) Location { return Location{Server: m.server} }

func (m manyShards) Locations() (list []Location) {
	for s := range m.shards {
		list = append(list, Location{Shard: s, Server: m.server})
	}
	return list
}

// valuesOf returns the numbers of families, by the name and the labels but shard.
func valuesOf(families []*dto.MetricFamily) map[string]float64 {
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			key := f.GetName()
			for _, l := range m.Label {
				if l.GetName() != "shard" {
					key += "|" + l.GetName() + "=" + l.GetValue()
				}
			}
			values[key] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if h := m.Histogram; h != nil {
				values[key+" count"] += float64(h.GetSampleCount())
				for _, b := range h.Bucket {
					values[key+" <= "+strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64)] += float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return values
}

// With up to 64 shards each has its figures; with more the figures are their sums, and no more of them than one shard
// has.
func TestFiguresOfManyShards(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		for i := range 5 {
			d.post("/v1/leases", fmt.Sprintf(`{"claims":[{"key":"k%d"}]}`, i)).want(200)
		}
		d.post("/v1/leases", `{"claims":[{"key":"k1"}],"skip_if_held":true}`)
		one, err := d.server.obs.figures.gatherer(true).Gather()
		if err != nil {
			t.Fatal(err)
		}
		want := valuesOf(one)
		series := 0
		for _, f := range one {
			series += len(f.Metric)
		}
		for _, shards := range []int{2, mostShards, mostShards + 1, 300} {
			router, err := NewRouter(Config{}, manyShards{server: d.server, shards: shards})
			if err != nil {
				t.Fatal(err)
			}
			families, err := router.gatherer(true).Gather()
			if err != nil {
				t.Fatal(err)
			}
			got, labels := 0, map[string]bool{}
			for _, f := range families {
				for _, m := range f.Metric {
					got++
					for _, l := range m.Label {
						if l.GetName() == "shard" {
							labels[l.GetValue()] = true
						}
					}
				}
			}
			summed := shards > mostShards
			switch {
			case !summed && (len(labels) != shards || labels[allShards]):
				t.Errorf("%d shards have %d labels", shards, len(labels))
			case summed && (len(labels) != 1 || !labels[allShards] || got > series+100):
				t.Errorf("%d shards have the labels %v and %d series; one has %d", shards, labels, got, series)
			}
			values := valuesOf(families)
			for name, v := range want {
				of := strings.SplitN(name, "|", 2)[0]
				if !strings.HasPrefix(name, "interlock_") || of == "interlock_build_info" ||
					of == "interlock_relayed_streams" || of == "interlock_unreached_servers" ||
					of == "interlock_http_requests_total" || of == "interlock_forwarded_total" ||
					strings.HasPrefix(name, "interlock_engine_lag_seconds") { // each scrape adds to it
					continue
				}
				if summed && (of == "interlock_epoch" || of == "interlock_journal_index") {
					if _, ok := values[name]; ok {
						t.Errorf("%s has a sum", name)
					}
					continue
				}
				if values[name] != v*float64(shards) {
					t.Errorf("%d shards: %s is %v, want %v of each", shards, name, values[name], v)
				}
			}
		}
	})
}

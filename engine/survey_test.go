package engine_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// A survey looks at a bounded part of a namespace at a time, and sees one state of it while
// other namespaces change in between.
func TestSurveys(t *testing.T) {
	const keys, waits = 3000, 700
	s := newStage(t)
	h := engine.Head{Namespace: "large"}
	acquire := func(h engine.Head, agent, key string) {
		s.ids++
		s.step(time.Second, &engine.Acquire{
			Head: h, ID: counted(s.ids), Agent: agent, LeaseRequest: interlock.LeaseRequest{
				OnConflict: interlock.Wait,
				Claims:     []interlock.Claim{{Key: interlock.Key(key), Mode: interlock.Exclusive}},
			},
		})
	}
	for i := range keys {
		acquire(h, fmt.Sprint("agent-", i%3), fmt.Sprintf("key:%04d", i*7919%keys))
	}
	for i := range waits {
		acquire(h, "waiter", fmt.Sprintf("key:%04d", i*3))
	}
	for i := range 500 { // some go again, so that seats change hands
		s.step(2*time.Second, &engine.Release{Head: h, Lease: counted(uint64(3*i + 1))})
	}

	list := engine.KeyList{Namespace: "large", Filter: engine.KeyFilter{Limit: 1000}}
	hot := engine.HotList{Namespace: "large", Limit: 50}
	graph := engine.WaitGraph{Namespace: "large"}
	held := engine.Holdings{Namespace: "large", Agent: "agent-1"}
	over := engine.Overview{Namespace: "large"}
	rows, more := s.e.Keys("large", list.Filter)
	want := []any{rows, more, s.e.Hot("large", 50), s.e.Waits("large"), s.e.AgentHolds("large", "agent-1")}

	for name, survey := range map[string]engine.Scan{
		"keys": &list, "hot": &hot, "waits": &graph, "holdings": &held, "overview": &over,
	} {
		least := keys / 500
		if name == "waits" {
			least = 3 // it looks at waiters alone
		}
		looks := 1
		for !survey.Look(s.e) {
			if looks++; looks > 1000 {
				t.Fatalf("%s: no end after %d looks", name, looks)
			}
			acquire(engine.Head{Namespace: "other"}, "somebody", fmt.Sprint("key:", s.ids))
		}
		if looks < least {
			t.Errorf("%s: all was seen in %d looks", name, looks)
		}
	}
	if got := []any{list.Rows, list.More, hot.Keys, graph.Edges, held.Holders}; !reflect.DeepEqual(got, want) {
		t.Error("what the surveys saw is not what there is")
	}
	if len(rows) != 1000 || !more || len(held.Holders) == 0 || len(graph.Edges) == 0 || len(hot.Keys) != 50 {
		t.Errorf(
			"%d keys, %d hot, %d edges, %d held: the test tests little", len(rows), len(hot.Keys), len(graph.Edges),
			len(held.Holders),
		)
	}
}

// BenchmarkSurveys quotes how long one Look takes in a namespace of a million
// leases, of a thousand looks all but the longest.
func BenchmarkSurveys(b *testing.B) {
	e := engine.New()
	var out engine.Output
	step := func(cmd engine.Command) {
		out.Entry, out.Effects, out.Events = out.Entry[:0], out.Effects[:0], out.Events[:0]
		e.Step(cmd, &out)
	}
	step(&engine.Recover{Head: engine.Head{At: begin}, Epoch: 1})
	const leases = 1_000_000 - 1000
	for i := range leases {
		step(&engine.Acquire{
			Head: engine.Head{At: begin, Namespace: "large"}, ID: counted(uint64(i + 1)), Agent: fmt.Sprint("agent-", i%100), LeaseRequest: interlock.LeaseRequest{
				Terms:  interlock.Terms{TTL: time.Hour},
				Claims: []interlock.Claim{{Key: interlock.Key(fmt.Sprintf("key:%d", i)), Mode: interlock.Exclusive}},
			},
		})
	}
	for name, survey := range map[string]func() engine.Scan{
		"keys": func() engine.Scan {
			return &engine.KeyList{Namespace: "large", Filter: engine.KeyFilter{Limit: 1000}}
		},
		"hot":      func() engine.Scan { return &engine.HotList{Namespace: "large", Limit: 100} },
		"waits":    func() engine.Scan { return &engine.WaitGraph{Namespace: "large"} },
		"holdings": func() engine.Scan { return &engine.Holdings{Namespace: "large", Agent: "agent-7"} },
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for range b.N {
				survey := survey()
				for done := false; !done; {
					began := time.Now()
					done = survey.Look(e)
					took = append(took, time.Since(began))
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*999/1000].Microseconds()), "p99.9-us")
			b.ReportMetric(float64(len(took))/float64(b.N), "looks")
		})
	}
}

package engine_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// BenchmarkCommit changes one document after the other while others are there.
func BenchmarkCommit(b *testing.B) {
	small := []byte(`{"owner":"agent-17","status":"open","amount":1250,"tags":["a","b"]}`)
	const docs = 100_000
	ways := []struct {
		name string
		do   func(c *engine.Commit, w *interlock.Write, version interlock.Version)
	}{
		{"put_present", func(c *engine.Commit, w *interlock.Write, _ interlock.Version) {
			w.Op, w.Body = interlock.Put, small
			c.Reads = []interlock.Read{{Key: w.Key, Present: true}}
		}},
		{"put_version", func(c *engine.Commit, w *interlock.Write, v interlock.Version) {
			w.Op, w.Body = interlock.Put, small
			c.Reads = []interlock.Read{{Key: w.Key, Version: v}}
		}},
		{"merge", func(c *engine.Commit, w *interlock.Write, _ interlock.Version) {
			w.Op, w.Body = interlock.Merge, []byte(`{"status":"closed"}`)
			c.Reads = []interlock.Read{{Key: w.Key, Present: true}}
		}},
		{"add", func(_ *engine.Commit, w *interlock.Write, _ interlock.Version) {
			w.Key += "/n"
			w.Op, w.Delta = interlock.Add, 1
		}},
	}
	for _, way := range ways {
		b.Run(way.name, func(b *testing.B) {
			s := newStand()
			id := s.session(b)
			keys, versions := make([]interlock.Key, docs), make([]interlock.Version, docs)
			for i := range docs {
				keys[i] = interlock.Key("order:" + strconv.Itoa(i))
				versions[i] = s.commit([]interlock.Write{{Key: keys[i], Op: interlock.Put, Body: small}}).Version
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				k := i * 7919 % docs
				c := &engine.Commit{
					Head: s.head(id), CommitRequest: interlock.CommitRequest{Writes: []interlock.Write{{Key: keys[k]}}},
				}
				way.do(c, &c.Writes[0], versions[k])
				s.step(c)
				versions[k] = s.out.Effects[0].Version
			}
			s.want(b, engine.Done)
			perSecond(b, b.N)
		})
	}
}

// BenchmarkMemoryPerDocument reports what a document of 16 bytes costs, with one
// earlier version and without.
func BenchmarkMemoryPerDocument(b *testing.B) {
	const docs = 100_000
	for range b.N {
		s := newStand()
		before := heap()
		for round, unit := range []string{"B/document", "B/earlier"} {
			for i := range docs {
				s.commit(put(fmt.Sprintf("order:%d", i), fmt.Appendf(nil, "%d of the round", round)))
			}
			s.want(b, engine.Done)
			now := heap()
			b.ReportMetric(float64(now-before)/docs, unit)
			before = now
		}
		runtime.KeepAlive(s)
	}
}

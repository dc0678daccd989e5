package shard

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal/backup"
	"github.com/interlockdev/interlock/journal/filejournal"
)

var backupLeases = flag.Int("backup-leases", 1_000_000, "leases in the backup of BenchmarkBackup")

// BenchmarkBackup backs up a shard with a million leases and reads it again, while one caller
// acquires and releases without a pause. docs/operations.md has the figures.
func BenchmarkBackup(b *testing.B) {
	dir := b.TempDir()
	j, err := filejournal.Open(b.Context(), filepath.Join(dir, "data"), filejournal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := Open(b.Context(), Config{Journal: j})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(b.Context())
	granted, answered := 0, make(chan struct{})
	in := ReceiverFunc(func(eff *engine.Effect, _ interlock.At) {
		if eff.Outcome != engine.Granted {
			b.Errorf("%v %s", eff.Outcome, eff.Code)
		}
		if granted++; granted == *backupLeases {
			close(answered)
		}
	})
	for i := 0; i < *backupLeases; {
		c := acquire(in, keyNumber(i))
		c.Terms.TTL = time.Hour
		if err := s.Submit(c); err == nil {
			i++
		} else {
			runtime.Gosched()
		}
	}
	<-answered
	var cycles atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			eff, _, err := s.Do(b.Context(), acquire(nil, "cycle"))
			if err == nil {
				_, _, err = s.Do(b.Context(), release(nil, eff.Lease.ID))
			}
			if err != nil {
				b.Error(err)
				return
			}
			cycles.Add(1)
		}
	}()
	s.background.Wait()
	const pause = 3 * time.Second
	before := cycles.Load()
	<-time.After(pause)
	alone := float64(cycles.Load()-before) / pause.Seconds()
	path := filepath.Join(dir, "backup")
	for b.Loop() {
		b.ReportMetric(float64(heap()), "heap-before")
		f, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		began, before := time.Now(), cycles.Load()
		made, err := s.Backup(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		var most uint64
		length, err := made.WriteTo(b.Context(), io.MultiWriter(f, heapPeak(&most)))
		took := time.Since(began)
		made.Close()
		if err != nil || f.Close() != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(cycles.Load()-before)/took.Seconds(), "cycles/s")
		b.ReportMetric(took.Seconds(), "backup-s")
		b.ReportMetric(float64(length), "backup-bytes")
		b.ReportMetric(float64(most), "heap-most")
	}
	b.ReportMetric(alone, "cycles/s-alone") // not before the loop, which forgets it
	close(stop)
	<-stopped
	began := time.Now()
	file, err := backup.Open(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(began).Seconds(), "check-s")
	began = time.Now()
	state, err := ReadBackup(b.Context(), file)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(began).Seconds(), "decode-s")
	began = time.Now()
	restored := filepath.Join(dir, "restored")
	if err := filejournal.Seed(
		b.Context(), restored, filejournal.Options{}, state.Epoch, state.Index, state.WriteSnapshot,
	); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(began).Seconds(), "seed-s")
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// heapPeak notes the largest heap after every sixteen MiB that are written to it.
func heapPeak(most *uint64) io.Writer {
	n := 0
	return writerFunc(func(p []byte) (int, error) {
		if n += len(p); n >= 16<<20 {
			n = 0
			*most = max(*most, heap())
		}
		return len(p), nil
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

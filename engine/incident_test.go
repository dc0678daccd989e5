package engine_test

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/advice"
	"github.com/interlockdev/interlock/internal/incident"
)

// TestIncidents checks the incidents of random histories: each is counted once, the moment before it has the lease that
// was lost, and no id of a lease is in it. It checks the advice of these histories, too.
func TestIncidents(t *testing.T) {
	n := 60
	if testing.Short() {
		n = 25
	}
	met := map[incident.Kind]int{}
	for seed := uint64(1); seed <= uint64(n); seed++ {
		g, err := run(program(seed, *steps))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := checkIncidents(g, met); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := checkAdvice(g); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for _, kind := range incident.Kinds {
		if met[kind] == 0 && kind != incident.FailOver { // the journals of the rig have one epoch
			t.Errorf("no history has a %s", kind)
		}
	}
}

func checkIncidents(g *rig, met map[incident.Kind]int) error {
	res, events := incidentsOf(g)
	if again, _ := incidentsOf(g); !reflect.DeepEqual(res, again) {
		return fmt.Errorf("the same events have two lists of incidents")
	}
	want, granted := wantedIncidents(events)
	got := map[incident.Kind]int{}
	for kind, n := range res.Left {
		got[kind] += n
	}
	for i := range res.Incidents {
		in := &res.Incidents[i]
		met[in.Kind]++
		got[in.Kind] += in.Count
		if in.Text == "" || in.Next == "" || in.Before >= in.Index && !in.GoesOn || in.Last < in.Time {
			return fmt.Errorf("%+v is not complete", in)
		}
		text := fmt.Sprintf("%+v", in)
		for at, index := range granted {
			if strings.Contains(text, hex.EncodeToString(at[:])) {
				return fmt.Errorf("%s has the id of a lease that was granted at %d", text, index)
			}
		}
	}
	for _, kind := range []incident.Kind{
		incident.Deadlock, incident.LostLease, incident.StaleWrite, incident.DeadLetter, incident.FailOver,
	} {
		if got[kind] != want[kind] {
			return fmt.Errorf("there are %d incidents of kind %s, want %d", got[kind], kind, want[kind])
		}
	}
	return nil
}

// wantedIncidents counts incidents in another way than the reducer: by lease. granted has the leases.
func wantedIncidents(events []indexed) (want map[incident.Kind]int, granted map[[16]byte]interlock.Index) {
	want, granted = map[incident.Kind]int{}, map[[16]byte]interlock.Index{}
	lost, dead := map[string]bool{}, uint8(interlock.TaskDead)
	for i := range events {
		ev := &events[i].Event
		switch ev.Kind {
		case record.Granted, record.Queued, record.TaskDispatched:
			granted[ev.ID] = events[i].index
		case record.Opened:
			if i > 0 && events[i].index > 1 {
				want[incident.FailOver]++
			}
		case record.Closed, record.Ended:
			switch ev.Reason.String() {
			case "ttl", "forgotten", "max_hold", "stall", "revoked", "session_expired":
				lost[fmt.Sprint(ev.Namespace, ev.ID)] = true
			}
		case record.Refused:
			switch ev.Code {
			case interlock.CodeFenced, interlock.CodeTaken, interlock.CodeExpired, interlock.CodeStale:
				want[incident.StaleWrite]++
			}
		case record.AttemptFailed, record.TaskMoved:
			if ev.Op == dead {
				want[incident.DeadLetter]++
			}
		}
		if len(ev.Cycle) > 0 && ev.Reason == record.ByDeadlock && ev.Kind < record.Counters {
			want[incident.Deadlock]++
		}
	}
	want[incident.LostLease] = len(lost)
	return want, granted
}

type indexed struct {
	record.Event
	index interlock.Index
}

// checkAdvice checks that the same events have the same advice, each with evidence.
func checkAdvice(g *rig) error {
	_, events := incidentsOf(g)
	var results [2]*advice.Result
	for i := range results {
		r := advice.New()
		for k := range events {
			r.Add(events[k].index, &events[k].Event)
		}
		results[i] = r.Result()
	}
	if !reflect.DeepEqual(results[0], results[1]) {
		return fmt.Errorf("the same events have two advices: %+v and %+v", results[0], results[1])
	}
	for _, a := range results[0].Advice {
		if a.Text == "" || a.Command == "" || len(a.Keys) == 0 || len(a.Indexes) == 0 || a.Count > a.Of {
			return fmt.Errorf("%+v has no evidence", a)
		}
	}
	return nil
}

func incidentsOf(g *rig) (*incident.Result, []indexed) {
	r := incident.New(incident.Options{Stuck: 30 * time.Second})
	var events []indexed
	var last record.Time
	for i, entry := range g.journal {
		err := record.DecodeEntry(entry, func(ev *record.Event) error {
			kept := *ev
			events = append(events, indexed{kept, interlock.Index(i + 1)})
			r.Add(interlock.Index(i+1), &kept)
			last = ev.At
			return nil
		})
		if err != nil {
			panic(err)
		}
	}
	return r.Result(last), events
}

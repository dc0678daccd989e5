package server

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// storied fills a journal with events of two namespaces, among them commits that are stored as pieces.
func storied(d *door) {
	large := strings.Repeat("x", 345_000)
	for i := range 40 {
		lease := d.acquire(fmt.Sprint("agent-", i%3), fmt.Sprint("key:", i%5))
		d.post(
			"/v1/leases", `{"agent":"other","claims":[{"key":"k"}],"on_conflict":"skip"}`, "Interlock-Namespace", "another",
		).want(200)
		if i%8 == 3 {
			d.post("/v1/commits", fmt.Sprintf(
				`{"writes":[{"key":"a:%d","text":%q},{"key":"b:%[1]d","text":%[2]q},{"key":"c:%[1]d","text":%[2]q}]}`, i, large,
			)).want(200)
		}
		pass(time.Second)
		d.post("/v1/leases/"+lease+"/release", ``).want(200)
	}
}

// Pages from the newest event to the oldest have all events of a list forwards, each once, whatever the filter.
func TestEventsBackwards(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		storied(d)
		for _, filter := range []string{
			"", "&agent=agent-1", "&event=ended", "&since=20s", "&until=15s", "&about=none", "&since=30s&until=10s",
		} {
			want := strings.SplitAfter(d.get("/v1/events?from=oldest"+filter).want(200).raw, "\n")
			slices.Reverse(want)
			for _, limit := range []int{1, 7, 1000} {
				var got []string
				pages := 0
				for before := "newest"; before != ""; pages++ {
					page := d.get(fmt.Sprint("/v1/events?before=", before, "&limit=", limit, filter)).want(200)
					lines := strings.SplitAfter(page.raw, "\n")
					got = append(got, lines[:len(lines)-1]...)
					if len(lines) > limit+3 {
						t.Errorf("%q: a page of %d lines, limit %d", filter, len(lines)-1, limit)
					}
					before = page.header.Get("Interlock-Before")
				}
				if want := want[1:]; !slices.Equal(got, want) {
					t.Errorf("%q in pages of %d: %d events backwards, %d forwards", filter, limit, len(got), len(want))
				}
				if limit == 1 && pages < len(got)/2 {
					t.Errorf("%q: %d events in %d pages of one entry", filter, len(got), pages)
				}
			}
		}
		for _, bad := range []string{
			"before=0", "before=x", "before=newest&from=1", "before=5&follow=true", "before=5&limit=0", "limit=5&from=1",
			"before=5&limit=1001",
		} {
			d.get("/v1/events?"+bad).want(400, "invalid_request")
		}
	})
}

// Stretches of any size have each entry once, also one that is stored as pieces and lies across their ends.
func TestStretches(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		storied(d)
		c := &call{s: d.server, r: httptest.NewRequest("GET", "/v1/events", nil), namespace: interlock.DefaultNamespace}
		newest := d.shard.At().Index
		whole, err := c.stretch(&eventFilter{}, 1, newest+1)
		if err != nil || len(whole.entries) < 80 {
			t.Fatalf("%d entries, %v", len(whole.entries), err)
		}
		for size := interlock.Index(1); size < 9; size++ {
			var got []entryLines
			for x := (stretch{from: newest + 1, low: newest + 1}); x.from > 1; {
				if x, err = c.stretch(&eventFilter{}, max(1, x.from-min(x.from, size)), x.low); err != nil {
					t.Fatal(err)
				}
				got = append(slices.Clone(x.entries), got...)
			}
			if !slices.EqualFunc(got, whole.entries, func(a, b entryLines) bool { return a.index == b.index }) {
				t.Errorf("in stretches of %d: %d entries, want %d", size, len(got), len(whole.entries))
			}
		}
	})
}

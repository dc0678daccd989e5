package server

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/engine/record"
)

// Filters choose events by time, key, agent, kind and principal, on the server.
func TestEventFilters(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		for _, agent := range []string{"night", "dawn", "day"} {
			lease := d.acquire(agent, "account:"+agent)
			d.post("/v1/leases/"+lease+"/release", "").want(200)
			pass(6 * time.Hour)
		}
		begun := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		at := func(d time.Duration) string { return url.QueryEscape(begun.Add(d).Format(time.RFC3339)) }
		for query, want := range map[string]string{
			"event=granted":                                     "night dawn day",
			"event=granted,ended&agent=dawn":                    "dawn dawn",
			"event=ended&prefix=account:d":                      "dawn day",
			"event=granted&since=12h":                           "dawn day",
			"event=granted&since=0d13h&until=11h":               "dawn",
			"event=granted&since=13h&until=11h":                 "dawn",
			"event=granted&since=" + at(time.Hour):              "dawn day",
			"event=granted&until=" + at(time.Hour):              "night",
			"event=granted&from=oldest&since=7h":                "day",
			"event=granted&about=dawn":                          "dawn",
			"event=granted&about=account:night":                 "night",
			"event=granted&about=account":                       "",
			"event=granted&principal=ops":                       "",
			"event=granted&from=now":                            "",
			"event=released":                                    "night dawn day",
			"event=released,granted&agent=dawn":                 "dawn dawn",
			"event=revoked":                                     "",
			"event=granted&prefix=account:n&since=2d&until=17h": "night",
		} {
			var agents []string
			for line := range strings.SplitSeq(d.get("/v1/events?"+query).want(200).raw, "\n") {
				if _, rest, ok := strings.Cut(line, `"agent":"`); ok {
					agent, _, _ := strings.Cut(rest, `"`)
					agents = append(agents, agent)
				}
			}
			if got := strings.Join(agents, " "); got != want {
				t.Errorf("%s shows %q, want %q", query, got, want)
			}
		}
		for query, words := range map[string]string{
			"event=grantd":                        `nearest is "granted"`,
			"event=granted,answered":              `no event "answered"`,
			"since=yesterday":                     "12h or 7d",
			"since=-3h":                           "12h or 7d",
			"since=99999999999d":                  "12h or 7d",
			"since=1h&until=2h":                   "after since",
			"until=1h&follow=true":                "follow",
			"from=2000-01-01":                     "oldest, arrival or now",
			"prefix=" + strings.Repeat("a", 5000): "prefix",
		} {
			d.get("/v1/events?"+query).want(400).says("detail", words)
		}
		stream := d.get("/v1/events?until=11h", "Accept", "text/event-stream").want(200).raw
		if !strings.Contains(stream, "dawn") {
			t.Errorf("a stream with an end is %s", stream)
		}
	})
}

// Every kind that a reader of events sees can be named, and so can every reason. A kind is meant by a
// name that both have.
func TestEventKindsHaveNames(t *testing.T) {
	for k := record.Kind(1); k < record.Counters; k++ {
		var f eventFilter
		if k.String() == "" || !shown(k) {
			continue
		}
		if near := f.addEvent(k.String()); near != "" || !slices.Equal(f.kinds, []record.Kind{k}) || f.reasons != nil {
			t.Errorf("%s is %v and %v, %q", k, f.kinds, f.reasons, near)
		}
	}
	for _, r := range record.Reasons() {
		var f eventFilter
		if near := f.addEvent(r.String()); near != "" || f.kinds == nil && !slices.Equal(f.reasons, []record.Reason{r}) {
			t.Errorf("%s is %v and %v, %q", r, f.kinds, f.reasons, near)
		}
	}
}

// The events of an approval have the question, and that of the answer both.
func TestEventsShowQuestionAndAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		for _, verdict := range []string{"approved", "denied"} {
			id := d.submit("")
			d.post("/v1/leases/"+d.pull()+"/ask", `{"question":"refund 1200?"}`).want(200)
			d.post("/v1/approvals/"+id, fmt.Sprintf(`{"verdict":%q,"by":"ann","reason":"policy 7"}`, verdict)).want(200)
			events := d.get("/v1/events?event=approval_requested,approval_decided").want(200).raw
			lines := strings.Split(strings.TrimSpace(events), "\n")
			for i, line := range lines[len(lines)-2:] {
				for _, want := range []string{`"question":"refund 1200?"`, `"verdict":"` + verdict + `"`, "policy 7"} {
					if (i == 1 || strings.Contains(want, "question")) && !strings.Contains(line, want) {
						t.Errorf("%s lacks %s", line, want)
					}
				}
			}
			if verdict == "approved" {
				d.post("/v1/leases/"+d.pull()+"/ack", "").want(200)
			}
		}
	})
}

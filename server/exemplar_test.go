package server

import (
	"strings"
	"testing"
	"time"
)

// Waits and holds of sampled traces are exemplars, in the format that has them.
func TestExemplars(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		const first, second = "0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c"
		lease := d.post(
			"/v1/leases", `{"claims":[{"key":"a"}]}`, "Traceparent", "00-"+first+"-b7ad6b7169203331-01",
		).want(200).str("lease.id")
		for _, traceparent := range []string{
			"00-" + second + "-b7ad6b7169203331-03", "00-2af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "nothing",
		} {
			d.post(
				"/v1/leases", `{"on_conflict":"wait","claims":[{"key":"a","mode":"shared"}]}`, "Traceparent", traceparent,
			).want(202)
		}
		pass(3 * time.Second)
		d.post("/v1/leases/"+lease+"/release", `{}`).want(200)

		open := d.get("/metrics", "Accept", "application/openmetrics-text; version=1.0.0").want(200)
		for _, want := range []string{
			`interlock_wait_seconds_bucket{mode="exclusive",outcome="granted",le="0.001"} 1 # {trace_id="` + first + `"} 0.0`,
			`interlock_wait_seconds_bucket{mode="shared",outcome="granted",le="5.0"} 3 # {trace_id="` + second + `"} 3.0`,
			`interlock_hold_seconds_bucket{mode="exclusive",outcome="released",le="5.0"} 1 # {trace_id="` + first + `"} 3.0`,
			"# EOF\n",
		} {
			if !strings.Contains(open.raw, want) {
				t.Errorf("%s is missing in\n%s", want, open.raw)
			}
		}
		if strings.Contains(open.raw, "2af7651916cd43dd8448eb211c80319c") {
			t.Error("a trace that is not sampled is an exemplar")
		}
		if plain := d.get("/metrics").want(200); strings.Contains(plain.raw, "trace_id") {
			t.Error("the classic format has an exemplar")
		}
	})
}

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/proto"
)

// step takes a step of the move of namespace default.
func (d *door) step(step record.MoveStep) {
	d.Helper()
	if err := d.shard.Move(d.Context(), interlock.DefaultNamespace, 1, 7, step); err != nil {
		d.Fatal(err)
	}
}

// TestClosedForAMove: a namespace that moves refuses every call about it, also one that waits, and ends its
// streams and its readers of events. Another namespace does not notice.
func TestClosedForAMove(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		lease := d.acquire("ann", "a")
		other := []string{"Interlock-Namespace", "other"}
		d.post("/v1/leases", `{"agent":"bob","claims":[{"key":"a"}]}`, other...).want(200)
		waits := d.start(d.request("POST", "/v1/leases", `{"agent":"ben","claims":[{"key":"a"}],"wait_ms":60000}`))
		reader := d.start(d.request("GET", "/v1/events?follow=true", "", "Accept", "application/x-ndjson"))
		streams := NewStreams(d.server, StreamConfig{})
		link, err := streams.Dial(t.Context(), proto.Hello{Namespace: interlock.DefaultNamespace})
		if err != nil {
			t.Fatal(err)
		}
		far, err := streams.Dial(t.Context(), proto.Hello{Namespace: "other"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()

		d.step(record.MoveClosed)
		synctest.Wait()
		(<-waits).want(503, "moving")
		story := (<-reader).raw
		if !strings.Contains(story, `"step":"closed"`) || !strings.Contains(story, `"code":"moving"`) {
			t.Errorf("the reader of events ends with %s", story)
		}
		var frame proto.ServerFrame
		if err := link.Recv(&frame); err == nil || !strings.Contains(err.Error(), "moves to another shard") {
			t.Errorf("the stream ends with %v", err)
		}
		for _, r := range []*reply{
			d.post("/v1/leases/"+lease+"/renew", `{}`), d.get("/v1/leases/" + lease), d.get("/v1/status"),
			d.get("/v1/keys/a"), d.get("/v1/events"), d.post("/v1/leases", `{"agent":"ann","claims":[{"key":"b"}]}`),
		} {
			if r.want(503, "moving"); r.header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
			}
		}
		d.post("/v1/leases", `{"agent":"bob","claims":[{"key":"b"}]}`, other...).want(200)
		if err := far.Send(&proto.ClientFrame{}); err != nil {
			t.Errorf("the stream of another namespace ends with %v", err)
		}

		<-time.After(time.Hour) // nothing ends meanwhile
		d.step(record.MoveReopened)
		d.post("/v1/leases/"+lease+"/renew", `{}`).want(200)
		far.Close(nil)
	})
}

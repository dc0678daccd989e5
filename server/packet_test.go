package server

import (
	"testing"

	"github.com/interlockdev/interlock/shard"
)

// The answer about what is stale waits for its turn, and no other does.
func TestPacketsAreMadeInTurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.server.comparing = shard.NewDesk(1)
		d.commitDoc("k", `{"a":1}`)
		if err := d.server.comparing.Enter(t.Context(), "another"); err != nil {
			t.Fatal(err)
		}
		refused := d.start(d.request("PUT", "/v1/state/k", "2", "If-None-Match", "*"))
		pass(1)
		d.get("/v1/state/k").want(200)
		if len(refused) != 0 {
			t.Error("it did not wait")
		}
		d.server.comparing.Leave()
		(<-refused).want(412, "stale").is("packet.stale.0.now.version", "1")
		if !d.server.comparing.IsIdle(1) {
			t.Error("it kept the place")
		}
	})
}

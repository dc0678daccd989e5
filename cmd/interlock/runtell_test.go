package main

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// The loss of the lease is reported also when the command has ended by the time it is looked at.
func TestLossIsToldAfterTheEnd(t *testing.T) {
	r := newRig(t)
	c, err := client.Dial(
		t.Context(), client.Config{Addrs: []string{r.server.GRPC}, Namespace: interlock.DefaultNamespace},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	lease, err := c.Acquire(t.Context(), client.Request{Claims: []interlock.Claim{{Key: "k"}}})
	if err != nil {
		t.Fatal(err)
	}
	r.must("revoke", "k", "--fence", lease.Fence().String(), "--yes")
	<-lease.Context().Done()
	ended := make(chan struct{})
	close(ended)
	for range 50 { // which of two ready channels is taken is left to chance
		var told strings.Builder
		run := &runInvocation{a: &app{err: &told}}
		if run.watch(lease, ended); !strings.Contains(told.String(), "the lease is lost") {
			t.Fatalf("it was told %q", told.String())
		}
	}
}

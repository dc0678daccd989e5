package mcp

import (
	"fmt"
	"testing"
)

// However many conversations speak under one name, the memory of them is bounded, and each stays an agent of its own.
func TestConversationsOfOneName(t *testing.T) {
	l := newTalks()
	l.begin("ann", "first")
	l.begin("ann", "second")
	for i := range 10 * remembered {
		conversation := fmt.Sprint(i)
		for range 2 {
			if apart, several := l.hear("ann", conversation, true); !apart || several {
				t.Fatalf("conversation %d: apart %v, several %v", i, apart, several)
			}
		}
	}
	if apart, _ := l.hear("ann", "0", true); !apart {
		t.Error("a conversation that was forgotten has the leases of another one")
	}
	if apart, _ := l.hear("ann", "second", true); apart {
		t.Error("the newest conversation lost its leases")
	}
	if n := len(l.names["ann"].apart); n > remembered {
		t.Errorf("%d conversations are remembered", n)
	}
}

package busy

import (
	"flag"
	"net"
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	limit := flag.Lookup("test.timeout").Value
	before := limit.String()
	t.Cleanup(func() { _ = limit.Set(before) })
	for text, want := range map[string]time.Duration{"0": most, "1h": most, "10m": most, "50s": 25 * time.Second} {
		if err := limit.Set(text); err != nil {
			t.Fatal(err)
		}
		if got := Patience(); got != want {
			t.Errorf("%v with -test.timeout=%s, want %v", got, text, want)
		}
	}
}

// A port that a test has given up for a moment is given to no other test.
func TestPorts(t *testing.T) {
	var kept string
	t.Run("first", func(t *testing.T) {
		kept = Ports(t, 1)[0]
		if l, err := net.ListenPacket("udp", kept); err == nil {
			l.Close()
			t.Errorf("%s is not kept", kept)
		}
		l, err := net.Listen("tcp", kept)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	})
	l, err := net.ListenPacket("udp", kept)
	if err != nil {
		t.Fatalf("%s is kept after its test: %v", kept, err)
	}
	l.Close()
}

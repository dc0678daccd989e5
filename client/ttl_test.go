package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// A request without a ttl has that of its key's pattern. It is kept, also when it is shorter than the time since the
// last heartbeat; and a longer one counts here, too.
func TestTTLOfAPattern(t *testing.T) {
	for name, tt := range map[string]struct {
		session time.Duration
		key     interlock.Key
		want    time.Duration
	}{
		"short":                          {0, "short:1", time.Second},
		"long":                           {0, "long:1", 2 * time.Minute},
		"none":                           {0, "plain", interlock.DefaultTTL},
		"short in a session with a ttl":  {time.Hour, "short:1", time.Second},
		"long in a session with a ttl":   {time.Minute, "long:1", time.Minute},
		"longer in a session with a ttl": {time.Hour, "long:1", 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, network, c := broken(t, inMemory(t), client.Config{Agent: "a", SessionTTL: tt.session})
				s.pattern(interlock.Pattern{Name: "short", Shape: "short:{id}", TTL: time.Second})
				s.pattern(interlock.Pattern{Name: "long", Shape: "long:{id}", TTL: 2 * time.Minute})
				<-time.After(interlock.DefaultTTL / 4) // since the last heartbeat
				lease := s.acquire(c, exclusively(tt.key))
				if info := lease.Info(); info.TTL != tt.want {
					t.Errorf("its ttl is %v, want %v", info.TTL, tt.want)
				}
				<-time.After(10 * time.Minute)
				if lease.Err() != nil {
					t.Fatal(lease.Err())
				}
				defer network.block()()
				network.cut()
				<-time.After(tt.want / 2)
				if lease.Err() != nil {
					t.Errorf("half of its ttl after the last word of the server: %v", lease.Err())
				}
				<-time.After(tt.want)
				if lease.Err() == nil {
					t.Error("it outlives its ttl")
				}
			})
		})
	}
}

// A lease that was granted after a wait counts from its grant.
func TestShortTTLAfterAWait(t *testing.T) {
	crowd(t, func(s *stage) {
		s.pattern(interlock.Pattern{Name: "short", Shape: "short:{id}", TTL: time.Second})
		first := s.acquire(s.client("first"), exclusively("short:1"))
		granted := make(chan *client.Lease, 1)
		go func() {
			req := exclusively("short:1")
			req.OnConflict = interlock.Wait
			granted <- s.acquire(s.client("second"), req)
		}()
		<-time.After(98 * time.Second)
		s.release(first, "")
		lease := <-granted
		<-time.After(time.Minute)
		if lease.Err() != nil {
			t.Error(lease.Err())
		}
	})
}

package remotetest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/history"
	"github.com/interlockdev/interlock/internal/test/history/traffic"
)

// RollingUpgrade exchanges three servers one after the other, as an upgrade does, while agents work and others hold
// leases in twenty namespaces. No lease is lost, and each is renewed all the time by way of any server.
func RollingUpgrade(t *testing.T, e Engine) {
	const namespaces = 20
	var servers []*Instance
	var addresses []string
	for range shareServers {
		s := Serve(t, e.URL("rolling"), "--shards", "16")
		servers, addresses = append(servers, s), append(addresses, s.http)
	}
	for _, s := range servers {
		s.Becomes("ready")
	}
	record := history.NewRecorder()
	site := &traffic.Site{Patience: time.Second}
	site.Move(addresses...)
	crowd, err := traffic.Start(t.Context(), site, record, 9, traffic.Full)
	if err != nil {
		t.Fatal(err)
	}
	leases := make([]answer, namespaces)
	for i := range leases {
		WaitFor(t, "a lease in each namespace", func() bool { // its shard may be on the move
			leases[i], err = servers[i%shareServers].as(namespace(i)).call(
				t.Context(), http.MethodPost, "/v1/leases", `{"agent":"holder","claims":[{"key":"held"}],"ttl_ms":20000}`,
			)
			return err == nil && leases[i].status == http.StatusOK
		})
	}
	stop, cancel := context.WithCancel(t.Context())
	var renewing sync.WaitGroup
	for i := range leases {
		renewing.Go(func() {
			for n := i; stop.Err() == nil; n++ {
				a, err := servers[n%shareServers].as(namespace(i)).call(
					stop, http.MethodPost, "/v1/leases/"+leases[i].Lease.ID+"/renew", "{}",
				)
				if err == nil && a.status != http.StatusOK && a.status != http.StatusServiceUnavailable {
					t.Errorf("the lease of namespace %d: %+v", i, a)
					return
				}
				select {
				case <-time.After(500 * time.Millisecond):
				case <-stop.Done():
				}
			}
		})
	}
	for _, s := range servers {
		s.signal(syscall.SIGTERM)
		if code := s.Ends(); code != 0 {
			t.Errorf("a server that was stopped in order ended with code %d", code)
		}
		s.Start()
		s.Becomes("ready")
		worked(t.Context(), record, 300)
	}
	cancel()
	renewing.Wait()
	for i := range leases {
		WaitFor(t, "the lease of every namespace", func() bool {
			a, err := servers[0].as(namespace(i)).call(
				t.Context(), http.MethodPost, "/v1/leases/"+leases[i].Lease.ID+"/renew", "{}",
			)
			return err == nil && a.status == http.StatusOK && a.Lease.Fence == leases[i].Lease.Fence
		})
	}
	if err := crowd.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	record.Verify(t)
}

func namespace(i int) string { return fmt.Sprint("tenant-", i) }

// as returns the server as it is asked by a client of a namespace.
func (s *Instance) as(namespace string) *Instance {
	c := *s
	c.namespace = namespace
	return &c
}

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// fleet is servers that share a journal in an engine, or one that has a directory.
type fleet struct {
	sites []*interlockSite

	mu    sync.Mutex // guards the field below
	ports []string   // where each server takes streams, or took them while it lived
}

// fleetUsage is that of all servers together, and the resident memory of the largest one.
type fleetUsage struct {
	Usage
	most int64
}

// openFleet starts n servers and returns when each has an equal part of the shards. A new journal has so many of them.
func openFleet(ctx context.Context, t Interlock, n, shards int) (_ *fleet, err error) {
	f := &fleet{ports: make([]string, n)}
	for range n {
		site := &interlockSite{transport: Stream, binary: t.Binary, journal: t.Journal, scrapes: &http.Transport{}}
		if t.Journal != "" {
			site.shards = shards
		} else if site.dir, err = os.MkdirTemp("", "interlock-bench-"); err != nil {
			return nil, err
		}
		f.sites = append(f.sites, site)
	}
	err = each(ctx, n, n, func(ctx context.Context, i int) error { return f.start(ctx, i) })
	if err == nil {
		err = f.even(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// start starts a server that does not run.
func (f *fleet) start(ctx context.Context, i int) error {
	if err := f.sites[i].launch(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ports[i] = f.sites[i].at.GRPC
	return nil
}

// port returns where a server takes streams.
func (f *fleet) port(i int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ports[i%len(f.ports)]
}

// at returns which server takes streams at an address; -1: none.
func (f *fleet) at(addr string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Index(f.ports, addr)
}

// close ends all servers. Whatever they hold was released before.
func (f *fleet) close() error {
	var errs []error
	for _, site := range f.sites {
		errs = append(errs, site.Close())
	}
	return errors.Join(errs...)
}

// usage is the sum over the servers that run.
func (f *fleet) usage(ctx context.Context) (fleetUsage, error) {
	return f.sum(ctx, (*interlockSite).Usage)
}

// settle is usage without garbage.
func (f *fleet) settle(ctx context.Context) (fleetUsage, error) {
	return f.sum(ctx, (*interlockSite).Settle)
}

func (f *fleet) sum(ctx context.Context, ask func(*interlockSite, context.Context) (Usage, error)) (fleetUsage, error) {
	var all fleetUsage
	for _, site := range f.sites {
		if site.server == nil {
			continue
		}
		u, err := ask(site, ctx)
		if err != nil {
			return all, err
		}
		all.CPU += u.CPU
		all.Live += u.Live
		all.Resident += u.Resident
		all.Written += u.Written
		all.most = max(all.most, u.Resident)
	}
	return all, nil
}

// even waits until no server has more than one shard more than another.
func (f *fleet) even(ctx context.Context) error {
	for {
		least, most, err := f.parts(ctx)
		if err != nil || most-least <= 1 {
			return err
		}
		if err := pause(ctx, evenPause); err != nil {
			return err
		}
	}
}

// evenPause is between two looks at the shards' owners.
const evenPause = 200 * time.Millisecond

// parts is how many shards a server has, at least and at most. While a server is missing, or a shard has no
// owner, they lie far apart.
func (f *fleet) parts(ctx context.Context) (least, most int, err error) {
	if len(f.sites) == 1 {
		return 0, 0, nil
	}
	var list struct {
		Shards  []struct{ Server string }
		Servers []struct{ Shards int }
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.sites[0].at.HTTP+"/v1/shards", nil)
	if err != nil {
		return 0, 0, err
	}
	res, err := f.sites[0].scrapes.RoundTrip(req)
	if err != nil {
		return 0, 0, fmt.Errorf("ask for the owners of shards: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		return 0, 0, fmt.Errorf("ask for the owners of shards: %w", err)
	}
	least = len(list.Shards)
	for _, s := range list.Servers {
		least, most = min(least, s.Shards), max(most, s.Shards)
	}
	for _, s := range list.Shards {
		if s.Server == "" {
			return 0, len(list.Shards) + 1, nil
		}
	}
	if len(list.Servers) != len(f.sites) {
		return 0, len(list.Shards) + 1, nil
	}
	return least, most, nil
}

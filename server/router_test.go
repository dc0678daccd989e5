package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// asStandby makes a standby answer. It knows the active server as in active.
func (d *door) asStandby(active *Active) {
	d.Helper()
	s, err := NewStandby(Config{}, func() Active { return *active })
	if err != nil {
		d.Fatal(err)
	}
	d.server, d.handler = s, s.HTTPHandler()
}

// twoServers is a directory of two shards, one here and one at another server.
type twoServers struct{ here *Server }

func (d twoServers) Locate(interlock.Namespace) Location {
	return Location{Owner: "one", Server: d.here}
}

func (d twoServers) Locations() []Location {
	return []Location{
		{Shard: 0, Owner: "one", Server: d.here},
		{Shard: 1, Owner: "two", Active: Active{HTTP: "http://10.0.0.1:7420", GRPC: "10.0.0.1:7421"}},
	}
}

func (d twoServers) Peers() []Peer {
	return []Peer{
		{ID: "one", Active: Active{HTTP: "http://10.0.0.2:7420", GRPC: "10.0.0.2:7421"}, Version: "0.3.0", Weight: 1},
		{
			ID: "two", Active: Active{HTTP: "http://10.0.0.1:7420", GRPC: "10.0.0.1:7421"}, Version: "0.3.0", Weight: 2,
			Unreached: time.Now().Add(-3 * time.Second), UnreachedBy: 1, Silent: 3 * time.Second,
		},
	}
}

// tourShards asks one server, and one of two.
func tourShards(d *door) {
	d.get("/v1/shards").want(200).has("shards.0.here", "true")
	d.get("/v1/admin/backup?shard=7").want(404, "not_found")
	owner, handler := d.server, d.handler
	defer func() { d.server, d.handler = owner, handler }()
	s, err := NewRouter(Config{}, twoServers{owner})
	if err != nil {
		d.Fatal(err)
	}
	d.server, d.handler = s, s.HTTPHandler()
	r := d.get("/v1/shards").want(200).is("shards.0.server", "one").has("shards.0.here", "true")
	r.is("shards.1.server", "two").has("shards.1.here", "false")
	d.get("/v1/admin/backup").want(400, "invalid_request").says("detail", "2 shards")
	d.get("/v1/admin/backup?shard=2").want(404, "not_found")
	d.get("/v1/admin/backup?shard=1").want(503, "not_owner").is("active.http", "http://10.0.0.1:7420")
	r.is("servers.1.http", "http://10.0.0.1:7420").has("servers.1.shards", "1").has("servers.1.weight", "2")
	r.has("servers.1.silent_ms", "3000")
	tourMoves(d, owner)
}

// operations records what it is asked for.
type operations struct {
	move  *NamespaceMove
	asked string
	err   error
}

func (o *operations) Placement(_ context.Context, now bool) (Placement, error) {
	if now && o.err != nil {
		return Placement{}, o.err
	}
	return Placement{
		Stores: map[int]string{1: "fast"}, Moves: []NamespaceMove{{3, "acme", 1, 0, "closed"}},
		Moved: map[interlock.Namespace]int{"bolt": 1}, LastMove: 3,
	}, nil
}

func (o *operations) Move(_ context.Context, ns interlock.Namespace, to int) (*NamespaceMove, error) {
	o.asked = fmt.Sprintf("move %s to %d", ns, to)
	return o.move, o.err
}

func (o *operations) TakeBack(_ context.Context, number uint64) error {
	o.asked = fmt.Sprintf("take back %d", number)
	return o.err
}

func (o *operations) AddShards(_ context.Context, store string, shards int) error {
	o.asked = fmt.Sprintf("add %d in %s", shards, store)
	return o.err
}

func (o *operations) Drain(_ context.Context, server string, on bool) error {
	o.asked = fmt.Sprintf("drain %s %v", server, on)
	return o.err
}

// tourMoves asks one server of two to move a namespace and to drain the other one.
func tourMoves(d *door, owner *Server) {
	ops := &operations{}
	s, err := NewRouter(Config{Operations: ops}, twoServers{owner})
	if err != nil {
		d.Fatal(err)
	}
	d.server, d.handler = s, s.HTTPHandler()
	asked := func(want string) {
		d.Helper()
		if ops.asked != want {
			d.Errorf("the operation is %q, want %q", ops.asked, want)
		}
		ops.asked = ""
	}
	d.get("/v1/shards").want(200).is("moves.0.number", "3").is("moves.0.step", "closed").
		is("moved.0.namespace", "bolt").has("moved.0.shard", "1").is("last_move", "3").is("shards.1.store", "fast")
	d.post("/v1/shards", `{"store":"fast","shards":4}`).want(200).is("outcome", "added")
	asked("add 4 in fast")
	d.post("/v1/shards", `{"store":"fast"}`).want(400, "invalid_request").says("detail", "store and shards")
	ops.move = &NamespaceMove{4, "acme", 1, 0, "leaving"}
	r := d.post("/v1/moves", `{"namespace":"acme","shard":0}`).want(200).is("outcome", "moving")
	r.is("move.namespace", "acme").has("move.from", "1").has("move.to", "0").is("move.number", "4")
	asked("move acme to 0")
	ops.move = nil
	d.post("/v1/moves", `{"namespace":"acme","shard":0}`).want(200).is("outcome", "moved")
	asked("move acme to 0")
	d.post("/v1/moves", `{"namespace":"acme"}`).want(400, "invalid_request").says("detail", "namespace and shard")
	d.post("/v1/moves", `{"namespace":"acme","shard":1024}`).want(400, "invalid_request")
	asked("")
	d.delete("/v1/moves/4").want(200).is("outcome", "taken_back")
	asked("take back 4")
	d.delete("/v1/moves/four").want(404, "not_found")
	d.post("/v1/servers/drain", `{"server":"two"}`).want(200).is("outcome", "draining")
	asked("drain two true")
	d.post("/v1/servers/drain", `{"server":"two","drain":false}`).want(200).is("outcome", "resumed")
	asked("drain two false")
	d.post("/v1/servers/drain", `{}`).want(400, "invalid_request").says("detail", "server is missing")
	ops.err = &interlock.Error{Code: interlock.CodeMoving, Message: "a move is under way"}
	d.post("/v1/moves", `{"namespace":"acme","shard":0}`).want(503, "moving")
	d.get("/v1/shards?now=true").want(503, "moving")
	d.get("/v1/shards?now=false").want(200)
	d.get("/v1/shards?now=AAA").want(400, "invalid_request")
}

func tourStandby(d *door) {
	owner, handler := d.server, d.handler
	defer func() { d.server, d.handler = owner, handler }()
	d.get("/healthz").want(200).is("role", "active")
	d.get("/readyz?role=any").want(200).is("role", "active")
	d.get("/readyz?role=active").want(200).is("role", "active")
	d.get("/readyz?role=standby").want(503, "not_owner").says("detail", "does not stand by")
	active := Active{HTTP: "http://10.0.0.1:7420", GRPC: "10.0.0.1:7421"}
	d.asStandby(&active)
	d.get("/healthz").want(200).is("role", "standby")
	d.get("/readyz").want(503, "not_owner").is("active.http", active.HTTP).is("active.grpc", active.GRPC)
	d.get("/readyz?role=active").want(503, "not_owner")
	d.get("/readyz?role=standby").want(200).is("role", "standby")
	d.get("/readyz?role=any").want(200).is("role", "standby")
	d.get("/readyz?role=leader").want(400, "invalid_request")
	d.get("/openapi.json").want(200)
	active = Active{}
	d.get("/readyz").want(503, "not_owner")
}

// A standby carries nothing out and shows nothing: of all paths only those about the
// process answer, and every other answer names the active server.
func TestStandbyRefusesEverything(t *testing.T) {
	d := newDoor(t)
	d.loose = true
	active := Active{HTTP: "http://10.0.0.1:7420", GRPC: "10.0.0.1:7421"}
	d.asStandby(&active)
	for _, list := range [][]route{openRoutes, routes} {
		for _, rt := range list {
			if aboutProcess[rt.path] {
				continue
			}
			path := strings.NewReplacer("{", "", "}", "").Replace(rt.path)
			for _, m := range rt.methods {
				body := ""
				if m.name != http.MethodGet && m.name != http.MethodDelete {
					body = "{}"
				}
				r := d.send(d.request(m.name, path, body)).want(503, "not_owner")
				r.is("active.http", active.HTTP).says("detail", active.HTTP, active.GRPC)
				if r.header.Get("Retry-After") == "" {
					t.Errorf("%s %s: no Retry-After", m.name, path)
				}
			}
		}
	}
	d.get("/metrics").want(200)
	active = Active{}
	d.get("/v1/keys").want(503, "not_owner").says("detail", "no server that answers")
}

// Nor does it on a stream, which ends before it begins.
func TestStandbyRefusesStreams(t *testing.T) {
	d := newDoor(t)
	d.asStandby(&Active{HTTP: "http://10.0.0.1:7420", GRPC: "10.0.0.1:7421"})
	_, err := NewStreams(d.server, StreamConfig{}).Dial(context.Background(), proto.Hello{})
	refusal, ok := errors.AsType[*interlock.Error](err)
	if !ok || refusal.Code != interlock.CodeNotOwner || !strings.Contains(refusal.Message, "10.0.0.1:7421") {
		t.Fatalf("a stream of a standby: %v", err)
	}
}

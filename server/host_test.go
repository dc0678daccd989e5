package server

import (
	"context"
	"net"
	"net/http"
	"testing"
)

func TestForeignHostsAndOrigins(t *testing.T) {
	d := newDoor(t, func(c *Config) { c.Hosts = []string{"interlock.example.com", "proxy.example.com:8443"} })
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7420}
	public := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 7420}
	for _, c := range []struct {
		name    string
		at      net.Addr
		headers []string
		want    int
	}{
		{"localhost", local, []string{"Host", "localhost:7420"}, 200},
		{"localhost in capitals", local, []string{"Host", "LOCALHOST"}, 200},
		{"127.0.0.1", local, []string{"Host", "127.0.0.1:7420"}, 200},
		{"another address of loopback", local, []string{"Host", "127.8.8.8"}, 200},
		{"IPv6 loopback", local, []string{"Host", "[::1]:7420"}, 200},
		{"IPv6 loopback without a port", local, []string{"Host", "[::1]"}, 200},
		{"a configured name", local, []string{"Host", "interlock.example.com:7420"}, 200},
		{"a configured name with its port", local, []string{"Host", "proxy.example.com:8443"}, 200},
		{"a configured name with another port", local, []string{"Host", "proxy.example.com:7420"}, 403},
		{"a name pointed at loopback", local, []string{"Host", "evil.example:7420"}, 403},
		{"a name that begins like ours", local, []string{"Host", "localhost.evil.example"}, 403},
		{"no name", local, []string{"Host", ""}, 403},
		{"a public address on loopback", local, []string{"Host", "10.1.2.3"}, 403},
		{"the address that was called", public, []string{"Host", "10.1.2.3:7420"}, 200},
		{"another address", public, []string{"Host", "10.1.2.4:7420"}, 403},
		{"a name pointed at a public address", public, []string{"Host", "evil.example"}, 403},
		{"no connection at all", nil, []string{"Host", "evil.example"}, 403},

		{"its own origin", local, []string{"Origin", "http://localhost:7420"}, 200},
		{"a configured origin", local, []string{"Origin", "https://interlock.example.com"}, 200},
		{"another port of this machine", local, []string{"Origin", "http://localhost:3000"}, 403},
		{"another site", local, []string{"Origin", "https://evil.example"}, 403},
		{"a sandboxed page", local, []string{"Origin", "null"}, 403},
		{"no origin at all", local, []string{"Origin", ""}, 403},
		{"a file", local, []string{"Origin", "file://"}, 403},
		{"two origins", local, []string{"Origin", "http://localhost:7420", "Origin", "https://evil.example"}, 403},
		{"an image in another site's page", local, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another port's page", local, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"its own page", local, []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"typed by a person", local, []string{"Sec-Fetch-Site", "none"}, 200},
	} {
		for _, path := range []string{"/v1/keys", "/healthz"} {
			r := d.request("GET", path, "", c.headers...)
			if c.at != nil {
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.at))
			}
			got := d.send(r)
			if got.status != c.want || got.status == 403 && got.str("code") != "foreign_host" {
				t.Errorf("%s: %s: %d %s, want %d", c.name, path, got.status, got.raw, c.want)
			}
		}
	}
}

// With credentials a browser cannot be made to help, so a server without configured names may be
// called by any name, but for loopback.
func TestAnyNameWithCredentials(t *testing.T) {
	d := newDoor(t)
	bearer := "Bearer " + d.reopenWithCredentials()
	for _, c := range []struct {
		at   string
		want int
	}{{"10.1.2.3", 200}, {"127.0.0.1", 403}} {
		r := d.request("GET", "/v1/keys", "", "Host", "interlock.internal", "Authorization", bearer)
		r = r.WithContext(context.WithValue(
			r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(c.at), Port: 7420},
		))
		d.send(r).want(c.want)
	}
}

// The GET that takes up an offer must not be reachable from a page of another site.
func TestForeignPageTakesNoOffer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		holder := d.acquire("a", "k")
		ticket := d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"k"}]}`).want(202).str("ticket.id")
		d.post("/v1/leases/"+holder+"/release", "").want(200)
		d.get("/v1/tickets/"+ticket, "Origin", "https://evil.example").want(403, "foreign_host")
		d.get("/v1/tickets/"+ticket, "Sec-Fetch-Site", "cross-site").want(403, "foreign_host")
		d.send(d.request("HEAD", "/v1/tickets/"+ticket, "")).want(405)
		d.get("/v1/keys/k").want(200).is("holders.0.liveness", "offered")
		d.get("/v1/tickets/" + ticket).want(200)
	})
}

func TestLookingChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		lease := d.acquire("a", "k")
		before := d.shard.At()
		for _, path := range []string{
			"/v1/leases/" + lease, "/v1/keys", "/v1/keys/k", "/v1/keys/unknown:1/x", "/v1/waits", "/v1/why?key=k",
			"/v1/why?agent=a", "/v1/hot",
			"/v1/events", "/healthz", "/readyz", "/metrics", "/openapi.json",
		} {
			d.get(path, "Interlock-Namespace", "default").want(200)
		}
		d.get("/v1/keys", "Interlock-Namespace", "never-used").want(200)
		if after := d.shard.At(); after != before {
			t.Errorf("looking moved the journal from %v to %v", before, after)
		}
		if got := d.get("/metrics").raw; !contains(got, "interlock_namespaces 1\n") {
			t.Error("looking made a namespace")
		}
	})
}

func TestCheckListen(t *testing.T) {
	for _, c := range []struct {
		addr                  string
		credentials, insecure bool
		ok                    bool
	}{
		{"127.0.0.1:7420", false, false, true},
		{"localhost:0", false, false, true},
		{"[::1]:1", false, false, true},
		{"127.0.0.2:1", false, false, true},
		{"[::ffff:127.0.0.1]:1", false, false, true},
		{":7420", false, false, false},
		{"0.0.0.0:7420", false, false, false},
		{"[::]:7420", false, false, false},
		{"10.0.0.1:7420", false, false, false},
		{"example.com:7420", false, false, false},
		{"localhost.example.com:1", false, false, false},
		{"0.0.0.0:7420", true, false, true},
		{"0.0.0.0:7420", false, true, true},
		{"127.0.0.1", true, true, false},
	} {
		if err := CheckListen(c.addr, c.credentials, c.insecure); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestHostsAreNames(t *testing.T) {
	for _, bad := range []string{"", "https://interlock.example.com", "a/b", "user@host", "a b"} {
		if _, err := newHostRule([]string{bad}, false); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

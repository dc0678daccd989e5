package doorstest

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// clients are the agents by the SDKs, as programs and arguments, and the code of the answer if they begin again. The
// one for Python speaks the revisions of both kinds, and the newest one has no initialize.
var clients = map[string]struct {
	program, file, mode string
	again               int
}{
	"python":     {"venv/bin/python", "client.py", "auto", -32601},
	"python-old": {"venv/bin/python", "client.py", "legacy", 0},
	"typescript": {"node", "client.mjs", "", 0},
}

// noisy has each message come behind a line that is none, and begin with a byte order mark.
const noisy = `sed -u -e 'i \{starting' -e "s/^/$(printf '\357\273\277')/" | `

// ways are the ways to a server, by their names: the first argument of a client.
func (s *site) ways(t *testing.T) map[string]string {
	process := launchtest.Binary(t) + " mcp --agent ann"
	return map[string]string{"http": s.url, "stdio": "exec " + process, "noisy stdio": noisy + process}
}

// Each SDK goes on after what it should not have sent, with the leases that it had, and its calls with one id are two.
func TestClients(t *testing.T) {
	t.Parallel()
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			for way, target := range s.ways(t) {
				t.Run(way, func(t *testing.T) {
					a := (&site{t, s.server, s.url, s.folder}).agent(client.program, client.file, target, "ann", client.mode)
					numbered := func(tool string, arguments map[string]any) map[string]any {
						return map[string]any{
							"tool": tool, "arguments": arguments, "meta": map[string]any{"claudecode/toolUseId": "call_0"},
						}
					}
					var leases []any
					for _, key := range []string{"a", "b", "a"} {
						a.send(numbered("acquire", map[string]any{"keys": []string{key}}))
						got := a.end("granted")
						if !strings.Contains(got.Text, "hold "+key+".") {
							t.Errorf("the answer for %s is %s", key, got.Text)
						}
						leases = append(leases, got.Structured["lease"])
					}
					if leases[0] == leases[1] || leases[0] != leases[2] {
						t.Errorf("the leases are %v", leases)
					}
					for _, tt := range []struct {
						method string
						params map[string]any
						code   int
					}{
						{"leases/steal", map[string]any{}, -32601},
						{"initialize", map[string]any{
							"protocolVersion": older, "capabilities": map[string]any{},
							"clientInfo": map[string]any{"name": "again", "version": "1"},
						}, client.again},
					} {
						a.send(map[string]any{"method": tt.method, "params": tt.params})
						if got := a.reply(); got.Code != tt.code {
							t.Errorf("%s: the code is %d, want %d", tt.method, got.Code, tt.code)
						}
						got := a.call("granted", "acquire", map[string]any{"keys": []string{"a"}})
						if got.Structured["lease"] != leases[0] {
							t.Errorf("after %s the answer is %s", tt.method, got.Text)
						}
					}
					for _, lease := range leases[:2] {
						a.call("released", "release", map[string]any{"lease": lease})
					}
				})
			}
		})
	}
}

// A client that is killed at one moment or another stops no other: a process's leases end with it, and over HTTP the
// next client of its name has them.
func TestKilledClients(t *testing.T) {
	t.Parallel()
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			other := s.agent("node", "client.mjs", s.url, "other")
			for way, target := range s.ways(t) {
				for _, moment := range []string{"begun", "sent", "waiting", "holding", "released"} {
					t.Run(way+"/"+moment, func(t *testing.T) {
						inner := &site{t, s.server, s.url, s.folder}
						start := func() *agent {
							return inner.agent(client.program, client.file, target, "ann", client.mode)
						}
						keys := func(key string) map[string]any {
							return map[string]any{"keys": []string{key}, "wait_s": 45}
						}
						key, held := keys(way+"/"+moment), keys("held")
						a := start()
						a.call("free", "look", map[string]any{"keys": key["keys"]})
						var lease any
						switch moment {
						case "sent":
							a.begin("acquire", key)
						case "waiting":
							lease = other.call("granted", "acquire", held).Structured["lease"]
							a.begin("acquire", held)
						case "holding":
							a.call("granted", "acquire", key)
						case "released":
							lease = a.call("granted", "acquire", key).Structured["lease"]
							a.call("released", "release", map[string]any{"lease": lease})
						}
						a.kill()
						if moment == "waiting" {
							other.call("released", "release", map[string]any{"lease": lease})
						}
						next := other
						if way == "http" {
							next = start()
						}
						for _, keys := range []map[string]any{key, held} {
							got := next.call("granted", "acquire", keys)
							next.call("released", "release", map[string]any{"lease": got.Structured["lease"]})
						}
					})
				}
			}
		})
	}
}

package server

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// pastViews returns the paths of a state: the listings, and each key, queue, pattern and effect in them.
func (d *door) pastViews() (paths []string) {
	d.Helper()
	listings := map[string][3]string{
		"/v1/keys":     {"keys", "key", "/v1/keys/"},
		"/v1/queues":   {"queues", "name", "/v1/queues/"},
		"/v1/patterns": {"patterns", "name", "/v1/patterns/"},
		"/v1/effects":  {"effects", "action", "/v1/effects/"},
	}
	for path := range ofThePast {
		if strings.Contains(path, "{") || path == "/v1/why" {
			continue
		}
		paths = append(paths, path)
		each, ok := listings[path]
		for i := 0; ok; i++ {
			name := d.get(path).want(200).str(fmt.Sprintf("%s.%d.%s", each[0], i, each[1]))
			if name == "" {
				break
			}
			paths = append(paths, each[2]+url.PathEscape(name))
			if path == "/v1/keys" {
				paths = append(paths, "/v1/why?key="+url.QueryEscape(name))
			}
		}
	}
	return paths
}

// fromTheJournal removes the members about heartbeats, connections and the moment of asking, and about tasks that let
// others pass because no worker asks for them.
func fromTheJournal(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for _, name := range []string{
			"server_time", "heartbeat_age_ms", "expires_in_ms", "expires_at", "liveness", "connected",
			"grace_in_ms", "retry_after_ms", "advice", "text", "hold_time_ms", "workers", "eta_ms", "spare", "progress",
			"dormant", "position",
		} {
			delete(x, name)
		}
		for name := range x {
			x[name] = fromTheJournal(x[name])
		}
		if edges, ok := x["edges"].([]any); ok {
			x["edges"] = slices.DeleteFunc(edges, func(e any) bool {
				blocker, _ := e.(map[string]any)["blocker"].(map[string]any)
				return blocker["task"] != nil
			})
		}
		if x["sums"] != nil { // an overview: its graph is that of /v1/waits
			for _, name := range []string{"edges", "nodes", "cycles", "verdict"} {
				delete(x, name)
			}
		}
	case []any:
		for i := range x {
			x[i] = fromTheJournal(x[i])
		}
	}
	return v
}

// At the newest index the past is the present, in each answer, except where it is not journaled.
func TestPastIsThePresent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		compared := map[string]bool{}
		for i, tour := range []func(*door){
			tourLeases, tourLooking, tourSessions, tourOperators, tourState, tourActions, tourTasks, tourMailbox, tourRuns,
			tourBarrier, tourParts, tourParked, tourListings,
		} {
			tour(d)
			for _, path := range d.pastViews() {
				live := d.get(path)
				past := d.get("/v1/at?time=" + time.Now().UTC().Format(time.RFC3339Nano) + "&path=" + url.QueryEscape(path))
				if live.status != past.status || live.status == 200 && past.str("time") == "" {
					t.Errorf("tour %d, %s: the past answers %d %s, the present %d", i, path, past.status, past.raw, live.status)
				}
				want, _ := json.Marshal(fromTheJournal(live.body))
				got, _ := json.Marshal(fromTheJournal(past.at("answer")))
				if string(want) != string(got) {
					at := 0
					for at < min(len(got), len(want)) && got[at] == want[at] {
						at++
					}
					at = max(0, at-100)
					t.Errorf("tour %d, %s: the past is\n%.400s\nand the present\n%.400s", i, path, got[at:], want[at:])
				}
				pattern, _ := matchPath("GET", strings.SplitN(path, "?", 2)[0])
				compared[pattern] = true
			}
			pass(time.Second)
		}
		for path := range ofThePast {
			if path != "/v1/patterns/{name}" && !compared[path] {
				t.Errorf("%s was never compared", path)
			}
		}
	})
}

func tourPast(d *door) {
	before := d.get("/v1/status").want(200).str("at.index")
	lease := d.acquire("billing-7", "past:1")
	held := d.get("/v1/status").want(200).str("at.index")
	pass(3 * time.Second)
	d.post("/v1/leases/"+lease+"/release", ``).want(200)
	pass(time.Second)
	d.get("/v1/at?path=keys/past:1&index="+before).want(200).is("answer.state", "free").is("path", "/v1/keys/past:1")
	then := d.get("/v1/at?path=%2Fv1%2Fkeys%2Fpast:1&index=" + held).want(200)
	then.is("answer.holders.0.agent", "billing-7").is("at.index", held).is("answer.at.index", held)
	d.get("/v1/at?time=2s&path=why%3Fkey=past:1").want(200).says("answer.text", "held by billing-7", "for 2 s")
	d.get("/v1/at?time=1h&path=keys").want(410, "history_trimmed").says("detail", "began later")
	d.get("/v1/at?path=patterns/none&index="+held).want(404, "unknown_pattern")
	d.get("/v1/at?path=hot&index="+held).want(400, "invalid_request").says("detail", "/v1/waits")
	d.get("/v1/at?path=keys%3Fstate=lost&index="+held).want(400, "invalid_request")
	d.get("/v1/at?index="+held).want(400, "invalid_request")
	d.get("/v1/at?path=keys").want(400, "invalid_request").says("detail", "?index=1041")
	d.get("/v1/at?path=keys&index=0").want(400, "invalid_request")
	d.get("/v1/at?path=keys&index=x").want(400, "invalid_request")
	d.get("/v1/at?path=keys&index=99999").want(400, "future_version")
}

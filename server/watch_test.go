package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
)

// watching reads /v1/watch until stop is called, and returns what came.
func (d *door) watching(query string, headers ...string) (stop func() []map[string]any) {
	d.Helper()
	ctx, cancel := context.WithCancel(d.Context())
	ch := d.start(d.request("GET", "/v1/watch"+query, "", headers...).WithContext(ctx))
	pass(1)
	return func() (list []map[string]any) {
		d.Helper()
		pass(1)
		cancel()
		for block := range strings.SplitSeq((<-ch).want(200).raw, "\n\n") {
			rest, ok := strings.CutPrefix(block, "event: written\ndata: ")
			if !ok {
				continue
			}
			data, id, _ := strings.Cut(rest, "\nid: ")
			var doc map[string]any
			if err := json.Unmarshal([]byte(data), &doc); err != nil {
				d.Fatalf("%v in %q", err, data)
			}
			if doc["id"] = id; id != "" && id != doc["index"] {
				d.Errorf("the id %s stands at %v", id, doc)
			}
			tourShown(d, "Written", func(j *jsonOut) { j.b = append(j.b, data...) })
			list = append(list, doc)
		}
		return list
	}
}

func keysOf(list []map[string]any) string {
	var keys []string
	for _, doc := range list {
		keys = append(keys, doc["key"].(string)+"@"+doc["version"].(string))
	}
	return strings.Join(keys, " ")
}

func TestWatch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.commitDoc("doc:0", "0")
		d.send(d.request("PUT", "/v1/patterns/doc", `{"pattern":"doc:{id:int}","aliases":["d-{id:int}"]}`)).want(200)
		all, one, below := d.watching(""), d.watching("?key=d-01&values=true"), d.watching("?prefix=page:")
		d.commitDoc("doc:1", `{"a": "<"}`)
		d.post(
			"/v1/commits",
			`{"agent":"ben","note":"both","reads":[{"key":"doc:1","present":true}],"writes":[{"key":"doc:1","delete":true},{"key":"page:a","text":"x\n"}]}`,
		).want(200)
		d.post("/v1/commits", `{"writes":[{"key":"doc:1","put":3}]}`, "Interlock-Namespace", "other").want(200)
		d.acquire("ann", "doc:1")
		list := one()
		if got := keysOf(list); got != "doc:1@2 doc:1@3" {
			t.Error(got)
		}
		if v, _ := list[0]["value"].(map[string]any); v["a"] != "<" || list[0]["op"] != "put" || list[0]["agent"] != "ann" {
			t.Error(list[0])
		}
		if list[1]["absent"] != true || list[1]["note"] != "both" || list[1]["value"] != nil {
			t.Error(list[1])
		}
		if got := keysOf(below()); got != "page:a@3" {
			t.Error(got)
		}
		got := all()
		if keysOf(got) != "doc:1@2 doc:1@3 page:a@3" || got[0]["value"] != nil {
			t.Error(got)
		}
		// The id stands at the last event of an entry, so that no reader misses half a commit.
		if got[1]["id"] != "" || got[2]["id"] == "" {
			t.Error(got)
		}
		first := got[0]["id"].(string)
		if got := keysOf(d.watching("?from=" + first)()); got != "doc:1@2 doc:1@3 page:a@3" {
			t.Error(got)
		}
		if got := keysOf(d.watching("?prefix=doc:", "Last-Event-ID", first)()); got != "doc:1@3" {
			t.Error(got)
		}
		for _, bad := range []string{"?from=x", "?values=1", "?key=a&prefix=b", "?follow=true"} {
			d.get("/v1/watch"+bad).want(400, "invalid_request")
		}
		d.get("/v1/watch?from=1000000").want(400, "future_version").says("detail", "does not exist yet")
		d.get("/v1/watch?key=a//b").want(400, "invalid_key")
		d.get("/v1/watch?prefix="+strings.Repeat("x", interlock.MaxKeyBytes+1)).want(400, "invalid_key")
		d.send(d.request("HEAD", "/v1/watch", "")).want(405)
	})
}

package server

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"
)

// histories that a call may read.
var readsOfHistory = []string{
	"/v1/report", "/v1/timeline", "/v1/events?before=newest", "/v1/at?index=1&path=keys", "/v1/differences?from=1",
}

// Two calls of a namespace read its history at a time. The rest waits, is answered when its turn comes, and is
// refused after a bounded time; no other namespace and no other call waits with it.
func TestHistoriesOfOneNamespace(t *testing.T) {
	for _, path := range readsOfHistory {
		inBubble(t, func(t *testing.T) {
			d := newDoor(t)
			d.acquire("k:1", "a")
			var leave [historyPlaces]func()
			for i := range leave {
				var err error
				if leave[i], err = d.server.histories.enter(t.Context(), "default"); err != nil {
					t.Fatal(err)
				}
			}
			first, second := d.start(d.request("GET", path, "")), d.start(d.request("GET", path, ""))
			pass(historyWait - time.Second)
			if len(first)+len(second) != 0 {
				t.Fatalf("%s: it did not wait", path)
			}
			d.get(path, "Interlock-Namespace", "globex").want(200)
			d.get("/v1/keys").want(200)
			d.get("/v1/events").want(200)
			leave[0]()
			(<-first).want(200)
			(<-second).want(200)

			var err error
			if leave[0], err = d.server.histories.enter(t.Context(), "default"); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if r := d.get(path).want(503, "overloaded"); r.header.Get("Retry-After") == "" {
				t.Errorf("%s: no Retry-After", path)
			}
			if took := time.Since(began); took != historyWait {
				t.Errorf("%s: refused after %v", path, took)
			}
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				d.handler.ServeHTTP(httptest.NewRecorder(), d.request("GET", path, "").WithContext(ctx))
			}()
			pass(time.Second)
			cancel()
			<-gone
			leave[0]()
			leave[1]()
			d.get(path).want(200)
			if n := len(d.server.histories.desks); n != 0 {
				t.Errorf("%s: %d namespaces are remembered", path, n)
			}
		})
	}
}

// While readers that stay have all places, those that end at the newest event wait in a line of their own, which no
// history stands in the way of. A reader that stays is refused at once.
func TestPagesBesideReadersThatStay(t *testing.T) {
	paths := []string{"/v1/events", "/v1/events?from=2&follow=false", "/v1/events?before=newest"}
	for _, path := range paths {
		inBubble(t, func(t *testing.T) {
			d := newDoor(t)
			d.acquire("k:1", "a")
			for range d.server.streams.max {
				if _, ok := d.server.streams.enter("default"); !ok {
					t.Fatal("no place for a reader")
				}
			}
			leaveHistory, err := d.server.histories.enter(t.Context(), "default")
			if err != nil {
				t.Fatal(err)
			}
			d.get(path).want(200)
			d.get("/v1/timeline").want(200)
			d.get("/v1/events?follow=true").want(429, "too_many_streams")
			d.get("/v1/watch").want(429, "too_many_streams")

			var leave [pagePlaces]func()
			for i := range leave {
				if leave[i], err = d.server.pages.enter(t.Context(), "default"); err != nil {
					t.Fatal(err)
				}
			}
			first := d.start(d.request("GET", path, ""))
			pass(historyWait - time.Second)
			if len(first) != 0 {
				t.Fatalf("%s: it did not wait", path)
			}
			d.get(path, "Interlock-Namespace", "globex").want(200)
			leave[0]()
			(<-first).want(200)
			if leave[0], err = d.server.pages.enter(t.Context(), "default"); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			d.get(path).want(503, "overloaded").says("detail", "reads events with 72 calls already")
			if took := time.Since(began); took != historyWait {
				t.Errorf("%s: refused after %v", path, took)
			}
			for _, one := range leave {
				one()
			}
			leaveHistory()
			d.get(path).want(200)
			if n := len(d.server.pages.desks); n != 0 {
				t.Errorf("%s: %d namespaces are remembered", path, n)
			}
		})
	}
}

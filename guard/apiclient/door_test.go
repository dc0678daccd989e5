package apiclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/apiclient"
	"github.com/interlockdev/interlock/guard/apiclient/apitest"
)

func newDoor(t *testing.T, cfg apiclient.Config) *apiclient.Client {
	t.Helper()
	d, err := apiclient.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestGrants(t *testing.T) {
	ctx := t.Context()
	d := newDoor(t, apiclient.Config{URLs: []string{apitest.Serve(t).URL}})
	began := time.Now()
	for _, key := range []interlock.Key{"repo:web/a", "repo:web@copy/b", "other:c"} {
		if _, err := d.Acquire(ctx, "ann", "", key, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Revoke(ctx, "repo:web/a", 1, "test"); err != nil {
		t.Fatal(err)
	}
	// Since then: by the events. Since later: the one that is held, by the listing of keys.
	for since, want := range map[time.Time]int{began.Add(-time.Minute): 2, began.Add(time.Hour): 1} {
		grants, err := d.Grants(ctx, "repo:web", since)
		if err != nil || len(grants) != want {
			t.Fatalf("%v: %+v, %v", since, grants, err)
		}
		for _, g := range grants {
			over := g.Claims[0].Key == "repo:web/a"
			if g.Agent != "ann" || g.Claims[0].Mode != interlock.Exclusive || g.Ended.IsZero() == over ||
				g.Began.Sub(began).Abs() > time.Minute {
				t.Errorf("%+v", g)
			}
		}
	}
	if _, err := newDoor(t, apiclient.Config{URLs: []string{"http://127.0.0.1:1"}}).Grants(ctx, "", began); !errors.Is(
		err, apiclient.ErrUnreachable,
	) {
		t.Error(err)
	}
}

func TestQuestions(t *testing.T) {
	ctx := t.Context()
	d := newDoor(t, apiclient.Config{URLs: []string{apitest.Serve(t).URL + "/"}})
	const key = "repo:web/a b/ü%2F"
	made, err := d.Acquire(ctx, "ann", "why", key, time.Minute)
	if err != nil || made.ID.IsZero() || made.Fence == 0 || made.Agent != "ann" {
		t.Fatal(made, err)
	}
	seen, err := d.Lease(ctx, made.ID)
	if err != nil || seen.Fence != made.Fence || seen.Agent != "ann" || seen.Session != "" || seen.ExpiresIn <= 0 ||
		seen.ExpiresIn > time.Minute {
		t.Error(seen, err)
	}
	if err := d.CheckFence(ctx, key+"/below", made.Fence); err != nil {
		t.Error(err)
	}
	if err := d.CheckFence(ctx, "repo:web", made.Fence); apiclient.CodeOf(err) != interlock.CodeFenced {
		t.Error(err)
	}
	for at, want := range map[interlock.Key]int{key: 1, key + "/below": 1, "repo:web": 1, "repo:web/b": 0} {
		holders, more, err := d.Holders(ctx, at)
		if err != nil || len(holders) != want || more != 0 {
			t.Errorf("%s: %v %d %v", at, holders, more, err)
		}
		if want == 1 &&
			(holders[0].Agent != "ann" || holders[0].Key != key || holders[0].Mode != interlock.Exclusive ||
				holders[0].Fence != made.Fence || holders[0].Purpose != "why") {
			t.Errorf("%s: %+v", at, holders[0])
		}
	}
	if _, err := d.Acquire(ctx, "ben", "", "repo:web", time.Minute); apiclient.CodeOf(err) != interlock.CodeHeld {
		t.Error(err)
	}
	if _, err := d.Acquire(ctx, "ben", "", "repo:x", time.Minute); err != nil {
		t.Error(err)
	}
	list, next, err := d.List(ctx, "repo:", "", 1)
	if err != nil || len(list) != 1 || list[0].Key != key || next == "" {
		t.Error(list, next, err)
	}
	list, next, err = d.List(ctx, "repo:", next, 1)
	if err != nil || len(list) != 1 || list[0].Key != "repo:x" || next != "" {
		t.Error(list, next, err)
	}
	set, err := d.FenceKeys(ctx)
	if err != nil || len(set) == 0 {
		t.Error(set, err)
	}

	// It is taken back at once, and a refusal has the document as it came.
	if err := d.Revoke(ctx, key, made.Fence, "test"); err != nil {
		t.Error(err)
	}
	_, err = d.Lease(ctx, made.ID)
	refusal, ok := errors.AsType[*apiclient.Refusal](err)
	var document struct{ Code, Detail string }
	if !ok || refusal.Code != interlock.CodeRevoked || refusal.Status != http.StatusGone ||
		json.Unmarshal(refusal.Document, &document) != nil ||
		document.Code != "revoked" || document.Detail != refusal.Detail || refusal.Detail == "" || refusal.Advice == "" {
		t.Errorf("%+v %v", refusal, err)
	}
	if err := d.Revoke(ctx, key, made.Fence, ""); apiclient.CodeOf(err) != interlock.CodeFenced {
		t.Error(err)
	}
	if _, _, err := d.Holders(ctx, "a//b"); apiclient.CodeOf(err) != interlock.CodeInvalidKey {
		t.Error(err)
	}
}

// A missing answer, and one that is not Interlock's, is never a yes.
func TestUnreachable(t *testing.T) {
	id, err := interlock.ParseLeaseID("l_0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	stranger := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	var leaked string
	other := stranger(func(_ http.ResponseWriter, r *http.Request) { leaked = r.Header.Get("Authorization") })
	for name, url := range map[string]string{
		"nobody":   closed.URL,
		"a page":   stranger(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }),
		"nothing":  stranger(func(http.ResponseWriter, *http.Request) {}),
		"an error": stranger(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }),
		"no document": stranger(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(409)
			_, _ = io.WriteString(w, `{"code":"held"}`)
		}),
		"an object": stranger(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) }),
		"null":      stranger(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `null`) }),
		"created": stranger(
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); _, _ = io.WriteString(w, `{}`) },
		),
		"cut off": stranger(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"outcome":"valid"}`)
		}),
		"elsewhere": stranger(
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusTemporaryRedirect) },
		),
	} {
		d := newDoor(t, apiclient.Config{URLs: []string{url}, Credential: "ilk_secret"})
		_, ofLease := d.Lease(t.Context(), id)
		_, _, ofKey := d.Holders(t.Context(), "k")
		_, _, ofKeys := d.List(t.Context(), "k", "", 10)
		_, ofClaim := d.Acquire(t.Context(), "ann", "", "k", time.Minute)
		for _, err := range []error{
			ofLease, ofKey, ofKeys, ofClaim, d.CheckFence(t.Context(), "k", 1), d.Revoke(t.Context(), "k", 1, ""),
		} {
			if !errors.Is(err, apiclient.ErrUnreachable) {
				t.Errorf("%s: %v", name, err)
			}
			if err != nil && (strings.Contains(err.Error(), id.String()) || strings.Contains(err.Error(), "ilk_secret")) {
				t.Errorf("%s: the error shows a secret: %v", name, err)
			}
		}
	}
	if leaked != "" {
		t.Error("the credential followed a redirect")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := newDoor(t, apiclient.Config{URLs: []string{other}})
	if err := d.CheckFence(ctx, "k", 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, url := range []string{"", "127.0.0.1:7420", "ftp://x", "http://user@x", "http://x/path", "http://\x7f"} {
		if _, err := apiclient.New(apiclient.Config{URLs: []string{url}}); err == nil {
			t.Errorf("%q is taken", url)
		}
	}
}

// A guard's description of itself goes with every question.
func TestWhoAsks(t *testing.T) {
	var seen http.Header
	var body bytes.Buffer
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		_, _ = io.Copy(&body, r.Body)
		_, _ = io.WriteString(w, `{"outcome":"valid"}`)
	}))
	defer s.Close()
	d := newDoor(t, apiclient.Config{URLs: []string{s.URL}, Credential: "ilk_1", Namespace: "acme"})
	if err := d.CheckFence(t.Context(), "k", 1<<63); err != nil {
		t.Fatal(err)
	}
	if seen.Get("Authorization") != "Bearer ilk_1" || seen.Get("Interlock-Namespace") != "acme" ||
		seen.Get("Content-Type") != "application/json" {
		t.Errorf("it sent %v", seen)
	}
	if body.String() != `{"fence":"9223372036854775808","key":"k"}` {
		t.Errorf("it sent %s", body.String())
	}
}

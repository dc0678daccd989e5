package lfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/apiclient"
	"github.com/interlockdev/interlock/guard/git"
	"github.com/interlockdev/interlock/internal/jsonname"
)

// Config is the configuration of a Handler. API and Keys are required.
type Config struct {
	API  *apiclient.Client
	Keys git.Keys
	// TTL is how long a lock lives; it is never renewed. 0 means interlock.MaxTTL, which is the
	// longest.
	TTL time.Duration
	// Path stands before /locks in the paths of requests, such as
	// /team/web.git/info/lfs.
	Path string
	// Users are the users that may come in. nil believes every user name, which is for loopback
	// alone.
	Users *Users
	// Hosts are further names that the handler may be addressed by.
	Hosts []string
}

// Handler answers the requests of git-lfs clients.
type Handler struct {
	cfg   Config
	names map[string]bool
}

// New makes a Handler.
func New(cfg Config) (*Handler, error) {
	if cfg.TTL == 0 {
		cfg.TTL = interlock.MaxTTL
	}
	if cfg.TTL < interlock.MinTTL || cfg.TTL > interlock.MaxTTL {
		return nil, fmt.Errorf("ttl %v: want one from %v to %v", cfg.TTL, interlock.MinTTL, interlock.MaxTTL)
	}
	cfg.Path = strings.TrimSuffix(cfg.Path, "/")
	if cfg.Path != "" && !strings.HasPrefix(cfg.Path, "/") {
		return nil, fmt.Errorf("path %q: want one that begins with a slash", cfg.Path)
	}
	h := &Handler{cfg: cfg, names: map[string]bool{}}
	for _, host := range cfg.Hosts {
		h.names[strings.ToLower(host)] = true
	}
	return h, nil
}

// Server is an HTTP server for the handler, with its bounds set.
func (h *Handler) Server() *http.Server {
	return &http.Server{
		Handler: h, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
	}
}

// call is one request and its user.
type call struct {
	*Handler
	w    http.ResponseWriter
	r    *http.Request
	user string
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Handler: h, w: w, r: r}
	if apiclient.Foreign(r, h.names) {
		c.refuse(http.StatusForbidden, "the request is for another host, or comes from a page of another site")
		return
	}
	rest, ours := strings.CutPrefix(r.URL.EscapedPath(), h.cfg.Path+"/locks")
	if !ours || rest != "" && rest[0] != '/' {
		c.refuse(http.StatusNotFound, "there are locks here, and nothing else")
		return
	}
	if !c.identify() {
		return
	}
	id, unlock := strings.CutSuffix(strings.TrimPrefix(rest, "/"), "/unlock")
	switch {
	case rest == "" && r.Method == http.MethodPost:
		c.lock()
	case rest == "" && r.Method == http.MethodGet:
		c.list()
	case rest == "/verify" && r.Method == http.MethodPost:
		c.verify()
	case unlock && id != "" && r.Method == http.MethodPost:
		c.unlock(id)
	default:
		c.refuse(http.StatusNotFound, "there is no such request in the locking API")
	}
}

// lock is POST /locks.
func (c *call) lock() {
	var body struct{ Path string }
	if !c.read(&body) {
		return
	}
	if body.Path == "" || strings.ContainsRune(body.Path, '\uFFFD') {
		c.refuse(http.StatusBadRequest, "the path is missing, or is not UTF-8")
		return
	}
	key := c.cfg.Keys.Key(body.Path)
	lease, err := c.cfg.API.Acquire(c.r.Context(), c.user, "locked with git lfs", key, c.cfg.TTL)
	if apiclient.CodeOf(err) == interlock.CodeHeld {
		c.held(key)
		return
	}
	if err != nil {
		c.fail(err)
		return
	}
	l := lockOf(body.Path, &apiclient.Holder{Agent: lease.Agent, Fence: lease.Fence})
	c.answer(http.StatusCreated, map[string]any{"lock": l})
}

// held answers with the holder of the requested file, or of a path above or below it.
func (c *call) held(key interlock.Key) {
	holders, _, err := c.cfg.API.Holders(c.r.Context(), key)
	if err != nil {
		c.fail(err)
		return
	}
	for i := range holders {
		h := &holders[i]
		if path, ok := c.cfg.Keys.Path(h.Key); ok {
			l := lockOf(path, h)
			c.answer(http.StatusConflict, map[string]any{
				"lock": l, "message": fmt.Sprintf("%s is held by %s since %s", path, h.Agent, l.LockedAt),
			})
			return
		}
	}
	// It is held by a lease above all files, or was released a moment ago.
	c.refuse(http.StatusConflict, "something above the file is held: lock it again a little later")
}

// list is GET /locks.
func (c *call) list() {
	query := c.r.URL.Query()
	var locks []lock
	next := ""
	var err error
	if path := query.Get("path"); path != "" {
		locks, err = c.locksAt(path)
	} else {
		locks, next, err = c.locks(query.Get("cursor"), limitOf(query))
	}
	if err != nil {
		c.fail(err)
		return
	}
	kept := []lock{} // none is an empty list, not null
	for _, l := range locks {
		if id := query.Get("id"); id == "" || l.ID == id {
			kept = append(kept, l)
		}
	}
	c.answer(http.StatusOK, struct {
		Locks []lock `json:"locks"`
		Next  string `json:"next_cursor,omitempty"`
	}{kept, next})
}

func limitOf(query url.Values) int {
	limit, _ := strconv.Atoi(query.Get("limit")) // what is no number is no wish
	return limit
}

// verify is POST /locks/verify.
func (c *call) verify() {
	var body struct {
		Cursor string
		Limit  int
	}
	if !c.read(&body) {
		return
	}
	locks, next, err := c.locks(body.Cursor, body.Limit)
	if err != nil {
		c.fail(err)
		return
	}
	answer := struct {
		Ours   []lock `json:"ours"`
		Theirs []lock `json:"theirs"`
		Next   string `json:"next_cursor,omitempty"`
	}{[]lock{}, []lock{}, next}
	for _, l := range locks {
		if l.Owner.Name == c.user {
			answer.Ours = append(answer.Ours, l)
		} else {
			answer.Theirs = append(answer.Theirs, l)
		}
	}
	c.answer(http.StatusOK, answer)
}

// unlock is POST /locks/{id}/unlock.
func (c *call) unlock(id string) {
	var body struct{ Force bool }
	if !c.read(&body) {
		return
	}
	l, err := c.find(id)
	switch {
	case err != nil:
		c.fail(err)
	case l == nil:
		c.refuse(http.StatusNotFound, "there is no lock with this id: it was unlocked, or is over")
	case l.Owner.Name != c.user && !body.Force:
		c.refuse(
			http.StatusForbidden, fmt.Sprintf("%s is locked by %s: ask for it, or unlock with --force", l.Path, l.Owner.Name),
		)
	default:
		reason := "unlocked by " + c.user + " with git lfs"
		if l.Owner.Name != c.user {
			reason = "unlocked by force by " + c.user + " with git lfs"
		}
		err := c.cfg.API.Revoke(c.r.Context(), l.key, l.fence, reason)
		if err != nil && apiclient.CodeOf(err) != interlock.CodeFenced { // else it is over already
			c.fail(err)
			return
		}
		c.answer(http.StatusOK, map[string]any{"lock": l})
	}
}

const (
	mediaType = "application/vnd.git-lfs+json"
	maxBody   = 1 << 20
)

func (c *call) read(v any) bool {
	content, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(content, v)
	}
	if err == nil {
		err = jsonname.Unique(content, true)
	}
	if err != nil {
		c.refuse(http.StatusBadRequest, "the body is not the JSON that the locking API wants")
	}
	return err == nil
}

func (c *call) answer(status int, v any) {
	body, _ := json.Marshal(v) // strings and lists alone: it cannot fail
	c.w.Header().Set("Content-Type", mediaType)
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // a client that does not read it does not want it
}

func (c *call) refuse(status int, message string) {
	c.answer(status, map[string]string{
		"message": message, "documentation_url": "https://github.com/interlockdev/interlock/blob/main/docs/guard-git.md",
	})
}

// fail answers that Interlock refused, or did not answer.
func (c *call) fail(err error) {
	said, ok := errors.AsType[*apiclient.Refusal](err)
	switch {
	case !ok:
		c.refuse(http.StatusServiceUnavailable, "the locks cannot be looked at: Interlock does not answer")
	case said.Code == interlock.CodeUnauthenticated, said.Code == interlock.CodeForbidden,
		said.Code == interlock.CodeForeignHost:
		c.refuse(http.StatusServiceUnavailable, "the locks cannot be looked at: Interlock does not let the guard in")
	default:
		c.refuse(said.Status, said.Detail)
	}
}

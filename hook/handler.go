package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/hook/place"
	"github.com/interlockdev/interlock/hook/shell"
	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/hookclient"
	"github.com/interlockdev/interlock/internal/invisible"
	"github.com/interlockdev/interlock/internal/problem"
)

const (
	// Path is where the door stands; the name of the harness follows.
	Path = "/v1/hooks/"
	// MaxBody is the size of a body, in bytes.
	MaxBody = 1 << 20
	// maxWait is how long a call may wait in line. A harness waits a little longer.
	maxWait     = 50 * time.Second
	defaultWait = 30 * time.Second
	// answerEarly is how long before the limit of interlock-hook the door ends a decision.
	answerEarly = 500 * time.Millisecond
	// answerTime is how long an answer may take to be sent after the wait.
	answerTime = 20 * time.Second
	// sessionTTL is how long an agent lives after its last event.
	sessionTTL = 5 * time.Minute
	// maxFiles is how many files an event leases: more count as a change at large. One request takes them all.
	maxFiles = hookclient.MaxFiles
	// reserve is how long a lease is kept for an agent that was not there when its turn came.
	reserve = time.Minute
)

// Config describes the door.
type Config struct {
	// API is the HTTP API. Each call of it has the host, the credential and the namespace of the hook's own request.
	API http.Handler
	// Disk lets the door look at the disk of this machine for a caller at its loopback address: where links lead, and
	// which checkout a file is in. The keys of leases tell what it finds, so it is for callers that may read that disk
	// themselves. A request that a proxy has passed on is never looked up.
	Disk bool
	// Log receives what goes wrong without a caller; nil discards it.
	Log *slog.Logger
}

// Handler answers hooks.
type Handler struct {
	hub    *agent.Hub
	memory *memory
	index  *index
	disk   bool
	host   string // of this machine
	log    *slog.Logger
}

// NewHandler returns the door. Close it.
func NewHandler(cfg Config) *Handler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	client := api.New(api.Config{
		Bases: []*url.URL{{Scheme: "http", Host: "localhost"}}, Transport: agent.Local(cfg.API), UserAgent: "interlock-hooks",
	})
	return &Handler{
		hub:    agent.NewHub(agent.Config{API: client, Door: "hook", TTL: sessionTTL, Reserve: reserve, Log: cfg.Log}),
		memory: newMemory(), index: newIndex(), disk: cfg.Disk, host: host, log: cfg.Log,
	}
}

// Close stops following tickets. Leases and places in line stay.
func (h *Handler) Close() { h.hub.Close() }

// settings are what the query of a hook's address sets.
type settings struct {
	mode      string // warn, guard or strict
	wait      time.Duration
	perEdit   bool // hold=edit
	noPrompts bool
	unknown   string // allow, ask or deny
	ownOnly   bool   // commits=own
	regions   bool
	files     int // that one event leases at most
	also      map[string]string
}

func settingsOf(query url.Values) (o settings, err error) {
	o = settings{mode: "guard", wait: defaultWait, unknown: "allow", files: maxFiles, also: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		value := query.Get(name)
		oneOf := func(list ...string) {
			if !slices.Contains(list, value) {
				err = fmt.Errorf("parameter %s is %q: want %s", name, invisible.Clip(value, 64), strings.Join(list, " or "))
			}
		}
		switch name {
		case "mode":
			oneOf("warn", "guard", "strict")
			o.mode = value
		case "hold":
			oneOf("edit", "turn")
			o.perEdit = value == "edit"
		case "prompts":
			oneOf("on", "off")
			o.noPrompts = value == "off"
		case "unknown":
			oneOf("allow", "ask", "deny")
			o.unknown = value
		case "commits":
			oneOf("refuse", "own")
			o.ownOnly = value == "own"
		case "regions":
			oneOf("off", "on")
			o.regions = value == "on"
		case "files":
			n, bad := strconv.ParseUint(value, 10, 16)
			if bad != nil || n == 0 || n > maxFiles {
				err = fmt.Errorf("parameter files is %q: want 1 to %d", invisible.Clip(value, 64), maxFiles)
			}
			o.files = int(n)
		case "wait_s":
			seconds, bad := strconv.ParseUint(value, 10, 16)
			if bad != nil || time.Duration(seconds)*time.Second > maxWait {
				err = fmt.Errorf("parameter wait_s is %q: want 0 to %d", invisible.Clip(value, 64), int(maxWait.Seconds()))
			}
			o.wait = time.Duration(seconds) * time.Second
		case "also":
			for _, pair := range query[name] {
				tool, field, ok := strings.Cut(pair, ":")
				if !ok || tool == "" || field == "" {
					err = fmt.Errorf("parameter also is %q: want TOOL:FIELD", invisible.Clip(pair, 64))
				}
				o.also[tool] = field
			}
		default:
			err = fmt.Errorf(
				"parameter %q is unknown: want mode, wait_s, hold, prompts, unknown, commits, regions, files or also",
				invisible.Clip(name, 64),
			)
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

// limit is how long an event may take: an answer after the harness gave up would be of no use.
func (o *settings) limit(ev *Event) time.Duration {
	if ev.Kind == BeforeTool {
		return o.wait + hookclient.Margin - answerEarly
	}
	return hookclient.Short - answerEarly
}

// ServeHTTP answers a hook. A request with a mistake gets a problem document, which no harness takes for a denial.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := strings.TrimPrefix(r.URL.Path, Path)
	harness := harnesses[kind]
	if harness == nil && kind != skipName {
		fail(w, interlock.CodeNotFound, fmt.Sprintf(
			"there is no harness %q: want one of %s", invisible.Clip(kind, 64),
			strings.Join(slices.Sorted(maps.Keys(harnesses)), ", "),
		))
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		fail(w, interlock.CodeMethodNotAllowed, "a hook is a POST of the harness's own JSON")
		return
	}
	if r.Header.Get("Origin") != "" {
		fail(w, interlock.CodeForeignHost, "the request comes from a web page: only programs may send hooks")
		return
	}
	if kind == skipName {
		if body, ok := readBody(w, r); ok {
			h.allow(w, r, body)
		}
		return
	}
	o, err := settingsOf(r.URL.Query())
	if err != nil {
		fail(w, interlock.CodeInvalidRequest, err.Error())
		return
	}
	limit := http.NewResponseController(w)
	_ = limit.SetWriteDeadline(time.Now().Add(o.wait + answerTime)) // where a test has no connection there is no deadline
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	ev, err := harness.parse(body, o.also)
	if err != nil {
		fail(w, interlock.CodeInvalidRequest, err.Error())
		return
	}
	if ev.foreign != nil {
		harness, kind = ev.foreign, "cursor"
	}
	at := newLocator(r, h.sees(r), ev.Dir)
	changes := at.resolve(shell.Reading{Writes: ev.Writes, Trees: ev.Trees, Unknown: ev.Unknown})
	ev.Writes, ev.Trees, ev.Unknown = changes.Writes, changes.Trees, changes.Unknown
	ev.bound(o.files)
	if o.regions && ev.Kind == BeforeTool {
		at.edit = ev.Edit
	}
	if paths := at.missing(ev); len(paths) > 0 {
		send(w, http.StatusOK, "application/json", place.Asked{Places: paths, Edit: at.edit})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), o.limit(ev))
	defer cancel()
	verdict, err := h.act(r.WithContext(ctx), kind, harness, ev, o, at)
	switch {
	case r.Context().Err() != nil:
		return // the harness went away
	case err != nil && ctx.Err() != nil:
		fail(w, interlock.CodeOverloaded, "the server did not decide in the time of the harness: nothing is reserved")
		return
	}
	if err != nil {
		h.failWith(w, err)
		return
	}
	answer := harness.answer(ev, verdict)
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	send(w, http.StatusOK, "application/json", answer)
}

// readBody reads the body of a request, or answers that it cannot.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		fail(w, interlock.CodeBodyTooLarge, fmt.Sprintf("the body has more than %d bytes", MaxBody))
		return nil, false
	}
	if err != nil {
		fail(w, interlock.CodeInvalidRequest, "the body did not arrive whole: send it again")
		return nil, false
	}
	return body, true
}

func send(w http.ResponseWriter, status int, contentType string, answer any) {
	text, err := json.Marshal(answer)
	if err != nil { // all of them are structures of texts
		panic(err)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // a harness that went away hears nothing
}

// failWith answers with an error of the API.
func (h *Handler) failWith(w http.ResponseWriter, err error) {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		sendProblem(w, p)
		return
	}
	h.log.Error("a hook failed", "error", err)
	fail(w, interlock.CodeInternal, "internal error in this call: check the server's log")
}

func fail(w http.ResponseWriter, code interlock.Code, detail string) {
	info := problem.Of(code)
	sendProblem(w, &api.Problem{
		Status: info.Status, Code: code, Detail: detail,
		Advice: interlock.Advice{Action: info.Action, RetryAfter: info.After, Message: info.Next},
	})
}

// problemDocument is the form of a refusal at every path of the API.
type problemDocument struct {
	Type      string            `json:"type"`
	Title     string            `json:"title"`
	Status    int               `json:"status"`
	Code      interlock.Code    `json:"code"`
	Detail    string            `json:"detail"`
	Retryable bool              `json:"retryable"`
	Advice    api.Advice        `json:"advice"`
	Active    *api.ActiveServer `json:"active,omitempty"`
}

func sendProblem(w http.ResponseWriter, p *api.Problem) {
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="interlock"`)
	}
	send(w, p.Status, "application/problem+json", problemDocument{
		Type: problem.Base + string(p.Code), Title: problem.Of(p.Code).Title, Status: p.Status, Code: p.Code,
		Detail: p.Detail, Retryable: p.Code.Retryable(), Active: p.Active,
		Advice: api.Advice{
			Action: p.Advice.Action, RetryAfter: p.Advice.RetryAfter.Milliseconds(), Message: p.Advice.Message,
		},
	})
}

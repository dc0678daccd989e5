package server

import (
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
)

// A route is one path with the methods it takes. The paths are as in openapi.json, and each
// handler has the name of its operationId; a test compares both.
//
// They are matched by hand, and on the path as it was sent: http.ServeMux would
// clean "//" and ".." out of a key and answer for another one, and a path such as
// /v1%2Frevocations would get past a proxy that guards /v1/revocations.
type route struct {
	path    string
	methods []method
}

type method struct {
	name   string
	handle func(*call)
	needs  right
	query  []string // the parameters it knows; others are refused. Those with "..." may stand often
}

// openRoutes need no credential: they show nothing of any tenant.
var openRoutes = []route{
	{"/", []method{{"GET", (*call).getRoot, mayAnything, nil}}},
	{"/healthz", []method{{"GET", (*call).getHealth, mayAnything, nil}}},
	{"/readyz", []method{{"GET", (*call).getReadiness, mayAnything, []string{"role"}}}},
	{"/openapi.json", []method{{"GET", (*call).getOpenAPI, mayAnything, []string{"tag"}}}},
	{"/llms.txt", []method{{"GET", (*call).getGuide, mayAnything, nil}}},
	{keysPath, []method{{"GET", (*call).listFenceKeys, mayAnything, nil}}},
}

// aboutProcess are the paths that a router answers itself: they are about the process, or about all shards.
var aboutProcess = map[string]bool{
	"/": true, "/healthz": true, "/readyz": true, "/openapi.json": true, "/llms.txt": true, "/metrics": true,
	keysPath: true, shardsPath: true, movesPath: true, movePath: true, drainPath: true,
}

var routes = []route{
	{"/v1/status", []method{{"GET", (*call).getStatus, mayRead, nil}}},
	{"/v1/overview", []method{{"GET", (*call).getOverview, mayRead, nil}}},
	{"/v1/timeline", []method{{"GET", (*call).getTimeline, mayRead, []string{
		"since", "until", "agent", "key", "ended",
	}}}},
	{"/v1/report", []method{{"GET", (*call).getReport, mayRead, []string{"since", "until"}}}},
	{"/v1/at", []method{{"GET", (*call).getPast, mayRead, []string{"path", "index", "time"}}}},
	{"/v1/differences", []method{{"GET", (*call).getDifferences, mayRead, []string{"from", "to", "prefix", "limit"}}}},
	{"/metrics", []method{{"GET", (*call).getMetrics, mayScrape, nil}}},

	{"/v1/leases", []method{
		{
			"GET", (*call).listLeases, mayRead,
			[]string{"prefix", "agent", "session", "principal", "liveness", "cursor", "limit"},
		},
		{"POST", (*call).acquireLease, mayHold, nil},
	}},
	{"/v1/leases/{id}", []method{{"GET", (*call).getLease, mayLive, nil}}},
	{"/v1/leases/{id}/renew", []method{{"POST", (*call).renewLease, mayLive, nil}}},
	{"/v1/leases/{id}/release", []method{{"POST", (*call).releaseLease, mayLive, nil}}},
	{"/v1/leases/{id}/convert", []method{{"POST", (*call).convertLease, mayHold, nil}}},
	{"/v1/leases/{id}/arrive", []method{{"POST", (*call).arriveAtBarrier, mayHold, nil}}},
	{"/v1/leases/{id}/park", []method{{"POST", (*call).parkLease, mayLive, nil}}},
	{"/v1/leases/{id}/resume", []method{{"POST", (*call).resumeLease, mayLive, nil}}},
	{"/v1/tickets", []method{{
		"GET", (*call).listTickets, mayRead, []string{"prefix", "agent", "session", "principal", "state", "cursor", "limit"},
	}}},
	{"/v1/tickets/{id}", []method{
		{"GET", (*call).getTicket, mayLive, []string{"wait_ms"}},
		{"DELETE", (*call).deleteTicket, mayLive, nil},
	}},

	{"/v1/sessions", []method{
		{"GET", (*call).listSessions, mayRead, []string{"agent", "principal", "state", "cursor", "limit"}},
		{"POST", (*call).createSession, mayLive, nil},
	}},
	{"/v1/sessions/{id}", []method{
		{"GET", (*call).getSession, mayLive, nil},
		{"DELETE", (*call).deleteSession, mayLive, nil},
	}},
	{"/v1/sessions/{id}/heartbeat", []method{{"POST", (*call).heartbeatSession, mayLive, nil}}},

	{"/v1/keys", []method{{"GET", (*call).listKeys, mayRead, []string{"prefix", "state", "cursor", "limit"}}}},
	{"/v1/keys/{key}", []method{{"GET", (*call).getKey, mayRead, []string{"resource"}}}},
	{"/v1/parked", []method{{"GET", (*call).listParked, mayRead, []string{"cursor", "limit"}}}},
	{"/v1/waits", []method{{"GET", (*call).listWaits, mayRead, nil}, {"POST", (*call).declareWait, mayHold, nil}}},
	{"/v1/why", []method{{"GET", (*call).getWhy, mayRead, []string{"key", "agent"}}}},
	{"/v1/hot", []method{{"GET", (*call).listHotKeys, mayRead, []string{"limit"}}}},
	{"/v1/events", []method{{
		"GET", (*call).listEvents, mayRead,
		[]string{
			"from", "follow", "since", "until", "prefix", "agent", "about", "event", "principal", "before", "limit",
		},
	}}},

	{
		"/v1/state",
		[]method{{"GET", (*call).listState, mayRead, []string{"key...", "prefix", "values", "cursor", "limit"}}},
	},
	{"/v1/state/{key}", []method{
		{"GET", (*call).getState, mayRead, []string{"version"}},
		{"PUT", (*call).setState, mayHold, nil},
		{"PATCH", (*call).updateState, mayHold, nil},
		{"DELETE", (*call).deleteState, mayHold, nil},
	}},
	{"/v1/history/{key}", []method{{"GET", (*call).listVersions, mayRead, []string{"values"}}}},
	{"/v1/watch", []method{{"GET", (*call).watchState, mayRead, []string{"key", "prefix", "values", "from"}}}},
	{"/v1/commits", []method{{"POST", (*call).commitState, mayHold, nil}}},
	{"/v1/contention", []method{{"GET", (*call).getContention, mayRead, nil}}},
	{"/v1/effects", []method{
		{"GET", (*call).listEffects, mayRead, []string{"state", "cursor", "limit"}},
		{"POST", (*call).claimEffect, mayHold, nil},
		{"DELETE", (*call).deleteEffects, mayAdminister, []string{"older_than_ms"}},
	}},
	{
		"/v1/effects/{digest}",
		[]method{{"GET", (*call).getEffect, mayRead, nil}, {"DELETE", (*call).deleteEffect, mayAdminister, nil}},
	},
	{"/v1/effects/{id}/done", []method{{"POST", (*call).completeEffect, mayHold, nil}}},
	{"/v1/effects/{id}/unknown", []method{{"POST", (*call).markEffectUnknown, mayHold, nil}}},
	{"/v1/effects/{id}/cancel", []method{{"POST", (*call).cancelEffect, mayHold, nil}}},
	{"/v1/effects/{digest}/reconcile", []method{{"POST", (*call).reconcileEffect, mayHold, nil}}},

	{"/v1/tasks", []method{
		{"GET", (*call).listTasks, mayRead, []string{"queue", "state", "group", "key", "cursor", "limit"}},
		{"POST", (*call).createTask, maySubmit, nil},
	}},
	{"/v1/tasks/{id}", []method{{"GET", (*call).getTask, mayRead, []string{"wait_ms", "session", "flow"}}}},
	{"/v1/tasks/{id}/cancel", []method{{"POST", (*call).cancelTask, mayManage, nil}}},
	{"/v1/tasks/{id}/reschedule", []method{{"POST", (*call).rescheduleTask, mayManage, nil}}},
	{"/v1/tasks/{id}/replay", []method{{"POST", (*call).replayTask, mayManage, nil}}},
	{"/v1/tasks/{id}/discard", []method{{"POST", (*call).discardTask, mayManage, nil}}},
	{"/v1/queues", []method{{"GET", (*call).listQueues, mayRead, nil}}},
	{"/v1/queues/{queue}", []method{
		{"GET", (*call).getQueue, mayRead, nil},
		{"PUT", (*call).setQueue, mayAdminister, nil},
		{"DELETE", (*call).deleteQueue, mayAdminister, nil},
	}},
	{"/v1/queues/{queue}/pause", []method{{"POST", (*call).pauseQueue, mayManage, nil}}},
	{"/v1/queues/{queue}/drain", []method{{"POST", (*call).drainQueue, mayManage, nil}}},
	{"/v1/queues/{queue}/resume", []method{{"POST", (*call).resumeQueue, mayManage, nil}}},
	{"/v1/queues/{queue}/pull", []method{{"POST", (*call).pullTasks, mayWork, nil}}},
	{"/v1/leases/{id}/ack", []method{{"POST", (*call).ackTask, mayWork, nil}}},
	{"/v1/leases/{id}/nack", []method{{"POST", (*call).nackTask, mayWork, nil}}},
	{"/v1/leases/{id}/ask", []method{{"POST", (*call).requestApproval, mayWork, nil}}},
	{"/v1/approvals", []method{{"GET", (*call).listApprovals, mayRead, []string{"cursor", "limit"}}}},
	{"/v1/approvals/{id}", []method{{"POST", (*call).answerApproval, mayApprove, nil}}},

	{"/v1/webhooks", []method{{"GET", (*call).listWebhooks, mayAdminister, nil}}},
	{"/v1/webhooks/{name}", []method{
		{"GET", (*call).getWebhook, mayAdminister, nil},
		{"PUT", (*call).setWebhook, mayAdminister, nil},
		{"DELETE", (*call).deleteWebhook, mayAdminister, nil},
	}},
	{"/v1/webhooks/{name}/rotate", []method{{"POST", (*call).rotateWebhook, mayAdminister, nil}}},
	{"/v1/webhooks/{name}/test", []method{{"POST", (*call).testWebhook, mayAdminister, nil}}},

	{"/v1/writers", []method{{"GET", (*call).listWriters, mayRead, nil}}},
	{
		"/v1/writers/{pattern}",
		[]method{{"PUT", (*call).setWriter, mayAdminister, nil}, {"DELETE", (*call).deleteWriter, mayAdminister, nil}},
	},
	{"/v1/mailbox/{key}", []method{{"POST", (*call).sendMessage, maySubmit, nil}}},
	{"/v1/mailbox/{key}/log", []method{{"GET", (*call).getMailboxLog, mayRead, []string{"from", "limit"}}}},
	{"/v1/runs", []method{
		{"GET", (*call).listRuns, mayRead, []string{"org", "cursor", "limit"}},
		{"POST", (*call).startRun, mayHold, nil},
	}},
	{"/v1/runs/{id}/end", []method{{"POST", (*call).endRun, mayHold, nil}}},

	{"/v1/journal/head", []method{{"GET", (*call).getJournalHead, mayAdminister, nil}}},
	{"/v1/leases/{id}/statement", []method{{"POST", (*call).signLease, mayLive, nil}}},
	{shardsPath, []method{
		{"GET", (*call).listShards, maySeeServers, []string{"now"}},
		{"POST", (*call).addShards, mayPlace, nil},
	}},
	{movesPath, []method{{"POST", (*call).moveNamespace, mayPlace, nil}}},
	{movePath, []method{{"DELETE", (*call).deleteMove, mayPlace, nil}}},
	{drainPath, []method{{"POST", (*call).drainServer, mayPlace, nil}}},
	{backupPath, []method{{"GET", (*call).getBackup, mayBackUp, []string{"shard"}}}},
	{"/v1/fences/keys/rotate", []method{{"POST", (*call).rotateFenceKeys, mayRotate, nil}}},
	{"/v1/files/{path}", []method{
		{"GET", (*call).getFile, mayRead, nil},
		{"PUT", (*call).setFile, mayHold, nil},
		{"DELETE", (*call).deleteFile, mayHold, nil},
	}},

	{"/v1/fences/check", []method{{"POST", (*call).checkFence, mayRead, nil}}},
	{"/v1/yield-requests", []method{{"POST", (*call).requestYield, mayRevoke, nil}}},
	{"/v1/revocations", []method{{"POST", (*call).revokeLease, mayRevoke, nil}}},
	{"/v1/patterns", []method{{"GET", (*call).listPatterns, mayRead, nil}}},
	{"/v1/patterns/{name}", []method{
		{"GET", (*call).getPattern, mayRead, nil},
		{"PUT", (*call).setPattern, mayAdminister, nil},
		{"DELETE", (*call).deletePattern, mayAdminister, nil},
	}},
	{"/v1/patterns/{name}/revisions", []method{{"GET", (*call).listPatternRevisions, mayRead, nil}}},
	{"/v1/patterns/{name}/revert", []method{{"POST", (*call).revertPattern, mayAdminister, nil}}},
	{namespacePath, []method{{"DELETE", (*call).deleteNamespace, mayAdminister, []string{"force"}}}},
	{
		"/v1/namespace",
		[]method{{"GET", (*call).getNamespace, mayRead, nil}, {"PUT", (*call).setNamespace, mayAdminister, nil}},
	},
}

// keysPath is the path of the keys that verify fences, of all shards.
const keysPath = "/v1/fences/keys"

// shardsPath is the path of the shards and the servers.
const shardsPath = "/v1/shards"

// backupPath is the path with a parameter that names the shard.
const backupPath = "/v1/admin/backup"

// namespacePath is the path that names its namespace itself, whatever is in the header.
const namespacePath = "/v1/namespaces/{name}"

var (
	openByPath = indexRoutes(openRoutes)
	byPath     = indexRoutes(routes)
)

func indexRoutes(routes []route) map[string]*route {
	index := map[string]*route{}
	for i := range routes {
		index[routes[i].path] = &routes[i]
	}
	return index
}

// shapes has the path of every route with a variable, by the segments before and behind it:
// {"leases", "release"} for /v1/leases/{id}/release.
var shapes = func() map[[2]string]string {
	index := map[[2]string]string{}
	for i := range routes {
		path := routes[i].path
		if before, rest, ok := strings.Cut(path, "/{"); ok {
			_, behind, _ := strings.Cut(rest, "}")
			index[[2]string{strings.TrimPrefix(before, "/v1/"), strings.TrimPrefix(behind, "/")}] = path
		}
	}
	return index
}()

// matchPath finds the pattern that an escaped path fits, and its variable part. A
// {key} or {path} is all that follows, with its slashes; where the method is GET and
// there is a pattern with more behind it, as in /v1/mailbox/{key}/log, all up to that.
func matchPath(method, path string) (pattern, variable string) {
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok {
		return path, ""
	}
	collection, rest, deep := strings.Cut(rest, "/")
	if !deep {
		return path, ""
	}
	if pattern := shapes[[2]string{collection}]; strings.HasSuffix(pattern, "{key}") ||
		strings.HasSuffix(pattern, "{path}") {
		if i := strings.LastIndexByte(rest, '/'); i > 0 && i+1 < len(rest) &&
			(method == http.MethodGet || method == http.MethodHead) {
			if longer, known := shapes[[2]string{collection, rest[i+1:]}]; known {
				return longer, rest[:i]
			}
		}
		return pattern, rest
	}
	variable, action, deep := strings.Cut(rest, "/")
	pattern, known := shapes[[2]string{collection, action}]
	if !known || variable == "" || deep && action == "" {
		return path, ""
	}
	return pattern, variable
}

// HTTPHandler is the HTTP API.
func (s *Server) HTTPHandler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{s: s, w: w, r: r, status: http.StatusOK}
	defer func() {
		broken := recover()
		if broken != nil && broken != http.ErrAbortHandler {
			s.log.Error(
				"a call failed because of an internal error", "route", c.route, "panic", broken, "stack", string(debug.Stack()),
			)
			if !c.answered {
				c.refuse(interlock.CodeInternal, "internal error in this call: check the server's log")
				broken = nil
			}
		}
		c.unanswered()
		c.land()
		c.s.obs.httpCall(c.route, c.status)
		if broken != nil {
			panic(http.ErrAbortHandler) // an answer that was begun must not look whole
		}
	}()
	path := r.URL.EscapedPath()
	token, link := isLink(path)
	check := s.hosts.check
	if link && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		check = s.hosts.checkHost // a chat links to the page, which changes nothing
	}
	if err := check(r); err != nil {
		c.fail(err)
		return
	}
	if link {
		c.variable = token
		c.dispatch(&approveRoute)
		return
	}
	if rt, ok := openByPath[path]; ok {
		c.dispatch(rt)
		return
	}
	if !c.identify() {
		return
	}
	pattern, variable := matchPath(c.r.Method, path)
	if rt, ok := byPath[pattern]; ok {
		c.variable = variable
		c.dispatch(rt)
		return
	}
	c.refuse(interlock.CodeNotFound, "no such path: see /openapi.json for the available paths")
}

// identify finds out the caller, and its namespace.
func (c *call) identify() bool {
	asked := c.r.Header["Interlock-Namespace"]
	if len(asked) > 1 {
		c.refuse(interlock.CodeInvalidNamespace, "the header Interlock-Namespace occurs twice")
		return false
	}
	id, err := c.s.Authenticate(bearerOf(c.r.Header.Get("Authorization")))
	if err == nil {
		c.identity = id
		c.namespace, err = id.Resolve(strings.Join(asked, ""))
	}
	if err != nil {
		c.failWith(err)
		return false
	}
	admitRequest(c.r, &c.identity)
	return true
}

func (c *call) dispatch(rt *route) {
	c.route = rt.path
	if c.s.directory != nil && !aboutProcess[rt.path] {
		owner := c.toOwner(rt)
		if owner == nil {
			return
		}
		c.s = owner
	}
	name := c.r.Method
	if name == http.MethodHead {
		// Except where looking may change something, never ends, or takes long.
		if !slices.Contains([]string{
			"/v1/tickets/{id}", "/v1/events", "/v1/watch", "/v1/overview", "/v1/timeline", "/v1/report", backupPath,
		}, rt.path) {
			name = http.MethodGet
		}
	}
	for i := range rt.methods {
		m := &rt.methods[i]
		if m.name != name {
			continue
		}
		if !c.allowed(m.needs) || c.overQuota(name) || c.crowdedOut() || c.r.URL.RawQuery != "" && !c.parseQuery(m.query) {
			return
		}
		m.handle(c)
		return
	}
	allow := make([]string, len(rt.methods))
	for i := range rt.methods {
		allow[i] = rt.methods[i].name
	}
	slices.Sort(allow)
	c.w.Header().Set("Allow", strings.Join(allow, ", "))
	c.refuse(interlock.CodeMethodNotAllowed, "this path takes "+strings.Join(allow, " and ")+" only")
}

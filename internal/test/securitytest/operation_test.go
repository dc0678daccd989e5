package securitytest

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
)

// operation is the properties of one operation of openapi.json that the cases need.
type operation struct {
	id, method, path string

	hasBody bool
	foreignReference
}

// foreignReference is how an operation names things that belong to a tenant, so that another
// one can try. The words in braces are things of world_test.go.
type foreignReference struct {
	path   map[string]string // what each variable of the path is
	query  []string          // each a query to try, beside the one without
	bodies []string          // each a body to try; the first one is harmless, "" where there is none
	header []string
	kind   string // content type of the body, where it is not JSON

	open    bool // needs no credential
	process bool // is about the process: it has no tenant
	only    bool // for operators
	wakes   bool // a GET that may change something: it takes up an offer
	endless bool // it continues until the caller leaves
}

var byLease, byTask = map[string]string{"id": "lease"}, map[string]string{"id": "task"}

func lease(bodies ...string) foreignReference { return foreignReference{path: byLease, bodies: bodies} }

func task(bodies ...string) foreignReference { return foreignReference{path: byTask, bodies: bodies} }

func queue(bodies ...string) foreignReference {
	return foreignReference{path: map[string]string{"queue": "queue"}, bodies: bodies}
}

func webhook(bodies ...string) foreignReference {
	return foreignReference{path: map[string]string{"name": "webhook"}, bodies: bodies}
}

func effect(bodies ...string) foreignReference {
	return foreignReference{path: map[string]string{"id": "effect"}, bodies: bodies}
}

func ofKey(query ...string) foreignReference {
	return foreignReference{path: map[string]string{"key": "key"}, query: query}
}
func listing(query ...string) foreignReference            { return foreignReference{query: query} }
func body(bodies ...string) foreignReference              { return foreignReference{bodies: bodies} }
func (c foreignReference) forOperators() foreignReference { c.only = true; return c }

// crossings has every operation of openapi.json by its operationId.
var crossings = map[string]foreignReference{
	"acquireLease": body(`{"claims":[{"key":"g:1"}],"on_conflict":"skip"}`, `{"session":"{session}","claims":[{"key":"g:1"}]}`,
		`{"claims":[{"key":"{key}"}],"on_conflict":"skip"}`),
	"getLease":        lease(),
	"renewLease":      lease(`{}`),
	"releaseLease":    lease(`{}`),
	"convertLease":    lease(`{"claims":[{"key":"g:1"}]}`),
	"arriveAtBarrier": lease(`{}`),
	"parkLease":       lease(`{}`),
	"resumeLease":     {path: map[string]string{"id": "parked"}, bodies: []string{`{}`, `{"session":"{session}"}`}},
	"signLease":       lease(`{}`),
	"ackTask":         lease(`{}`, `{"tasks":[]}`),
	"nackTask":        lease(`{}`),
	"requestApproval": lease(`{"question":"may I?"}`),

	"getTicket":        {path: map[string]string{"id": "ticket"}, query: []string{"wait_ms=0"}, wakes: true},
	"deleteTicket":     {path: map[string]string{"id": "ticket"}},
	"createSession":    body(`{"agent":"{agent}"}`),
	"getSession":       {path: map[string]string{"id": "session"}},
	"deleteSession":    {path: map[string]string{"id": "session"}},
	"heartbeatSession": {path: map[string]string{"id": "session"}, bodies: []string{`{}`}},

	"getStatus":    listing(),
	"listLeases":   listing("prefix="+mark, "agent={agent}", "cursor={cursor.leases}&limit=1"),
	"listTickets":  listing("prefix="+mark, "agent={agent}"),
	"listSessions": listing("agent={agent}", "state=holding", "cursor={cursor.sessions}&limit=1"),
	"listParked":   listing("cursor={cursor.parked}&limit=1"),
	"listKeys":     listing("prefix="+mark, "state=held", "cursor={cursor.keys}&limit=1"),
	"getKey":       ofKey(),
	"listWaits":    listing(),
	"declareWait": body(
		`{"on":{"agent":"{agent}"},"wait_ms":0,"max_wait_ms":1000}`,
		`{"session":"{session}","on":{"agent":"acm"},"wait_ms":0}`,
	),
	"getWhy":      listing("key={key}", "agent={agent}"),
	"getOverview": listing(),
	"getTimeline": listing("", "key={key}", "agent={agent}"),
	"getReport":   listing("", "since=7d"),
	"getPast": listing(
		"path=keys&time=0s", "path=why%3Fkey={key}&time=0s", "path=why%3Fagent={agent}&time=0s", "path=leases&time=0s",
		"path=state%3Fvalues=true&time=0s", "path=sessions&time=0s", "path=tickets&time=0s", "path=tasks&time=0s",
	),
	"getDifferences": listing("from=1", "from=1&to=1&prefix="+mark+"&limit=1", "from=0s"),
	"listHotKeys":    listing(),
	"listEvents":     listing("from=1", "follow=false", "prefix="+mark, "agent={agent}&event=granted&since=1d"),

	"listState": listing("key={key}&values=true", "prefix="+mark, "cursor={cursor.state}&prefix="+mark+"&limit=1"),
	"getState":  ofKey("version=1"),
	"setState": {
		path: map[string]string{"key": "key"}, bodies: []string{`1`}, kind: "application/json",
		header: []string{"If-None-Match", "*", "Interlock-Lease", "{lease}", "Interlock-Session", "{session}"},
	},
	"updateState": {
		path: map[string]string{"key": "key"}, bodies: []string{`{"a":1}`}, kind: "application/merge-patch+json",
		header: []string{"If-Match", `"1"`, "Interlock-Session", "{session}"},
	},
	"deleteState": {
		path: map[string]string{"key": "key"}, header: []string{"If-Match", `"1"`, "Interlock-Lease", "{lease}"},
	},
	"listVersions": ofKey("values=true"),
	"watchState":   {query: []string{"key={key}&from=1", "from=1&values=true"}, endless: true},
	"commitState": body(
		`{"writes":[{"key":"g:doc","add":1}]}`,
		`{"session":"{session}","writes":[{"key":"g:doc","add":1}]}`,
		`{"leases":["{lease}"],"writes":[{"key":"g:doc","add":1}]}`,
		`{"reads":[{"key":"{key}","version":"1"}],"writes":[{"key":"g:doc","add":1}]}`,
	),
	"getContention": listing(),

	"listEffects": listing("state=claimed", "cursor={cursor.effects}&limit=1"),
	"claimEffect": body(
		`{"tool":"g","target":"g"}`, `{"tool":"g","target":"h","session":"{session}"}`,
		`{"tool":"g","target":"i","lease":"{lease}"}`,
	),
	"getEffect":         {path: map[string]string{"digest": "digest"}},
	"deleteEffects":     listing("older_than_ms=3600000").forOperators(),
	"deleteEffect":      foreignReference{path: map[string]string{"digest": "digest"}}.forOperators(),
	"completeEffect":    effect(`{}`),
	"markEffectUnknown": effect(`{}`),
	"cancelEffect":      effect(`{}`),
	"reconcileEffect":   {path: map[string]string{"digest": "digest"}, bodies: []string{`{"happened":false}`}},

	"listTasks":      listing("queue={queue}", "cursor={cursor.tasks}&limit=1"),
	"createTask":     body(`{"queue":"{queue}"}`, `{"queue":"{queue}","session":"{session}"}`),
	"getTask":        {path: byTask, query: []string{"wait_ms=0", "session={session}&wait_ms=0"}},
	"cancelTask":     task(`{}`),
	"rescheduleTask": task(`{}`),
	"replayTask":     task(`{}`),
	"discardTask":    task(`{}`),
	"listQueues":     listing(),
	"getQueue":       queue(),
	"setQueue":       queue(`{}`).forOperators(),
	"deleteQueue":    queue().forOperators(),
	"pauseQueue":     queue(`{}`).forOperators(),
	"drainQueue":     queue(`{}`).forOperators(),
	"resumeQueue":    queue(`{}`).forOperators(),
	"pullTasks":      queue(`{}`, `{"session":"{session}"}`),
	"listApprovals":  listing("cursor={cursor.approvals}&limit=1"),
	"answerApproval": task(`{"verdict":"denied","by":"acm"}`),
	"listWriters":    listing(),
	"setWriter": foreignReference{
		path: map[string]string{"pattern": "pattern"}, bodies: []string{`{"queue":"{queue}"}`},
	}.forOperators(),
	"deleteWriter":  foreignReference{path: map[string]string{"pattern": "pattern"}}.forOperators(),
	"sendMessage":   {path: map[string]string{"key": "key"}, bodies: []string{`{}`, `{"session":"{session}"}`}},
	"getMailboxLog": ofKey(),
	"listRuns":      listing("org="+mark, "cursor={cursor.runs}&limit=1"),
	"startRun":      body(`{"org":"g","wait_ms":0}`, `{"org":"g","wait_ms":0,"session":"{session}"}`),
	"endRun":        {path: map[string]string{"id": "run"}, bodies: []string{`{}`}},

	"checkFence":     body(`{"key":"{key}","fence":"1"}`),
	"revokeLease":    body(`{"key":"{key}","fence":"1"}`).forOperators(),
	"requestYield":   body(`{"key":"{key}","fence":"1"}`).forOperators(),
	"listFenceKeys":  {open: true, process: true},
	"getJournalHead": foreignReference{process: true}.forOperators(),
	"getBackup":      foreignReference{process: true}.forOperators(),
	"listShards":     foreignReference{process: true}.forOperators(),
	"moveNamespace": foreignReference{
		bodies: []string{`{"namespace":"{namespace}","shard":0}`}, process: true,
	}.forOperators(),
	"deleteMove":      foreignReference{process: true}.forOperators(),
	"addShards":       foreignReference{bodies: []string{`{"store":"g","shards":1}`}, process: true}.forOperators(),
	"drainServer":     foreignReference{bodies: []string{`{"server":"g"}`}, process: true}.forOperators(),
	"rotateFenceKeys": foreignReference{bodies: []string{`{}`}, process: true}.forOperators(),
	"getFile":         {path: map[string]string{"path": "file"}},
	"setFile": {
		path: map[string]string{"path": "file"}, bodies: []string{`x`}, kind: "application/octet-stream",
		header: []string{"If-Match", `"000000000000"`},
	},
	"deleteFile": {path: map[string]string{"path": "file"}, header: []string{"If-Match", `"000000000000"`}},

	"listPatterns": listing(),
	"getPattern":   {path: map[string]string{"name": "pattern"}},
	"setPattern": foreignReference{
		path: map[string]string{"name": "pattern"}, bodies: []string{`{"pattern":"{pattern}-shape:{any}"}`},
	}.forOperators(),
	"deletePattern":        foreignReference{path: map[string]string{"name": "pattern"}}.forOperators(),
	"listPatternRevisions": {path: map[string]string{"name": "pattern"}},
	"revertPattern": foreignReference{
		path: map[string]string{"name": "pattern"}, bodies: []string{`{}`},
	}.forOperators(),
	"listWebhooks":    listing().forOperators(),
	"getWebhook":      webhook().forOperators(),
	"setWebhook":      webhook(`{"url":"https://192.0.32.8/","events":["refused"],"paused":true}`).forOperators(),
	"deleteWebhook":   webhook().forOperators(),
	"rotateWebhook":   webhook(`{}`).forOperators(),
	"testWebhook":     webhook(`{}`).forOperators(),
	"getNamespace":    listing(),
	"setNamespace":    body(`{"near_misses":true}`).forOperators(),
	"deleteNamespace": foreignReference{path: map[string]string{"name": "namespace"}}.forOperators(),

	"getHealth":    {open: true, process: true},
	"getRoot":      {open: true, process: true},
	"getReadiness": {open: true, process: true},
	"getMetrics":   {process: true},
	"getOpenAPI":   {open: true, process: true},
	"getGuide":     {open: true, process: true},
}

var served struct {
	once sync.Once
	list []operation
}

// operations returns those that the server lists. One that crossings does not know fails, and
// so does one that it knows and the server lacks.
func (s *site) operations(t *testing.T) []operation {
	t.Helper()
	served.once.Do(func() {
		var doc struct {
			Paths map[string]map[string]json.RawMessage
		}
		if err := json.Unmarshal(
			[]byte(s.send(t, ask{method: "GET", path: "/openapi.json"}).want(200).raw), &doc,
		); err != nil {
			t.Fatal(err)
		}
		known := 0
		for path, item := range doc.Paths {
			for method, text := range item {
				var op struct {
					OperationID string
					RequestBody json.RawMessage
				}
				if method == "parameters" {
					continue
				}
				if err := json.Unmarshal(text, &op); err != nil {
					t.Fatal(path, method, err)
				}
				c, ok := crossings[op.OperationID]
				if !ok {
					t.Fatalf(
						"%s %s (%s) is an operation that no attack knows: say in crossings how it names what belongs to a tenant",
						method, path, op.OperationID,
					)
				}
				known++
				served.list = append(
					served.list, operation{op.OperationID, strings.ToUpper(method), path, op.RequestBody != nil, c},
				)
			}
		}
		if known != len(crossings) {
			t.Fatalf("crossings has %d operations, and the server %d", len(crossings), known)
		}
		slices.SortFunc(served.list, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	})
	if len(served.list) == 0 {
		t.Fatal("there are no operations")
	}
	return served.list
}

// template is the path of an operation with the words of its things.
func (op *operation) template() string {
	path := op.path
	for variable, word := range op.foreignReference.path {
		path = strings.ReplaceAll(path, "{"+variable+"}", "{"+word+"}")
	}
	return path
}

// trial is one way to name something of a tenant.
type trial struct{ path, body string }

// trials are all that are known of an operation; the first one is the plainest.
func (op *operation) trials() (list []trial) {
	path := op.template()
	bodies := op.bodies
	if len(bodies) == 0 {
		bodies = []string{""}
	}
	for _, b := range bodies {
		list = append(list, trial{path, b})
	}
	if op.id == "getDifferences" { // it needs its query
		list = nil
	}
	for _, q := range op.query {
		list = append(list, trial{path + "?" + q, bodies[0]})
	}
	return list
}

// call makes a trial of an operation with some things.
func (op *operation) call(tr trial, w things, as string) ask {
	a := ask{method: op.method, path: w.fill(tr.path), body: w.fill(tr.body), as: as}
	for _, text := range op.header {
		a.header = append(a.header, w.fill(text))
	}
	if op.kind != "" {
		a.header = append(a.header, "Content-Type", op.kind)
	}
	return a
}

// credential returns the credential that a tenant's call of the operation needs.
func (op *operation) credential(s *site, tenant string) string {
	switch {
	case slices.Contains([]string{"rotateFenceKeys", "moveNamespace", "deleteMove", "drainServer", "addShards"}, op.id):
		return s.servers[tenant]
	case op.only:
		return s.operators[tenant]
	}
	return s.secrets[tenant]
}

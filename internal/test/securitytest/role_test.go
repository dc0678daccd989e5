package securitytest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/protomessage"
	"github.com/interlockdev/interlock/server"
)

// rightsRow is a row of the table of rights in docs/security.md, which states the expectations
// of this file.
type rightsRow struct {
	right                   string
	roles                   []string
	calls, stream, commands []string
}

const securityPage = "../../../docs/security.md"

// readRights returns the table of rights.
func readRights(t *testing.T) (rows []rightsRow) {
	t.Helper()
	page, err := os.ReadFile(securityPage)
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| right | roles | HTTP | session stream | commands |\n")
	if !found {
		t.Fatalf("%s has no table of rights", securityPage)
	}
	command := regexp.MustCompile("`([^`]+)`")
	for _, line := range strings.Split(table, "\n")[1:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 5 {
			t.Fatalf("the row has %d cells: %s", len(cells), line)
		}
		row := rightsRow{
			strings.TrimSpace(cells[0]), strings.Fields(cells[1]), strings.Fields(cells[2]), strings.Fields(cells[3]), nil,
		}
		for _, m := range command.FindAllStringSubmatch(cells[4], -1) {
			row.commands = append(row.commands, m[1])
		}
		rows = append(rows, row)
	}
	if len(rows) < 5 {
		t.Fatalf("%s has %d rights", securityPage, len(rows))
	}
	return rows
}

// rowOf returns the row that has a name in one of its columns; "" is for none.
func rowOf(t *testing.T, rows []rightsRow, name string, column func(*rightsRow) []string) *rightsRow {
	t.Helper()
	var found *rightsRow
	for i := range rows {
		if slices.Contains(column(&rows[i]), name) {
			if found != nil {
				t.Errorf("%s stands in two rows of the table of rights", name)
			}
			found = &rows[i]
		}
	}
	return found
}

// caller is a credential to try, and the namespace that it asks for.
type caller struct {
	role   string // "" for one that may do nothing in acme
	secret string
	asks   string
}

// callers adds a credential of each role to the server's file, and returns them with one
// of another tenant and none at all.
func (s *site) callers(t *testing.T) (list []caller) {
	t.Helper()
	lines, err := os.ReadFile(s.credentials)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range strings.Split(interlock.AllRoles.String(), ",") {
		p := interlock.Principal{Name: "only-" + role}
		p.Roles, _ = interlock.ParseRole(role)
		if role == "worker" {
			p.Queues = []string{"g-queue"}
		}
		secret, line, err := server.NewCredential(p, acme)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line+"\n"...)
		list = append(list, caller{role: role, secret: secret})
	}
	s.reload(t, string(lines))
	return append(list, caller{secret: s.operators[rival], asks: acme}, caller{})
}

// The answers to a caller without the right to an operation, and to one with it.
func (c *caller) isRefused(code string) bool {
	if c.secret == "" {
		return code == string(interlock.CodeUnauthenticated)
	}
	return code == string(interlock.CodeForbidden)
}

// queue is one that a caller with the right to work may pull from.
func (c *caller) queue() string {
	if c.role == "merger" || c.role == "checker" {
		return "check.g-queue"
	}
	return "g-queue"
}

// check compares an answer with the table.
func (c *caller) check(t *testing.T, what string, row *rightsRow, code string) {
	t.Helper()
	role := c.role
	switch {
	case c.secret == "":
		role = "no credential"
	case c.asks != "":
		role = "another tenant"
	}
	allowed := c.role != "" && slices.Contains(row.roles, c.role)
	if refused := c.isRefused(code); refused == allowed {
		t.Errorf("%s by %s: code %q, and the table says that it is allowed: %v", what, role, code, allowed)
	}
}

// TestRoles tries each cell of the table of rights: every HTTP operation, every operation
// of the session stream and every command, with a credential of each role, with another
// tenant's and with none.
func TestRoles(t *testing.T) {
	s := newSite(t)
	rows := readRights(t)
	callers := s.callers(t)
	t.Run("HTTP", func(t *testing.T) { s.tryCalls(t, rows, callers) })
	t.Run("stream", func(t *testing.T) { s.tryStream(t, rows, callers) })
	t.Run("commands", func(t *testing.T) { s.tryCommands(t, rows, callers) })
}

// absent names what acme does not have, so that an allowed call changes nothing.
func absent() things {
	id := strings.Repeat("0123456789abcdef", 2)
	return things{
		"key": "g:1", "queue": "g-queue", "pattern": "g-pattern", "file": "g.txt", "agent": "g-agent", "namespace": acme,
		"digest": strings.Repeat(id, 2),
		"lease":  "l_" + id, "parked": "l_" + id, "ticket": "t_" + id, "session": "s_" + id, "effect": "e_" + id,
		"task": "q_" + id, "run": "r_" + id,
	}
}

func (s *site) tryCalls(t *testing.T, rows []rightsRow, callers []caller) {
	for _, op := range s.operations(t) {
		if op.open {
			continue
		}
		row := rowOf(t, rows, op.id, func(r *rightsRow) []string { return r.calls })
		if row == nil {
			t.Errorf("operation %s is not in the table of rights", op.id)
			continue
		}
		for _, c := range callers {
			w := absent()
			w["queue"] = c.queue()
			a := op.call(op.trials()[0], w, c.secret)
			if c.asks != "" {
				a.header = append(a.header, "Interlock-Namespace", c.asks)
			}
			c.check(t, op.id, row, s.send(t, a).str("code"))
		}
		if op.id == "setQueue" { // the right to pause an existing queue depends on the queue
			s.operator(t, acme, "DELETE", "/v1/queues/g-queue", "").want(200)
		}
	}
}

func (s *site) tryStream(t *testing.T, rows []rightsRow, callers []caller) {
	body := protomessage.File(t).Messages().ByName("Op").Oneofs().ByName("body")
	if body == nil || body.Fields().Len() < 40 {
		t.Fatal("the session stream has hardly any operation")
	}
	for _, c := range callers {
		if c.role == "" {
			md := []string{"interlock-namespace", acme}
			if c.secret != "" {
				md = append(md, "authorization", "Bearer "+c.secret)
			}
			if code := s.stream(t, md...).ends(); !c.isRefused(string(code)) {
				t.Errorf("a stream of %+v ends with %q", c, code)
			}
			continue
		}
		for i := range body.Fields().Len() {
			field := body.Fields().Get(i)
			name := string(field.Name())
			row := rowOf(t, rows, name, func(r *rightsRow) []string { return r.stream })
			if row == nil {
				t.Errorf("operation %s of the session stream is not in the table of rights", name)
				continue
			}
			l := s.stream(t, "authorization", "Bearer "+c.secret)
			_ = l.stream.SendMsg(emptyOp(t, field, c.queue()))
			c.check(t, name, row, l.code(1))
		}
	}
}

// emptyOp returns a frame with an operation that has nothing in it, but for the queue of a pull.
func emptyOp(t *testing.T, field protoreflect.FieldDescriptor, queue string) protoreflect.ProtoMessage {
	t.Helper()
	frame := protomessage.ClientFrame(t, "ops { seq: 1 }")
	op := frame.Get(frame.Descriptor().Fields().ByName("ops")).List().Get(0).Message()
	inner := op.NewField(field)
	if f := field.Message().Fields().ByName("queue"); f != nil && f.Kind() == protoreflect.StringKind {
		inner.Message().Set(f, protoreflect.ValueOfString(queue))
	}
	op.Set(field, inner)
	return frame
}

// code returns the code of the answer to an operation, or that with which the stream ends.
func (l *link) code(seq uint64) string {
	l.t.Helper()
	for {
		frame, err := l.receive()
		if err != nil {
			return strings.Join(l.stream.Trailer().Get("interlock-code"), " ")
		}
		for _, r := range frame.Replies {
			if r.Seq == seq {
				return string(r.Code)
			}
		}
	}
}

// tenantless are the commands that work on files, that bring a server of their own, or that carry calls
// of an agent, each with the right that it needs.
var tenantless = []string{
	"guard", "demo", "admin journal verify", "admin journal dump", "context", "health", "help", "options", "credential",
	"bench", "serve",
	"mcp", "hooks", "init", "version", "admin backup verify",
	"admin migrate", "admin restore", "file", "fence keys", "fence verify", "account check", "account verify",
	"merge freeze", "merge thaw", // they need two roles: engine/testdata/rights/reserved.txt
	"merge serve", "merge compare", "merge report", "merge verify", "merge replay", "workspace list", "workspace prune",
	"workspace diff", "workspace sandbox", "workspace databases", "workspace migrate", "workspace hook",
}

// arguments make each command one that an allowed caller ends soon.
var arguments = map[string]string{
	"lease list": "", "agent list": "", "status": "",
	"key list": "", "key get": "g:1", "lease get": "", "why": "g:1", "key waits": "", "key hot": "",
	"at": "--index 1 waits", "top": "--frames 1", "report": "",
	"log": "--from 1", "trace export": "", "key contention": "",
	"state get": "g:1", "state history": "g:1", "state list": "", "state version": "g:1",
	"state watch": "g:1 --from 999999",
	"effect get":  "{digest}", "effect list": "", "task list": "", "approval list": "", "approval get": "{task}",
	"task get": "{task}", "task wait": "{task}", "queue list": "",
	"queue get": "g-queue", "message log": "g:1", "writer list": "", "workflow list": "", "pattern get": "g",
	"pattern list": "", "pattern revisions": "g",
	"namespace get": "", "admin journal head": "", "admin backup": "--to -", "admin shards": "", "admin members": "",
	"admin move": "g --to 0", "admin drain": "http://g",
	"admin shards add": "g",

	"unlock": "", "lease renew": "", "lease park": "", "lease resume": "", "fence sign": "",

	"lock": "g:1 --wait 0", "run": "g:2 --wait 0 -- true", "lease convert": "g:1", "barrier arrive": "",
	"pool join": "g:3 --parts 1 -- false", "agent wait": "nobody --wait 1ms",
	"state commit": "--file {commit}", "state set": "g:4 1", "state add": "g:5 1", "state merge": "g:4 {}",
	"state delete": "g:4",
	"effect claim": "--tool g --target g", "effect done": "", "effect unknown": "", "effect cancel": "",
	"effect reconcile": "{digest} --did-not-happen", "effect run": "--tool g --target h -- true",
	"workflow start": "--org g --wait 0", "workflow end": "{lease}",

	"task create": "g-queue {}", "message send": "g:1 k {}", "message ask": "g:1 k {} --wait 1s",
	"task cancel": "{task}", "task reschedule": "{task}", "task replay": "{task}", "task delete": "{task}",
	"task pull": "g-queue", "task ack": "", "task nack": "", "task ask": "sure?",
	"task work":        "g-queue --idle 0 -- true",
	"approval approve": "{task} --by g", "approval deny": "{task} --by g", "lease revoke": "g:held-{role} --yes",
	"lease request-yield": "g:held-{role}",

	"account serve": "--policy {accounts}", "account export": "--queue g-queue",
	"account setup": "--policy {accounts}",

	"pattern set": "g g-shape:{id}", "pattern delete": "g", "pattern revert": "g --to 1",
	"namespace set":    "--near-misses",
	"namespace delete": "acme", "effect delete": "--older-than 1h", "queue set": "g-made",
	"queue delete": "g-unused", "queue pause": "g-unused", "queue drain": "g-unused", "queue resume": "g-unused",
	"webhook set": "g https://192.0.32.8/ --events refused --paused", "webhook get": "g", "webhook list": "",
	"webhook rotate": "g", "webhook test": "g", "webhook delete": "g",
	"merge list": "g/main", "merge show": "g/main {task}", "merge why": "g/main {task}",
	"merge withdraw": "g/main {task}", "merge pause": "g/main", "merge resume": "g/main",

	"workspace new":    "n-{role} --repo {repo} --root {root} --kind worktree --min-free 0",
	"workspace run":    "w-{role} --root {root} --wait 0 -- true",
	"workspace sync":   "w-{role} --root {root}",
	"workspace submit": "w-{role} --root {root}",
	"workspace repair": "w-{role} --repo {repo} --root {root}",
	"workspace rescue": "w-{role} --root {root}",
	"workspace delete": "d-{role} --root {root}",

	"writer set":    "g --queue g-unused",
	"writer delete": "g", "fence rotate": "",
}

func (s *site) tryCommands(t *testing.T, rows []rightsRow, callers []caller) {
	type try struct {
		name string
		row  *rightsRow
		c    caller
	}
	s.write(t, filepath.Join(s.dir, "..", "commit.json"), `{"writes":[{"key":"g:c","add":1}]}`)
	s.write(t, filepath.Join(s.dir, "..", "accounts.json"),
		`{"shape":"g-account:{id}","queue":"g-accounts","pattern":"g-account","writers":["nobody"],"accounts":[{"keys":"*","policy":{"currency":"EUR"}}]}`)
	s.operator(t, acme, "DELETE", "/v1/patterns/g-pattern", "") // it would close the namespace to other keys
	for _, c := range callers {
		s.agent(
			t, acme, "POST", "/v1/leases", `{"ttl_ms":600000,"claims":[{"key":"g:held-`+c.place()+`"}],"on_conflict":"skip"}`,
		).want(200)
	}
	s.makeWorkspaces(t, callers)
	tries := make(chan try)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for x := range tries {
				x.c.check(t, "interlock "+x.name, x.row, s.codeOf(t, x.c, x.name))
			}
		})
	}
	for _, name := range commandNames(t) {
		if slices.ContainsFunc(
			tenantless, func(group string) bool { return name == group || strings.HasPrefix(name, group+" ") },
		) {
			continue
		}
		row := rowOf(t, rows, name, func(r *rightsRow) []string { return r.commands })
		if _, known := arguments[name]; row == nil || !known {
			t.Errorf("interlock %s is not in the table of rights, or not in arguments", name)
			continue
		}
		for _, c := range callers {
			tries <- try{name, row, c}
		}
	}
	close(tries)
	workers.Wait()
}

// makeWorkspaces makes a repository, and the workspaces that each caller changes and deletes.
func (s *site) makeWorkspaces(t *testing.T, callers []caller) {
	t.Helper()
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main", s.repo()},
		{
			"-C", s.repo(), "-c", "user.name=g", "-c", "user.email=g@example.org", "commit", "--quiet", "--allow-empty",
			"--message=g",
		},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git: %v\n%s", err, out)
		}
	}
	var agent caller
	for _, c := range callers {
		if c.role == "agent" {
			agent = c
		}
	}
	for _, c := range callers {
		for _, kind := range []string{"w", "d"} {
			name := kind + "-" + c.place()
			args := []string{"workspace", "new", name, "--repo", s.repo(), "--root", s.workspaces(), "--kind", "worktree"}
			if code := s.endOf(t, agent, append(args, "--min-free", "0")); code != "exit code 0" {
				t.Fatalf("workspace %s: %s", name, code)
			}
		}
	}
}

func (s *site) repo() string { return filepath.Join(s.dir, "..", "g") }

func (s *site) workspaces() string { return filepath.Join(s.dir, "..", "workspaces") }

// place is the caller's role as a part of a workspace's name.
func (c *caller) place() string {
	switch {
	case c.secret == "":
		return "nobody"
	case c.asks != "":
		return "other"
	}
	return c.role
}

// commandNames returns the commands of the reference that have no commands below them,
// and those that do something without one.
func commandNames(t *testing.T) (names []string) {
	t.Helper()
	pages, err := filepath.Glob("../../../docs/reference/cli*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no reference of the command line", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range strings.Split(string(text), "\n## interlock ")[1:] {
			name, help, _ := strings.Cut(section, "\n")
			if usage := "\n  interlock " + name + " COMMAND"; !strings.Contains(help, usage) {
				names = append(names, name)
			}
		}
	}
	if len(names) < 80 {
		t.Fatalf("the reference has %d commands", len(names))
	}
	slices.Sort(names) // what sets an account up comes after what serves it as it is
	return names
}

var problemCode = regexp.MustCompile(`"code":"([a-z_]+)"`)

// codeOf runs a command as a caller and returns the code that it ends with: "forbidden" or
// "unauthenticated" for exit code 77, the code in its answer for any other.
func (s *site) codeOf(t *testing.T, c caller, name string) string {
	args := append([]string{"-o", "json"}, strings.Fields(name)...)
	w := absent()
	w["role"], w["commit"], w["accounts"] = c.place(), filepath.Join(
		s.dir, "..", "commit.json",
	), filepath.Join(s.dir, "..", "accounts.json")
	w["repo"], w["root"] = s.repo(), s.workspaces()
	if name == "task pull" || name == "task work" {
		arguments := strings.Replace(arguments[name], "g-queue", c.queue(), 1)
		return s.endOf(t, c, append(args, strings.Fields(w.fill(arguments))...))
	}
	return s.endOf(t, c, append(args, strings.Fields(w.fill(arguments[name]))...))
}

// endOf runs a command with its arguments as a caller: see codeOf.
func (s *site) endOf(t *testing.T, c caller, args []string) string {
	t.Helper()
	w := absent()
	cmd := exec.CommandContext(t.Context(), launchtest.Binary(t), args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "INTERLOCK_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "NO_COLOR=1", "INTERLOCK_URL=https://"+s.server.HTTP, "INTERLOCK_GRPC="+s.server.GRPC, "INTERLOCK_TLS_CA="+s.certificate,
		"INTERLOCK_CREDENTIAL="+c.secret, "INTERLOCK_NAMESPACE="+c.asks, "INTERLOCK_LEASE="+w["lease"],
		"INTERLOCK_EFFECT="+w["effect"])
	out, _ := cmd.CombinedOutput()
	const exitForbidden = 77
	code := cmd.ProcessState.ExitCode()
	switch m := problemCode.FindSubmatch(out); {
	case m != nil:
		return string(m[1])
	case code == exitForbidden && c.secret == "":
		return string(interlock.CodeUnauthenticated)
	case code == exitForbidden:
		return string(interlock.CodeForbidden)
	}
	return fmt.Sprintf("exit code %d", code)
}

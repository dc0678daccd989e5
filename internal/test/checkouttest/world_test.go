package checkouttest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/hookclient"
	"github.com/interlockdev/interlock/internal/test/search"
	"github.com/interlockdev/interlock/internal/test/tools"
)

var (
	all   = flag.Bool("all", false, "go on after a fault")
	seeds = flag.Uint64("seeds", 0, "try so many seeds, in place of the form's")
	first = flag.Uint64("first", 0, "the first of these seeds")
)

// agent is a session of a harness.
type agent struct {
	*harness
	session string
	name    string          // as leases have it
	held    map[string]bool // the files that it was let edit in this turn
}

// world is a checkout with its agents, for one seed.
type world struct {
	*testing.T
	*maker
	seed    uint64
	room    *room
	tree    *tree
	server  *process
	agents  []*agent
	query   string
	unknown string
	calls   int
	trace   []string
	count   *count
}

// count is what all worlds together have seen.
type count struct {
	commands, refused int
	took              int // commands that changed, committed or moved what another session held
	reads             int
	idle              int // refused commands that changed nothing at all
	beyond            map[string]int
	narrowed, kills   int
	remedies          int
}

// passed is how many of those that took something were let through.
func (c *count) passed() (n int) {
	for _, k := range c.beyond {
		n += k
	}
	return n
}

// exceeds reports whether more passed than a share of them explains: by three standard deviations, which are wide for
// few commands.
func (c *count) exceeds(share float64) bool {
	n := float64(c.took)
	return float64(c.passed()) > share*n+3*math.Sqrt(n*share*(1-share))
}

// maxShare returns the ratchet, which docs/hooks.md has: how many of the commands that take something of another
// session may be let through, in per cent.
func maxShare(t *testing.T) float64 {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(tools.Root(), "docs/hooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`at most (\d+) % of the\s+commands`).FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/hooks.md has no share of the commands that pass")
	}
	share, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return share
}

// TestShare checks that the ratchet holds for few commands, too, and that chance does not trip it.
func TestShare(t *testing.T) {
	for _, tt := range []struct {
		took, passed int
		want         bool
	}{
		{0, 0, false}, {25, 3, false}, {25, 7, false}, {25, 8, true}, {100, 19, false}, {100, 20, true}, {1600, 197, true},
	} {
		c := &count{took: tt.took, beyond: map[string]int{ofScript: tt.passed}}
		if got := c.exceeds(0.1); got != tt.want {
			t.Errorf("%d of %d commands pass: more than a tenth is %t", tt.passed, tt.took, got)
		}
	}
}

func TestSharedCheckout(t *testing.T) {
	from, to := search.SeedsOfNight(t, 0, 6, 40, 400)
	if *seeds > 0 {
		from, to = *first, *first+*seeds
	}
	r := newRoom(t)
	template := newTree(t, filepath.Join(r.dir, "template"))
	table := rows(t)
	c := &count{beyond: map[string]int{}}
	confined := "by their words alone"
	if r.sealed {
		confined = "by bubblewrap, too"
	}
	server := &process{t: t, journal: filepath.Join(t.TempDir(), "journal")}
	server.start()
	defer server.kill()
	for seed := from; seed < to; seed++ {
		w := &world{
			T: t, maker: &maker{rand.New(rand.NewPCG(seed, 41)), table}, seed: seed, room: r, server: server, count: c,
			tree: &tree{t: t, dir: filepath.Join(r.dir, fmt.Sprintf("web%d", seed))},
		}
		copyTree(t, template.dir, w.tree.dir)
		w.run()
		remove(t, w.tree.dir)
		if t.Failed() && !*all {
			break
		}
	}
	share := 100 * float64(c.passed()) / float64(max(c.took, 1))
	t.Logf("%d commands, confined %s; %d took something that another session held: %d were refused, and %d (%.1f %%) "+
		"passed, of the remainder: %v", c.commands, confined, c.took, c.took-c.passed(), c.passed(), share, c.beyond)
	t.Logf("%d refused, %d of them without an effect; %d reads and dry runs; %d commits narrowed, %d remedies run, "+
		"%d kills",
		c.refused, c.idle, c.reads, c.narrowed, c.remedies, c.kills)
	if most := maxShare(t) / 100; c.exceeds(most) {
		t.Errorf("%.1f %% of the commands that take something of another session pass: want %.0f %%", share, 100*most)
	}
	if c.took < 5 || c.reads < 5 {
		t.Errorf("the commands took something %d times, and read %d times: the model tries nothing", c.took, c.reads)
	}
}

const steps = 45

func (w *world) run() {
	for i := range 4 {
		h := &harnesses[(int(w.seed)+i)%len(harnesses)]
		session := fmt.Sprintf("%04d-%08d", w.seed, i)
		w.agents = append(w.agents, &agent{h, session, h.name + "/" + session[len(session)-8:], map[string]bool{}})
		w.agents[i].name = h.name + "/" + lastEight(session)
	}
	w.unknown = one(w.maker, "allow", "allow", "allow", "deny", "ask")
	w.query = "?wait_s=0&unknown=" + w.unknown
	if w.IntN(2) == 0 {
		w.query += "&commits=own"
	}
	for range steps {
		if w.Failed() && !*all {
			return
		}
		a := one(w.maker, w.agents...)
		switch n := w.IntN(100); {
		case n < 30:
			w.edit(a, w.file())
		case n < 38:
			w.turn(a)
		case n < 41:
			w.note("the server is killed")
			w.server.kill()
			w.server.start()
			w.count.kills++
		default:
			o := w.next()
			if len(o.about) > 0 && w.IntN(10) < 6 {
				w.edit(one(w.maker, w.agents...), one(w.maker, o.about...))
			}
			w.command(a, o, true)
		}
	}
	for _, a := range w.agents {
		w.turn(a)
	}
	if left := w.others(&agent{}); len(left) > 0 {
		w.fault("all turns have ended, and leases are left: %v", left)
	}
}

func lastEight(session string) string { return session[len(session)-8:] }

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// fault fails the test with all that happened in this world.
func (w *world) fault(format string, args ...any) {
	w.Helper()
	if *all {
		w.Errorf("FAULT seed %d: %s", w.seed, fmt.Sprintf(format, args...))
		return
	}
	w.Errorf("seed %d: %s\n%s", w.seed, fmt.Sprintf(format, args...), strings.Join(w.trace, "\n"))
}

// send sends an event, as its harness does that runs interlock-hook. It is sent again after a kill in between, as a
// person's next try would be.
func (w *world) send(a *agent, body map[string]any) answer {
	w.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.Fatal(err)
	}
	if w.IntN(120) == 0 { // while the event is on its way
		sent, began := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(sent)
			close(began)
			_, _ = w.post(a, text) // it may get an answer, or none
		}()
		<-began
		for range w.IntN(4) { // the kill meets the event at one moment or another
			_, _ = http.Get(w.server.base + "/v1/status")
		}
		w.server.kill()
		<-sent
		w.server.start()
		w.count.kills++
		w.note("the server was killed at an event of %s", a.name)
	}
	got, err := w.post(a, text)
	if err != nil {
		w.Fatalf("seed %d: %v\n%s", w.seed, err, strings.Join(w.trace, "\n"))
	}
	return read(got)
}

func (w *world) post(a *agent, body []byte) ([]byte, error) {
	q, err := http.NewRequestWithContext(
		w.Context(), http.MethodPost, w.server.base+"/v1/hooks/"+a.harness.name+w.query, bytes.NewReader(body),
	)
	if err != nil {
		return nil, err
	}
	for _, h := range hookclient.Where(body) {
		q.Header.Add(h.Name, h.Value)
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s %d: %s", a.harness.name, res.StatusCode, text)
	}
	return text, err
}

// ask asks whether a tool may run, at times twice, as harnesses that share settings do.
func (w *world) ask(a *agent, o *occasion) answer {
	w.Helper()
	w.calls++
	o.session, o.dir, o.call = a.session, w.tree.dir, fmt.Sprintf("call-%d-%d", w.seed, w.calls)
	got := w.send(a, a.event(o))
	if w.IntN(8) == 0 {
		if again := w.send(a, a.event(o)); again.refused != got.refused && !stale(&got) && !stale(&again) {
			w.fault("%s: the answer to %+v was %+v, and then %+v", a.name, o, got, again)
		}
	}
	return got
}

// stale reports whether an edit is refused once because the agent has to read the file again.
func stale(a *answer) bool {
	return strings.Contains(a.reason, "Nothing was written") || strings.Contains(a.reason, "You are ")
}

func (w *world) edit(a *agent, name string) {
	w.Helper()
	path := filepath.Join(w.tree.dir, name)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return
	}
	o := &occasion{file: path}
	got := w.ask(a, o)
	w.note("%s edits %s: %s", a.name, name, verdict(&got))
	if got.refused {
		return
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return
	}
	_ = os.Chmod(path, 0o600) // one that is not there is made
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		w.Fatal(err)
	}
	fmt.Fprintf(f, "half of a change of %s\n", a.name)
	if err := f.Close(); err != nil {
		w.Fatal(err)
	}
	for _, other := range w.agents {
		if other != a && other.held[name] {
			w.fault("%s may edit %s, which %s holds", a.name, name, other.name)
		}
	}
	a.held[name] = true
	o.after = true
	w.send(a, a.event(o))
}

func (w *world) turn(a *agent) {
	w.send(a, a.harness.turn(a.session, w.tree.dir))
	clear(a.held)
	w.note("%s ends its turn", a.name)
}

func verdict(a *answer) string {
	switch {
	case a.refused:
		return "refused: " + a.reason
	case a.asked:
		return "asked: " + a.reason
	case a.command != "":
		return "narrowed: " + a.command
	}
	return "let through " + a.body
}

// others are the files that other sessions hold, by the model and by the server.
func (w *world) others(a *agent) map[string]string {
	w.Helper()
	held := map[string]string{}
	for _, other := range w.agents {
		for name := range other.held {
			if other != a {
				held[name] = other.name
			}
		}
	}
	res, err := http.Get(w.server.base + "/v1/leases?limit=1000")
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	var list struct {
		Leases []struct {
			Agent  string `json:"agent"`
			Claims []struct {
				Key string `json:"key"`
			} `json:"claims"`
			State string `json:"state"`
		} `json:"leases"`
	}
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		w.Fatal(err)
	}
	known := map[string]bool{}
	for _, lease := range list.Leases {
		for _, claim := range lease.Claims {
			first, name, _ := strings.Cut(claim.Key, "/")
			ours := slices.ContainsFunc(w.agents, func(b *agent) bool { return b.name == lease.Agent })
			if !strings.HasPrefix(first, "repo:") || !ours {
				continue
			}
			known[name] = true
			if lease.Agent != a.name {
				held[name] = lease.Agent
			}
		}
	}
	for name, holder := range held {
		if !known[name] {
			w.fault("the server has lost the lease of %s on %s", holder, name)
		}
	}
	return held
}

// command has an agent run a command, if it is let. remedy lets it run the remedy of a refusal, too.
func (w *world) command(a *agent, o order, remedy bool) {
	w.Helper()
	if loose(o.text) != "" {
		return
	}
	w.count.commands++
	held := w.others(a)
	at := &occasion{command: o.text}
	got := w.ask(a, at)
	w.note("%s runs %s: %s", a.name, &o, verdict(&got))
	still := w.others(a) // a file that was kept for another agent may have become free meanwhile
	maps.DeleteFunc(held, func(name, holder string) bool { return still[name] != holder })
	text := o.text
	if got.command != "" {
		w.count.narrowed++
		text = got.command
		if loose(text) != "" {
			return
		}
	}
	edited := one(w.maker, append(sorted(held), w.file())...)
	backup := w.tree.dir + ".before"
	copyTree(w.T, w.tree.dir, backup)
	before := w.tree.state()
	w.room.run(w.tree.dir, text, edited)
	after := w.tree.state()
	taken := w.taken(held, before, after, backup)
	refused := got.refused || got.asked
	_, gone := os.Stat(filepath.Join(w.tree.dir, ".git/HEAD")) // a checkout without git has keys of another form
	undone := refused || gone != nil || taken != "" && (o.beyond == "" || *all)
	if refused {
		w.count.refused++
	}
	if undone {
		putBack(w.T, backup, w.tree.dir)
	} else {
		remove(w.T, backup)
		at.after = true
		w.send(a, a.event(at))
	}
	if o.reads {
		w.count.reads++
		if refused {
			w.fault("%s only reads, and is refused: %s", &o, got.reason)
		}
	}
	switch {
	case taken == "" && refused && len(changed(before, after)) == 0 && before.last == after.last &&
		before.index == after.index:
		w.count.idle++
	case taken == "":
	case refused:
		w.count.took++
	case o.beyond == "":
		w.fault("%s of %s: %s", &o, a.name, taken)
	case w.unknown != "allow" && o.beyond != ofFolder:
		w.fault("%s of %s passes with unknown=%s: %s", &o, a.name, w.unknown, taken)
	default:
		w.count.took++
		w.count.beyond[o.beyond]++
		for _, other := range w.agents { // its holders find out
			for name := range other.held {
				if slices.Contains(changed(before, after), name) && other != a {
					delete(other.held, name)
				}
			}
		}
	}
	if next := got.remedy(); next != "" && remedy && w.IntN(3) == 0 && loose(next) == "" && !w.Failed() {
		w.count.remedies++
		again := w.trace
		w.command(a, order{text: next}, false)
		if last := w.trace[len(again)]; strings.Contains(last, "refused: ") && !strings.Contains(last, "has other waiters") {
			w.fault("the remedy of %s is refused", &o)
		}
	}
}

// taken returns what a command did to something that other sessions hold, "" for nothing.
func (w *world) taken(held map[string]string, before, after state, backup string) string {
	for _, name := range changed(before, after) {
		if holder := held[name]; holder != "" {
			return fmt.Sprintf("%s, which %s holds, changed", name, holder)
		}
	}
	if len(held) == 0 {
		return ""
	}
	action := after.last
	if i := strings.IndexByte(action, '\t'); i >= 0 {
		action = action[i+1:]
	}
	switch {
	case before.head != after.head:
		return "HEAD is another branch: " + strings.TrimSpace(after.head)
	case before.last != after.last && strings.HasPrefix(action, "commit: "):
		ids := strings.Fields(after.last)
		for _, name := range w.tree.committed(ids[0], ids[1]) {
			if holder := held[name]; holder != "" && w.tree.has(ids[1]+":"+name, "half of a change of "+holder) {
				return fmt.Sprintf("the half change of %s, which %s holds, is committed", name, holder)
			}
		}
	case before.last != after.last && movedHead(after.last):
		return "HEAD has moved: " + action
	case before.index != after.index:
		stagedBefore := (&tree{w.T, backup}).staged()
		for name := range w.tree.staged() {
			half := "half of a change of " + held[name]
			if holder := held[name]; holder != "" && !stagedBefore[name] && w.tree.has(":"+name, half) {
				return fmt.Sprintf("%s, which %s holds, is staged", name, holder)
			}
		}
	}
	return ""
}

// movedHead reports whether a line of the log of HEAD has another commit than before.
func movedHead(line string) bool {
	ids := strings.Fields(line)
	return len(ids) > 1 && ids[0] != ids[1]
}

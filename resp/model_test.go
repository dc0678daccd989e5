package resp

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	modelSeed = flag.Uint64("seed", 0, "runs the model test with this seed alone")
	modelRuns = flag.Int("runs", 60, "how many seeds the model test runs")
)

// hold is the time from an agent's SET NX to its release, as the agent sees it.
type hold struct {
	key, value string
	agent      *modelAgent
}

type peerName string

// modelAgent is a process with a pool of connections.
type modelAgent struct {
	id      string // of the client, as the door may know it
	pool    []peerName
	unique  bool // its locks have values of their own, and it releases by them
	holding []*hold
}

// redisKey is a key as Redis has it.
type redisKey struct {
	value string
	of    *hold
	ends  time.Time
}

// model is what Redis would answer, and what is true.
type model struct {
	*rig
	random  *rand.Rand
	agents  []*modelAgent
	keys    map[string]redisKey
	overdue map[string][]*hold // of a key: holds that ran out, and that were not released since
	log     []string
	tally   map[string]int
}

// TestModel: agents with pools of connections lock, renew and release as programs of Redis do, some too late. The door
// answers as Redis, except that a release never ends the lock of another holder, and is refused in words where it
// might.
func TestModel(t *testing.T) {
	first, runs := uint64(1), *modelRuns
	if *modelSeed > 0 {
		first, runs = *modelSeed, 1
	}
	tally := map[string]int{}
	for seed := first; seed < first+uint64(runs); seed++ {
		inBubble(t, Config{}, func(r *rig) {
			m := &model{
				rig: r, random: rand.New(rand.NewPCG(seed, 1)), keys: map[string]redisKey{},
				overdue: map[string][]*hold{}, tally: tally,
			}
			m.begin()
			for range 150 {
				m.step()
				if r.Failed() {
					r.Logf("seed %d:\n%s", seed, strings.Join(m.log[max(0, len(m.log)-25):], "\n"))
					return
				}
			}
		})
		if t.Failed() {
			return
		}
	}
	if *modelSeed == 0 {
		for _, what := range []string{"set", "released", "gone", "unclear", "renewed", "refused"} {
			if tally[what] < runs {
				t.Errorf("%s: only %d times", what, tally[what])
			}
		}
	}
}

func (m *model) begin() {
	for i := range 2 + m.random.IntN(3) {
		a := &modelAgent{id: "shared", unique: m.random.IntN(3) == 0}
		name := ""
		if m.random.IntN(2) == 0 {
			a.id = fmt.Sprint("agent-", i)
			name = a.id
		}
		for j := range 1 + m.random.IntN(3) {
			p := peerName(fmt.Sprintf("%d.%d", i, j))
			a.pool = append(a.pool, p)
			if name != "" {
				m.wants(string(p), "AUTH "+name+" any", "+OK")
			}
		}
		m.agents = append(m.agents, a)
	}
}

// ask sends a command over some connection of the agent, and checks that the answer is Redis's. With may, it may be
// refused as unclear or as another's.
func (m *model) ask(a *modelAgent, want string, may bool, words ...string) (got string) {
	m.Helper()
	p := string(a.pool[m.random.IntN(len(a.pool))])
	got = m.do(p, words...)
	m.log = append(m.log, fmt.Sprintf("%v %s (%s)> %.60q %.90s", time.Now().Format("05.000"), p, a.id, words, got))
	refused := strings.HasPrefix(got, "-ERR it is not clear whose key") || strings.HasPrefix(got, "-ERR key ")
	switch {
	case refused && !may:
		m.Errorf("%q is refused, and Redis answers %s: %s", words, want, got)
	case !refused && got != want:
		m.Errorf("%q: %s, want %s", words, got, want)
	}
	return got
}

func (m *model) step() {
	a := m.agents[m.random.IntN(len(m.agents))]
	key := fmt.Sprint("k", m.random.IntN(3))
	m.expire()
	now, taken := m.keys[key]
	switch m.random.IntN(8) {
	case 0, 1, 2:
		h := &hold{key: key, value: "LOCKED", agent: a}
		if a.unique {
			h.value = strconv.FormatUint(m.random.Uint64(), 16)
		}
		ms := 200 + m.random.IntN(4000)
		want := "+OK"
		if taken {
			want = "nil"
		}
		m.ask(a, want, false, "SET", key, h.value, "NX", "PX", strconv.Itoa(ms))
		if !taken {
			m.tally["set"]++
			m.keys[key] = redisKey{h.value, h, time.Now().Add(time.Duration(ms) * time.Millisecond)}
			a.holding = append(a.holding, h)
		}
	case 3, 4:
		m.release(a)
	case 5:
		m.renew(a)
	case 6:
		want := "nil"
		if taken {
			want = "$" + now.value
		}
		m.ask(a, want, false, "GET", key)
	default:
		m.pass(time.Duration(m.random.IntN(1500)) * time.Millisecond)
	}
}

// expire ends keys as Redis does.
func (m *model) expire() {
	for key, k := range m.keys {
		if !time.Now().Before(k.ends) {
			delete(m.keys, key)
			m.overdue[key] = append(m.overdue[key], k.of)
		}
	}
}

// doubtful reports whether a command of an agent about a key without its value may be refused: it may come from a
// holder that is late.
func (m *model) doubtful(h *hold) bool {
	return slices.ContainsFunc(m.overdue[h.key], func(late *hold) bool { return late.agent.id == h.agent.id })
}

func (m *model) release(a *modelAgent) {
	if len(a.holding) == 0 {
		return
	}
	i := m.random.IntN(len(a.holding))
	h := a.holding[i]
	a.holding = append(a.holding[:i:i], a.holding[i+1:]...)
	now, taken := m.keys[h.key]
	holds := taken && now.of == h
	may := taken && !a.unique && m.doubtful(h)
	want := ":0"
	if holds {
		want = ":1"
	}
	var got string
	switch {
	case a.unique && m.random.IntN(2) == 0:
		got = m.ask(a, want, false, "EVAL", kindText(m.T, "release-plain"), "1", h.key, h.value)
	case a.unique:
		got = m.ask(a, want, false, "DELEX", h.key, "IFEQ", h.value)
	default:
		got = m.ask(a, want, may, "DEL", h.key)
	}
	switch {
	case got == ":1":
		m.tally["released"]++
		delete(m.keys, h.key)
	case got == ":0":
		m.tally["gone"]++
		// Without its value, a release is taken for that of the first one that it may be.
		is := func(late *hold) bool { return late == h || !a.unique && late.agent.id == a.id }
		if i := slices.IndexFunc(m.overdue[h.key], is); i >= 0 {
			m.overdue[h.key] = slices.Delete(m.overdue[h.key], i, i+1)
		}
	default:
		m.tally["unclear"]++
		// It is not sent again. The door cannot know which hold of the client it was for.
	}
}

func (m *model) renew(a *modelAgent) {
	if len(a.holding) == 0 {
		return
	}
	h := a.holding[m.random.IntN(len(a.holding))]
	now, taken := m.keys[h.key]
	holds := taken && now.of == h
	want := ":0"
	if holds {
		want = ":1"
	}
	var got string
	switch {
	case a.unique:
		got = m.ask(a, want, false, "EVAL", kindText(m.T, "renew"), "1", h.key, h.value, "2000")
	default:
		if got = m.ask(a, want, taken && m.doubtful(h), "PEXPIRE", h.key, "2000"); strings.HasPrefix(got, "-") {
			m.tally["refused"]++
		}
	}
	if got == ":1" && holds {
		m.tally["renewed"]++
		now.ends = time.Now().Add(2 * time.Second)
		m.keys[h.key] = now
	}
}

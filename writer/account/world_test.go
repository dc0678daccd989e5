package account

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/search"
)

// world is the surroundings of Decide, at their worst: mailboxes that hand a message out again
// after a crash, writers with different clocks, messages about transfers that come in any
// order, twice, much later or never.
type world struct {
	t        *testing.T
	random   *rand.Rand
	now      time.Time
	policies map[interlock.Key]Policy
	keys     []interlock.Key
	states   map[interlock.Key]State // as the documents have them
	logs     map[interlock.Key][]interlock.LogEntry
	mail     []letter
	dead     []letter
	ids      int

	holds   map[string]interlock.Key // that were made, by their ids
	put     Money                    // into all accounts, less what was taken out
	moved   map[string]Money         // out, by requester, account and day, less the amounts returned
	counted map[string]string        // of a hold or a transfer: which of moved
}

// letter is a message in a mailbox.
type letter struct {
	to       interlock.Key
	id       interlock.TaskID
	kind     Kind
	by       string
	from     interlock.Key
	priority int
	body     []byte
	due      time.Time
	approved *Approval
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 4)), now: noon,
		policies: map[interlock.Key]Policy{}, states: map[interlock.Key]State{},
		logs:  map[interlock.Key][]interlock.LogEntry{},
		holds: map[string]interlock.Key{}, moved: map[string]Money{}, counted: map[string]string{},
	}
	for i := range 4 {
		key := interlock.Key(fmt.Sprintf("account:%d", i))
		p := Policy{
			Currency: "EUR", Floor: Money(w.random.IntN(3)-1) * 50, MaxAmount: 500, ApproveAbove: 200, HoldFor: time.Minute,
			TransferFor: 10 * time.Second, TransferTo: "account:",
			Rules: []Rule{{Requester: "a", DayOut: 400, DayIn: 2000, Urgency: 5}, {Requester: "b", Settle: true}},
		}
		if i == 3 && w.random.IntN(2) == 0 {
			p.Currency = "USD" // takes no transfers of the others
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		w.keys = append(w.keys, key)
		w.policies[key] = p
	}
	return w
}

func (w *world) id() interlock.TaskID {
	w.ids++
	return interlock.TaskID{14: byte(w.ids >> 8), 15: byte(w.ids)}
}

// pick chooses one of a list.
func pick[T any](w *world, list []T) T { return list[w.random.IntN(len(list))] }

// order sends a random command.
func (w *world) order() {
	kind := pick(w, kinds)
	o := Order{}
	switch kind {
	case Capture, Void:
		o.Hold = "q_unknown"
		if len(w.holds) > 0 {
			ids := make([]string, 0, len(w.holds))
			for id := range w.holds {
				ids = append(ids, id)
			}
			slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(b, a) })
			o.Hold = ids[w.random.IntN(min(len(ids), 4))] // one of the last
		}
		if kind == Capture && w.random.IntN(2) == 0 {
			o.Amount = Money(1 + w.random.IntN(100))
		}
	case Transfer:
		o.To, o.Amount = pick(w, w.keys), Money(1+w.random.IntN(120))
	case Credit:
		o.Amount = Money(1 + w.random.IntN(600))
	default:
		o.Amount = Money(1 + w.random.IntN(250))
	}
	to := pick(w, w.keys)
	if key, ok := w.holds[o.Hold]; ok {
		to = key
	}
	body, err := json.Marshal(o)
	if err != nil {
		w.t.Fatal(err)
	}
	m := letter{to: to, id: w.id(), kind: kind, by: pick(w, []string{"a", "b"}), body: body, due: w.now}
	if w.random.IntN(10) == 0 {
		m.priority = w.random.IntN(8)
	}
	w.mail = append(w.mail, m)
}

// deliver hands one message to a writer, which may crash before it has acknowledged it.
func (w *world) deliver(i int, faults bool) {
	m := w.mail[i]
	if faults && isLeg(m.kind) && w.random.IntN(20) == 0 {
		w.mail = slices.Delete(w.mail, i, i+1)
		w.dead = append(w.dead, m)
		return
	}
	before := w.states[m.to]
	cmd := read(m.to, m.id.String(), m.kind, m.body)
	cmd.By, cmd.From, cmd.Priority, cmd.Approved = m.by, m.from, m.priority, m.approved
	if w.random.IntN(5) == 0 {
		cmd.Advice = &Advice{Refuse: w.random.IntN(3) == 0, Amount: Money(w.random.IntN(700) - 50), Reason: "so it says"}
	}
	clock := w.now
	if faults {
		clock = clock.Add(time.Duration(w.random.IntN(4000)-2000) * time.Millisecond)
	}
	d := Decide(w.policies[m.to], before, cmd, clock)
	if d.Question != "" {
		if w.random.IntN(3) == 0 {
			w.mail = slices.Delete(w.mail, i, i+1) // a person said no
			return
		}
		w.mail[i].approved = &Approval{Question: d.Question, By: "ann"}
		return
	}
	w.advisedWithin(m, cmd, before, clock, d)
	if faults && w.random.IntN(5) == 0 {
		return // a crash: nothing has happened, and the message comes again
	}
	if !isLeg(m.kind) || !faults || w.random.IntN(10) > 0 {
		w.mail = slices.Delete(w.mail, i, i+1)
	} // else it comes twice
	w.settle(m, cmd, before, d)
}

// settle is the acknowledgement: state, reply, log and further messages at once.
func (w *world) settle(m letter, cmd Command, before State, d Decision) {
	doc := interlock.Document{Key: m.to}
	if d.Changed {
		doc.Body = d.State.encode()
		w.states[m.to] = roundTrip(w.t, d.State)
	} else if !bytes.Equal(d.State.encode(), before.encode()) {
		w.t.Fatalf("%s says that it changed nothing: %s became %s", m.kind, before.encode(), d.State.encode())
	}
	w.logs[m.to] = append(w.logs[m.to], interlock.LogEntry{
		Seq: uint64(len(w.logs[m.to]) + 1), Message: m.id, Kind: string(m.kind), Body: m.body, Agent: m.by, Sender: sender(m),
		State: interlock.TaskDone, Reply: encode(d.Reply), Document: doc, Changed: d.Changed,
	})
	for _, out := range d.Messages {
		body, err := json.Marshal(out.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		w.mail = append(
			w.mail,
			letter{to: out.To, id: w.id(), kind: out.Kind, by: "writer", from: m.to, body: body, due: w.now.Add(out.Delay)},
		)
	}
	if had, has, floor := before.Available(), d.State.Available(), w.policies[m.to].Floor; has < had && has < floor {
		w.t.Fatalf("%s on %s: of %d only %d is available, below the floor of %d", m.kind, m.to, had, has, floor)
	}
	w.count(m, cmd, d)
	w.holdsUp()
}

// count keeps the books by the replies, and by the previous state.
func (w *world) count(m letter, cmd Command, d Decision) {
	for _, f := range d.State.Finished {
		if where, ok := w.counted[f.ID]; ok && w.holds[f.ID] == m.to {
			delete(w.counted, f.ID)
			hold := w.hold(f.ID)
			if w.day(m.to, cmd.By, d.Reply.At) == where || string(where[len(where)-10:]) == day(f.At) {
				w.moved[where] -= hold - f.Amount
			}
		}
	}
	if d.Reply.Outcome == OutcomeRefused {
		return
	}
	amount, where := d.Reply.Amount, w.day(m.to, cmd.By, d.Reply.At)
	switch m.kind {
	case Credit:
		w.put += amount
	case Debit:
		w.put -= amount
		w.moved[where] += amount
	case Capture:
		w.put -= amount
	case Hold, Transfer:
		w.holds[d.Reply.ID] = m.to
		w.moved[where] += amount
		w.counted[d.Reply.ID] = where
		w.moved["amount of "+d.Reply.ID] = amount
	}
	if budget := w.policies[m.to].Rules[0].DayOut; cmd.By == "a" && m.kind.out() && w.moved[where] > budget {
		w.t.Fatalf("a has moved %d of %d: %s", w.moved[where], budget, where)
	}
}

func (w *world) hold(id string) Money { return w.moved["amount of "+id] }

func (w *world) day(key interlock.Key, by string, at time.Time) string {
	return string(key) + " " + by + " " + day(at)
}

// holdsUp checks the invariants after every step.
func (w *world) holdsUp() {
	sum := Money(0)
	for _, key := range w.keys {
		s := w.states[key]
		sum += s.Balance
		for _, h := range s.Holds {
			if h.Amount <= 0 {
				w.t.Fatalf("%s: hold %s keeps %d", key, h.ID, h.Amount)
			}
			target := w.states[h.To]
			if i := slices.IndexFunc(
				target.Incoming, func(in IncomingTransfer) bool { return in.ID == h.ID && in.Added },
			); h.To != "" &&
				i >= 0 {
				sum -= h.Amount // it has arrived, and has not been posted
			}
		}
	}
	if sum != w.put {
		w.t.Fatalf("the accounts have %d together, and must have %d", sum, w.put)
	}
}

// advisedWithin checks that advice has allowed nothing that policy does not.
func (w *world) advisedWithin(m letter, cmd Command, before State, clock time.Time, d Decision) {
	if cmd.Advice == nil {
		return
	}
	cmd.Advice = nil
	alone := Decide(w.policies[m.to], before, cmd, clock)
	if alone.Reply.Outcome == OutcomeRefused && d.Reply.Code != alone.Reply.Code {
		w.t.Fatalf("policy alone: %q, with advice: %q", alone.Reply.Code, d.Reply.Code)
	}
	if d.Reply.Amount > alone.Reply.Amount {
		w.t.Fatalf("policy alone: %d, with advice: %d", alone.Reply.Amount, d.Reply.Amount)
	}
}

// sender returns the sender that the server states for a message of a writer at work on another
// message.
func sender(m letter) string {
	if m.from == "" {
		return "agent:" + m.by
	}
	return "key:" + string(m.from)
}

func isLeg(k Kind) bool { return slices.Contains(legs, k) }

// due lists the messages that are due.
func (w *world) due() (list []int) {
	for i, m := range w.mail {
		if !m.due.After(w.now) {
			list = append(list, i)
		}
	}
	return list
}

// run plays for so many steps, and then lets everything come to rest.
func (w *world) run(steps int) {
	for range steps {
		if w.random.IntN(3) == 0 {
			w.order()
		}
		if due := w.due(); len(due) > 0 {
			w.deliver(pick(w, due), true)
		}
		switch w.random.IntN(50) {
		case 0:
			w.now = w.now.Add(time.Duration(w.random.IntN(20)) * time.Second)
		case 1:
			w.now = w.now.Add(time.Duration(w.random.IntN(8)) * time.Hour)
		case 2: // an operator replays a dead letter
			if len(w.dead) > 0 {
				i := w.random.IntN(len(w.dead))
				w.mail = append(w.mail, w.dead[i])
				w.dead = slices.Delete(w.dead, i, i+1)
			}
		default:
			w.now = w.now.Add(time.Duration(w.random.IntN(300)) * time.Millisecond)
		}
	}
	w.rest()
	for range 2 { // all dead letters come back at the very end
		w.mail = append(w.mail, w.dead...)
		w.rest()
	}
}

// rest lets everything be delivered and every transfer be settled. An account is touched now
// and then, as by agents that make forbidden requests.
func (w *world) rest() {
	for round := 0; ; round++ {
		if round == 100 {
			w.t.Fatal("the transfers do not settle")
		}
		w.now = w.now.Add(time.Minute)
		for _, key := range w.keys {
			w.mail = append(
				w.mail, letter{to: key, id: w.id(), kind: Void, by: "nobody", body: []byte(`{"hold":"none"}`), due: w.now},
			)
		}
		for due := w.due(); len(due) > 0; due = w.due() {
			w.deliver(due[0], false)
		}
		open := false
		for _, s := range w.states {
			open = open || len(s.Holds) > 0 || len(s.Incoming) > 0
		}
		if !open {
			break
		}
	}
	sum := Money(0)
	for _, s := range w.states {
		sum += s.Balance
	}
	if sum != w.put {
		w.t.Fatalf("at rest the accounts have %d together, and must have %d", sum, w.put)
	}
	for _, key := range w.keys {
		end, err := Replay(w.logs[key])
		if err != nil {
			w.t.Fatalf("%s: %v", key, err)
		}
		if state := w.states[key]; !bytes.Equal(end.encode(), state.encode()) {
			w.t.Fatalf("%s: the log ends with %s, the document is %s", key, end.encode(), state.encode())
		}
	}
}

// Money is neither lost nor doubled, no bound is broken, and every log can be replayed.
func TestWorld(t *testing.T) {
	from, to := search.Seeds(t, 0, 20, 60)
	posted, voided := 0, 0
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			w.run(400)
			for _, log := range w.logs {
				for _, e := range log {
					switch Kind(e.Kind) {
					case transferPost:
						posted++
					case transferVoid:
						voided++
					}
				}
			}
		})
	}
	if posted == 0 || voided == 0 {
		t.Errorf("%d transfers were posted, %d void", posted, voided)
	}
}

func FuzzWorld(f *testing.F) {
	f.Add(uint64(1), uint16(100))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) { newWorld(t, seed).run(int(steps % 2000)) })
}

// Whatever comes in a body, money is not made of it.
func FuzzBody(f *testing.F) {
	f.Add("credit", "a", []byte(`{"amount":1}`))
	f.Add("hold", "a", []byte(`{"amount":1,"for_ms":9223372036854775807}`))
	f.Add(
		"transfer.post", "writer",
		[]byte(`{"transfer":"h","peer":"account:2","amount":5,"currency":"EUR","until":"2026-11-21T12:00:00Z"}`),
	)
	f.Fuzz(func(t *testing.T, kind, by string, body []byte) {
		policy := Policy{Currency: "EUR", Floor: -10, TransferTo: "account:", Rules: []Rule{{Requester: "*", DayOut: 100}}}
		state := State{Currency: "EUR", Balance: 40, Holds: []Held{
			{ID: "h", Amount: 10, By: "a", Until: noon.Add(time.Hour), To: "account:2"},
			{ID: "k", Amount: 5, By: "a", Until: noon.Add(time.Hour)},
		}}
		cmd := read("account:1", "m", Kind(kind), body)
		cmd.By = strings.ToValidUTF8(by, "") // as the server has all names
		if by == "writer" {
			cmd.From = "account:2"
		}
		d := Decide(policy, state, cmd, noon)
		if d.State.Available() < -10 {
			t.Fatalf("%d is available after %s", d.State.Available(), body)
		}
		if d.State.Balance > state.Balance && Kind(kind) != Credit && Kind(kind) != transferCredit {
			t.Fatalf("%s has made money of %s", kind, body)
		}
		roundTrip(t, d.State)
	})
}

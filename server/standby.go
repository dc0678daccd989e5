package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/shard"
)

// Active is the address of the server that owns the shard. It is empty when unknown.
type Active struct {
	HTTP string // a URL
	GRPC string // host:port
}

// NewStandby makes the APIs of a server that waits to become the owner of the shard. Every request
// is refused with not_owner and the address of the active server, as where returns it at that
// moment; only the server's own paths (/healthz, /readyz, /metrics, /openapi.json) answer for this
// process. Config.Shard is not used.
func NewStandby(cfg Config, where func() Active) (*Server, error) {
	if where == nil {
		return nil, errors.New("server: a standby needs the address of the active server")
	}
	cfg.Shard = standbyShard{where}
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	s.standby = where
	return s, nil
}

// notOwner returns a standby's answer.
func notOwner(a Active) *interlock.Error {
	err := &interlock.Error{Code: interlock.CodeNotOwner}
	if a == (Active{}) {
		err.Message = "this server is a standby, and no server is active at the moment"
		err.Advice = prose.ForCode(err.Code)
		return err
	}
	err.Message = fmt.Sprintf("this server is a standby; the active one is %s (gRPC %s)", a.HTTP, a.GRPC)
	err.Advice = prose.ForCode(err.Code)
	err.Advice.Message = "repeat the request with the same request id at the active server"
	return err
}

// standbyShard is the shard of a standby.
type standbyShard struct{ where func() Active }

func (e standbyShard) refusal() error { return notOwner(e.where()) }

func (e standbyShard) Submit(...engine.Command) error  { return e.refusal() }
func (e standbyShard) Execute(...engine.Command) error { return e.refusal() }
func (e standbyShard) Came() uint64                    { return 0 }

func (e standbyShard) Do(context.Context, engine.Command) (engine.Effect, interlock.At, error) {
	return engine.Effect{}, interlock.At{}, e.refusal()
}

func (e standbyShard) Read(
	context.Context, interlock.Namespace, func(*engine.Engine, engine.Time),
) (interlock.At, error) {
	return interlock.At{}, e.refusal()
}

func (e standbyShard) Survey(
	context.Context, interlock.Namespace, func(*engine.Engine, engine.Time) bool,
) (interlock.At, error) {
	return interlock.At{}, e.refusal()
}

func (e standbyShard) Condition(context.Context) (shard.Condition, interlock.At, error) {
	return shard.Condition{}, interlock.At{}, e.refusal()
}

func (e standbyShard) Seek(context.Context, engine.Time) (interlock.Index, error) {
	return 0, e.refusal()
}

func (e standbyShard) Follow(context.Context, shard.Follower) error { return e.refusal() }

func (e standbyShard) Head(context.Context) (string, interlock.At, error) {
	return "", interlock.At{}, e.refusal()
}

func (e standbyShard) Backup(context.Context) (*shard.Backup, error) { return nil, e.refusal() }

func (e standbyShard) OnReset(func())          {} // there is nothing to forget
func (e standbyShard) At() interlock.At        { return interlock.At{} }
func (e standbyShard) First() interlock.Index  { return 0 }
func (e standbyShard) Failed() <-chan struct{} { return nil }
func (e standbyShard) Err() error              { return nil }

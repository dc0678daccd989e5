package server

import (
	"context"
	"net/http"
	"strconv"

	"github.com/interlockdev/interlock"
)

// NamespaceMove is a move of a namespace to another shard.
type NamespaceMove struct {
	Number    uint64
	Namespace interlock.Namespace
	From, To  int
	Step      string // leaving, closed or arrived
}

// Placement is where namespaces are that have moved.
type Placement struct {
	Stores   map[int]string              // of the shards that are not in the journal's own engine
	Moves    []NamespaceMove             // under way
	Moved    map[interlock.Namespace]int // those that are not in the shard of their name's hash
	LastMove uint64                      // the number of the last move that has begun
}

// Operations changes where the shards and the namespaces of a journal are. An error is an *interlock.Error,
// or else the journal's engine does not answer. Its methods may be called by any number of goroutines.
type Operations interface {
	// Placement returns where namespaces are: as this server knows it, or as the directory has it now.
	Placement(ctx context.Context, now bool) (Placement, error)
	// Move begins to move a namespace to a shard, and returns the move; also one that is under way already. It
	// returns nil if the namespace is in that shard.
	Move(ctx context.Context, ns interlock.Namespace, to int) (*NamespaceMove, error)
	// TakeBack ends a move before its target answers.
	TakeBack(ctx context.Context, number uint64) error
	// AddShards adds shards in a store, by its name.
	AddShards(ctx context.Context, store string, shards int) error
	// Drain has a server, by its ID or its HTTP address, leave its shards to others, or ends that.
	Drain(ctx context.Context, server string, on bool) error
}

// The paths of the operations. Any server carries them out.
const (
	movesPath = "/v1/moves"
	movePath  = "/v1/moves/{id}"
	drainPath = "/v1/servers/drain"
)

// moveNamespace is POST /v1/moves.
func (c *call) moveNamespace() {
	var ns string
	to := int64(-1)
	if !c.isJSON() || !c.body(func(d *jsonIn) {
		names := []string{"namespace", "shard"}
		if seen := d.object(names, func(field int) {
			if field == 0 {
				ns = d.str()
			} else {
				to = d.whole(0, maxShard)
			}
		}); seen != 3 && d.err == nil {
			d.fail("the body needs the fields namespace and shard")
		}
	}) || !c.operates() {
		return
	}
	m, err := c.s.operations.Move(c.r.Context(), interlock.Namespace(ns), int(to))
	switch {
	case err != nil:
		c.failWith(err)
		return
	case m == nil:
		c.done("moved", interlock.At{})
		return
	}
	j := c.reply()
	j.str("outcome", "moving")
	j.open("move")
	writeNamespaceMove(j, m)
	j.close()
	c.send(http.StatusOK, j, interlock.At{})
}

// deleteMove is DELETE /v1/moves/{id}.
func (c *call) deleteMove() {
	number, err := strconv.ParseUint(c.variable, 10, 64)
	if err != nil {
		c.refuse(interlock.CodeNotFound, "the number of a move is a decimal number, such as 3")
		return
	}
	if !c.operates() {
		return
	}
	if err := c.s.operations.TakeBack(c.r.Context(), number); err != nil {
		c.failWith(err)
		return
	}
	c.s.log.Info("a move was taken back", "move", number, "by", c.identity.name())
	c.done("taken_back", interlock.At{})
}

// addShards is POST /v1/shards.
func (c *call) addShards() {
	var store string
	var shards int64
	if !c.isJSON() || !c.body(func(d *jsonIn) {
		names := []string{"store", "shards"}
		if seen := d.object(names, func(field int) {
			if field == 0 {
				store = d.str()
			} else {
				shards = d.whole(1, maxShard)
			}
		}); seen != 3 && d.err == nil {
			d.fail("the body needs the fields store and shards")
		}
	}) || !c.operates() {
		return
	}
	if err := c.s.operations.AddShards(c.r.Context(), store, int(shards)); err != nil {
		c.failWith(err)
		return
	}
	c.s.log.Info("shards were added", "store", store, "shards", shards, "by", c.identity.name())
	c.done("added", interlock.At{})
}

// drainServer is POST /v1/servers/drain.
func (c *call) drainServer() {
	var server string
	on := true
	if !c.isJSON() || !c.body(func(d *jsonIn) {
		names := []string{"server", "drain"}
		if seen := d.object(names, func(field int) {
			if field == 0 {
				server = d.str()
			} else {
				on = d.yes()
			}
		}); seen&1 == 0 && d.err == nil {
			d.fail("field server is missing")
		}
	}) || !c.operates() {
		return
	}
	if err := c.s.operations.Drain(c.r.Context(), server, on); err != nil {
		c.failWith(err)
		return
	}
	c.s.log.Info("a server is drained, or no longer", "server", server, "drain", on, "by", c.identity.name())
	if on {
		c.done("draining", interlock.At{})
		return
	}
	c.done("resumed", interlock.At{})
}

// operates reports whether there are shards to move between. If not, the call was answered.
func (c *call) operates() bool {
	if c.s.operations != nil {
		return true
	}
	if _, ok := c.confirm(); ok {
		c.refuse(
			interlock.CodeInvalidRequest, "the journal is in a directory: it has one shard and one server, and nothing moves",
		)
	}
	return false
}

func writeNamespaceMove(j *jsonOut, m *NamespaceMove) {
	j.decimal("number", m.Number)
	j.str("namespace", string(m.Namespace))
	j.int("from", int64(m.From))
	j.int("to", int64(m.To))
	j.str("step", m.Step)
}

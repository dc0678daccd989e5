package redisjournal

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// driver is one journal in a server and its replicas, or in a cluster.
type driver struct {
	*pool
	at   Place
	keys command // how a script is given its keys
	node node
}

var _ remote.Driver = (*driver)(nil)

// Connect makes a store. It sends nothing yet, so it succeeds also when the server cannot be reached.
func Connect(at Place) (*remote.Store, error) {
	p, err := newPool(at)
	if err != nil {
		return nil, err
	}
	return remote.New(newDriver(p, at), at.Patience), nil
}

func newDriver(p *pool, at Place) *driver {
	keys := command{3, at.key("head"), at.key("log"), at.key("value")}
	return &driver{pool: p, at: at, keys: keys, node: node{replicas: max(0, at.Replicas)}}
}

// Shard implements remote.Driver.
func (d *driver) Shard(n int) remote.Driver {
	at := d.at
	at.Shard = n
	d.share()
	return newDriver(d.pool, at)
}

// Close implements remote.Driver.
func (d *driver) Close() error {
	d.close()
	return nil
}

// Place implements remote.Driver.
func (d *driver) Place(name string) string {
	return fmt.Sprintf("Redis, database %d, key %s, %s", d.at.Database, d.at.key("*"), name)
}

// done reports whether the comparison of a script succeeded, and what it wrote is safe.
func (d *driver) done(ctx context.Context, s *script, args ...any) (bool, error) {
	answer, err := d.run(ctx, s, args...)
	return answer != nil, err
}

// fixed reports whether the number of replicas was asked for.
func (d *driver) fixed() bool { return d.at.Replicas >= 0 }

// The fields of a head that scriptHead returns.
const (
	headFormat = iota
	headEpoch
	headWord
	headTail
	headChain
	headMoved
	headServer
	headReplicas
	headFields
)

// Head implements remote.Driver, and refuses the format of another version.
func (d *driver) Head(ctx context.Context) (h remote.Head, err error) {
	var fields []any
	for {
		waited := d.node.wait()
		answer, err := d.run(ctx, scriptHead, waited, d.fixed())
		if err != nil {
			return h, err
		}
		if fields, _ = answer.([]any); len(fields) != headFields {
			fields = nil
			break
		}
		if n, _ := strconv.Atoi(text(fields[headReplicas])); n <= waited || d.fixed() {
			break
		} else {
			d.node.raise(min(n, mostReplicas))
		}
	}
	// The server is asked afterwards: a change in between makes fences jump, too.
	now, err := d.checkSettings(ctx)
	if err != nil || fields == nil {
		return h, err
	}
	format, err := strconv.Atoi(text(fields[headFormat]))
	if err == nil && format > formatNumber {
		return h, fmt.Errorf(
			"%w: the format of %s is %d, and this version knows %d",
			journal.ErrNewer, d.Place("head"), format, formatNumber,
		)
	}
	epoch, errEpoch := strconv.ParseUint(text(fields[headEpoch]), 10, 64)
	tail, errTail := strconv.ParseUint(text(fields[headTail]), 10, 64)
	chain, errChain := strconv.ParseUint(text(fields[headChain]), 10, 32)
	if err != nil || errEpoch != nil || errTail != nil || errChain != nil || format < 1 || epoch < 1 {
		return h, &journal.DamageError{File: d.Place("head"), Reason: "its numbers are out of range"}
	}
	h.Owner = remote.Owner{Epoch: interlock.Epoch(epoch), Word: text(fields[headWord])}
	h.Tail = remote.Position{Index: interlock.Index(tail), Chain: uint32(chain)}
	adopted := text(fields[headServer])
	h.Moved = text(fields[headMoved]) != "0" || adopted != now.id
	return h, nil
}

// create makes a head in the place of that of an owner, with a value if name is not "".
func (d *driver) create(
	ctx context.Context, was remote.Owner, h remote.Head, name string, data []byte,
) (bool, error) {
	now, err := d.server(ctx)
	if err != nil {
		return false, err
	}
	epoch := "" // there is no head
	if was.Epoch > 0 {
		epoch = strconv.FormatUint(uint64(was.Epoch), 10)
	}
	return d.done(
		ctx, scriptCreate, epoch, was.Word, formatNumber, h.Owner.Epoch, h.Owner.Word, h.Tail.Index, h.Tail.Chain, h.Moved,
		now.id, d.node.wait(), name, data,
	)
}

// Fence implements remote.Driver.
func (d *driver) Fence(ctx context.Context, was, to remote.Owner, moved bool) (bool, error) {
	if (was == remote.Owner{}) {
		return d.create(ctx, was, remote.Head{Owner: to, Moved: moved}, "", nil)
	}
	return d.done(ctx, scriptFence, was.Epoch, was.Word, to.Epoch, to.Word, moved)
}

// Found implements remote.Driver.
func (d *driver) Found(
	ctx context.Context, was remote.Owner, h remote.Head, name string, data []byte,
) (bool, error) {
	return d.create(ctx, was, h, name, data)
}

// Adopt implements remote.Driver.
func (d *driver) Adopt(ctx context.Context, by remote.Owner) (bool, error) {
	// The server is asked first: a change in between makes fences jump again.
	now, err := d.server(ctx)
	if err != nil {
		return false, err
	}
	return d.done(ctx, scriptAdopt, by.Epoch, by.Word, now.id)
}

// Append implements remote.Driver.
func (d *driver) Append(
	ctx context.Context, by remote.Owner, after, next remote.Position, frame []byte,
) (bool, error) {
	return d.done(ctx, scriptAppend, by.Epoch, by.Word, after.Index, after.Chain, next.Index, next.Chain, frame)
}

// Confirm implements remote.Driver by a write.
func (d *driver) Confirm(ctx context.Context, by remote.Head) (bool, error) {
	return d.done(ctx, scriptConfirm, by.Owner.Epoch, by.Owner.Word, by.Tail.Index, d.node.wait(), d.fixed())
}

// Frames implements remote.Driver.
func (d *driver) Frames(ctx context.Context, from interlock.Index, limit int) (list []remote.Frame, err error) {
	answer, err := d.run(ctx, scriptFrames, from, limit)
	if err != nil {
		return nil, err
	}
	entries, _ := answer.([]any)
	for _, e := range entries {
		entry, _ := e.([]any)
		if len(entry) != 2 {
			return nil, fmt.Errorf("redis: %w", errProtocol)
		}
		name := d.Place("append " + text(entry[0]))
		last, err := parseID(text(entry[0]))
		fields, _ := entry[1].([]any)
		if err != nil || len(fields) != 2 {
			return nil, &journal.DamageError{File: name, Reason: "it is no append"}
		}
		frame, _ := fields[1].([]byte)
		list = append(list, remote.Frame{Name: name, Last: last, Data: frame})
	}
	return list, nil
}

// parseID reads the id of an entry of the stream.
func parseID(id string) (interlock.Index, error) {
	index, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(index, 10, 64)
	return interlock.Index(n), err
}

// dropsAtOnce bounds how many appends one script deletes.
const dropsAtOnce = 100

// Drop implements remote.Driver.
func (d *driver) Drop(
	ctx context.Context, by remote.Head, before interlock.Index,
) (dropped interlock.Index, done bool, err error) {
	if before == 0 {
		return 0, true, nil // the server refuses an interval that ends before it begins
	}
	answer, err := d.run(ctx, scriptDrop, by.Owner.Epoch, by.Owner.Word, by.Tail.Index, before, dropsAtOnce)
	if err != nil || answer == nil {
		return 0, false, err
	}
	if id := text(answer); id != "" {
		dropped, err = parseID(id)
	}
	return dropped, true, err
}

// Get implements remote.Driver.
func (d *driver) Get(ctx context.Context, name string) (v remote.Value, err error) {
	answer, err := d.run(ctx, scriptGet, name)
	if fields, _ := answer.([]any); err == nil && len(fields) == 2 && fields[0] != nil {
		v.Version = text(fields[0])
		v.Data, _ = fields[1].([]byte)
	}
	return v, err
}

// Put implements remote.Driver. The version of a value is the head's counter of writes.
func (d *driver) Put(
	ctx context.Context, by remote.Head, name string, data []byte, was string,
) (version string, done bool, err error) {
	if (by == remote.Head{}) {
		return d.version(ctx, scriptPutEmpty, name, data)
	}
	return d.version(ctx, scriptPut, by.Owner.Epoch, by.Owner.Word, by.Tail.Index, name, data, was)
}

// Swap implements remote.Driver. The version of such a value is a counter of its own.
func (d *driver) Swap(
	ctx context.Context, name string, data []byte, was string,
) (version string, done bool, err error) {
	return d.version(ctx, scriptSwap, name, data, was)
}

// version runs a script that returns one.
func (d *driver) version(ctx context.Context, s *script, args ...any) (version string, done bool, err error) {
	answer, err := d.run(ctx, s, args...)
	return text(answer), answer != nil, err
}

// removesAtOnce bounds the names that one script deletes.
const removesAtOnce = 500

// Remove implements remote.Driver. Names in the range are added by the owner alone, which does not do so meanwhile.
func (d *driver) Remove(ctx context.Context, by remote.Head, from, to string) (done bool, err error) {
	answer, err := d.run(ctx, scriptNames)
	if err != nil {
		return false, err
	}
	var names []any
	fields, _ := answer.([]any)
	for _, field := range fields {
		if name, ok := strings.CutPrefix(text(field), "v:"); ok && from <= name && name < to {
			names = append(names, name)
		}
	}
	for {
		some := names[:min(len(names), removesAtOnce)]
		done, err = d.done(ctx, scriptRemove, append([]any{by.Owner.Epoch, by.Owner.Word, by.Tail.Index}, some...)...)
		if names = names[len(some):]; err != nil || !done || len(names) == 0 {
			return done, err
		}
	}
}

// Low implements remote.Driver: nine tenths of the memory that the server may use are used. It
// also notices replicas that came.
func (d *driver) Low(ctx context.Context) (bool, error) {
	now, err := d.server(ctx)
	return now.most > 0 && now.used > now.most/10*9, err
}

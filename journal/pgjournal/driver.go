package pgjournal

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// driver is one journal in a database.
type driver struct {
	*pool
	at Place

	timeline atomic.Pointer[string] // of the server on which this driver's newest owner has begun; nil or "": not known
}

var _ remote.Driver = (*driver)(nil)

// Connect makes a store. It sends nothing yet, so it succeeds also when the database cannot be reached.
func Connect(at Place) (*remote.Store, error) {
	p, err := newPool(at.DSN)
	if err != nil {
		return nil, err
	}
	return remote.New(&driver{pool: p, at: at}, at.Patience), nil
}

// Shard implements remote.Driver.
func (d *driver) Shard(n int) remote.Driver {
	at := d.at
	at.Shard = n
	d.share()
	return &driver{pool: d.pool, at: at}
}

// Close implements remote.Driver.
func (d *driver) Close() error {
	d.close()
	return nil
}

// Place implements remote.Driver.
func (d *driver) Place(name string) string {
	return fmt.Sprintf("PostgreSQL, journal %s, shard %d, %s", d.at.Name, d.at.Shard, name)
}

// one carries a statement out that returns at most one row. Its first parameters are the journal and the shard.
func (d *driver) one(ctx context.Context, sql string, parameters ...any) (row, error) {
	rows, err := d.rows(ctx, sql, nil, parameters...)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

func (d *driver) rows(ctx context.Context, sql string, binary []int16, parameters ...any) ([]row, error) {
	rows, err := d.query(ctx, sql, binary, append([]any{d.at.Name, d.at.Shard}, parameters...)...)
	return rows, explain(err)
}

// done reports whether a statement returned a row.
func (d *driver) done(ctx context.Context, sql string, parameters ...any) (bool, error) {
	r, err := d.one(ctx, sql, parameters...)
	return r != nil, err
}

// Head implements remote.Driver, and refuses the format of another version.
func (d *driver) Head(ctx context.Context) (h remote.Head, err error) {
	if err := d.checkSettings(ctx); err != nil {
		return h, err
	}
	r, err := d.one(ctx, sqlHead)
	if err != nil || r == nil {
		if noTable(err) {
			err = nil
		}
		return h, err
	}
	// The server is asked afterwards: a change in between makes fences jump, too.
	server, err := d.server(ctx)
	if err != nil {
		return h, err
	}
	format, err := strconv.Atoi(r.text(0))
	if err == nil && format > formatNumber {
		return h, fmt.Errorf(
			"%w: the format of %s is %d, and this version knows %d",
			journal.ErrNewer, d.Place("head"), format, formatNumber,
		)
	}
	epoch, errEpoch := strconv.ParseInt(r.text(1), 10, 64)
	tail, errTail := strconv.ParseInt(r.text(3), 10, 64)
	chain, errChain := strconv.ParseUint(r.text(4), 10, 32)
	if err != nil || errEpoch != nil || errTail != nil || errChain != nil || format < 1 || epoch < 1 || tail < 0 {
		return h, &journal.DamageError{File: d.Place("head"), Reason: "its numbers are out of range"}
	}
	h.Owner = remote.Owner{Epoch: interlock.Epoch(epoch), Word: r.text(2)}
	h.Tail = remote.Position{Index: interlock.Index(tail), Chain: uint32(chain)}
	adopted := r.text(6)
	h.Moved = r.text(5) == "true" || adopted != "" && server != "" && adopted != server
	return h, nil
}

// server names the server and its timeline; "" if the database does not answer that.
func (d *driver) server(ctx context.Context) (string, error) {
	rows, err := d.query(ctx, sqlServer, nil)
	if _, refused := sqlState(err); refused {
		return "", nil
	}
	if err != nil || len(rows) != 1 {
		return "", explain(err)
	}
	return rows[0].text(0), nil
}

// checkSettings refuses a server that may forget what it has acknowledged.
func (d *driver) checkSettings(ctx context.Context) error {
	rows, err := d.query(ctx, sqlSettings, nil)
	if err != nil || len(rows) != 1 {
		return explain(err)
	}
	r := rows[0]
	fsync, pages, commit, standbys, recovery := r.text(0), r.text(1), r.text(2), r.text(3), r.text(4)
	refuse := func(is, remedy string) error {
		return remote.Final(fmt.Errorf(
			"postgres: %w: %s: %s, or accept it with --allow-loss", remote.ErrUnsafe, is, remedy,
		))
	}
	switch {
	case recovery == "true":
		return fmt.Errorf("postgres: the server is a standby, and the primary is wanted")
	case d.at.AllowLoss:
		return nil
	case fsync == "off":
		return refuse("fsync is off", "set fsync = on")
	case pages == "off":
		return refuse("full_page_writes is off", "set full_page_writes = on")
	case commit == "off":
		return refuse("synchronous_commit is off", "set synchronous_commit = on for this role")
	case commit == "local" && standbys != "":
		return refuse(
			"synchronous_commit is local although there are synchronous standbys", "set synchronous_commit = on for this role",
		)
	}
	return nil
}

// create makes a head, and before it the tables if there are none.
func (d *driver) create(ctx context.Context, sql string, h remote.Head, more ...any) (bool, error) {
	server, err := d.server(ctx)
	if err != nil {
		return false, err
	}
	return d.doneWithTables(ctx, sql, append([]any{
		formatNumber, h.Owner.Epoch, h.Owner.Word, h.Tail.Index, h.Tail.Chain, strconv.FormatBool(h.Moved), server,
	}, more...)...)
}

// doneWithTables is done for a statement that may be the first one of all. A role that may not make tables can
// use those that are there.
func (d *driver) doneWithTables(ctx context.Context, sql string, parameters ...any) (bool, error) {
	done, err := d.done(ctx, sql, parameters...)
	if !noTable(err) {
		return done, err
	}
	if err := d.makeTables(ctx); err != nil {
		return false, err
	}
	return d.done(ctx, sql, parameters...)
}

func (d *driver) makeTables(ctx context.Context) error {
	err := explain(d.script(ctx, schema))
	if state, _ := sqlState(err); state == stateForbidden {
		return fmt.Errorf(
			"%w: there are no tables for journals, and this role may not make them: GRANT CREATE ON SCHEMA public TO it once",
			err,
		)
	}
	return err
}

// Fence implements remote.Driver.
func (d *driver) Fence(ctx context.Context, was, to remote.Owner, moved bool) (bool, error) {
	server, err := d.server(ctx)
	if err != nil {
		return false, err
	}
	_, timeline, _ := strings.Cut(server, "/")
	d.timeline.Store(&timeline)
	if (was == remote.Owner{}) {
		return d.create(ctx, sqlCreate, remote.Head{Owner: to, Moved: moved})
	}
	return d.done(ctx, sqlFence, was.Epoch, was.Word, to.Epoch, to.Word, strconv.FormatBool(moved))
}

// Found implements remote.Driver.
func (d *driver) Found(
	ctx context.Context, was remote.Owner, h remote.Head, name string, data []byte,
) (bool, error) {
	if (was == remote.Owner{}) {
		return d.create(ctx, sqlFound, h, name, data)
	}
	server, err := d.server(ctx)
	if err != nil {
		return false, err
	}
	return d.done(
		ctx, sqlFoundAgain, was.Epoch, was.Word, formatNumber, h.Owner.Epoch, h.Owner.Word, h.Tail.Index, h.Tail.Chain,
		strconv.FormatBool(h.Moved), server, name, data,
	)
}

// Adopt implements remote.Driver.
func (d *driver) Adopt(ctx context.Context, by remote.Owner) (bool, error) {
	// The server is asked first: a change in between makes fences jump again.
	server, err := d.server(ctx)
	if err != nil {
		return false, err
	}
	return d.done(ctx, sqlAdopt, by.Epoch, by.Word, server)
}

// Append implements remote.Driver.
func (d *driver) Append(
	ctx context.Context, by remote.Owner, after, next remote.Position, frame []byte,
) (bool, error) {
	return d.done(ctx, sqlAppend, by.Epoch, by.Word, after.Index, after.Chain, next.Index, next.Chain, frame, d.began())
}

// began returns the timeline on which the owner has begun; "" if it is not known.
func (d *driver) began() string {
	if t := d.timeline.Load(); t != nil {
		return *t
	}
	return ""
}

// Confirm implements remote.Driver by a write.
func (d *driver) Confirm(ctx context.Context, by remote.Head) (bool, error) {
	return d.done(ctx, sqlConfirm, by.Owner.Epoch, by.Owner.Word, by.Tail.Index, d.began())
}

// Frames implements remote.Driver.
func (d *driver) Frames(ctx context.Context, from interlock.Index, limit int) (list []remote.Frame, err error) {
	rows, err := d.rows(ctx, sqlFrames, []int16{0, 1}, from, limit)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		name := d.Place("append " + r.text(0))
		last, err := strconv.ParseUint(r.text(0), 10, 64)
		if err != nil {
			return nil, &journal.DamageError{File: name, Reason: "its index is out of range"}
		}
		list = append(list, remote.Frame{Name: name, Last: interlock.Index(last), Data: r[1]})
	}
	return list, nil
}

// Drop implements remote.Driver.
func (d *driver) Drop(
	ctx context.Context, by remote.Head, before interlock.Index,
) (dropped interlock.Index, done bool, err error) {
	r, err := d.one(ctx, sqlDrop, by.Owner.Epoch, by.Owner.Word, by.Tail.Index, before)
	if err != nil {
		return 0, false, err
	}
	last, err := strconv.ParseUint(r.text(1), 10, 64)
	return interlock.Index(last), r.text(0) == "1", err
}

// Get implements remote.Driver.
func (d *driver) Get(ctx context.Context, name string) (v remote.Value, err error) {
	rows, err := d.rows(ctx, sqlGet, []int16{0, 1}, name)
	if noTable(err) {
		return v, nil
	}
	if err != nil || len(rows) == 0 {
		return v, err
	}
	return remote.Value{Data: rows[0][1], Version: rows[0].text(0)}, nil
}

// Put implements remote.Driver. The version of a value is the head's counter of writes.
func (d *driver) Put(
	ctx context.Context, by remote.Head, name string, data []byte, was string,
) (version string, done bool, err error) {
	if (by == remote.Head{}) {
		done, err = d.doneWithTables(ctx, sqlPutEmpty, name, data)
		return "1", done, err
	}
	r, err := d.one(ctx, sqlPut, by.Owner.Epoch, by.Owner.Word, by.Tail.Index, name, data, was)
	if err != nil || r == nil {
		return "", false, err
	}
	return r.text(0), true, nil
}

// Swap implements remote.Driver. The version of such a value is a counter of its own.
func (d *driver) Swap(
	ctx context.Context, name string, data []byte, was string,
) (version string, done bool, err error) {
	r, err := d.one(ctx, sqlSwap, name, data, was)
	if noTable(err) {
		if err = d.makeTables(ctx); err == nil {
			r, err = d.one(ctx, sqlSwap, name, data, was)
		}
	}
	if err != nil || r == nil {
		return "", false, err
	}
	return r.text(0), true, nil
}

// Remove implements remote.Driver.
func (d *driver) Remove(ctx context.Context, by remote.Head, from, to string) (bool, error) {
	return d.done(ctx, sqlRemove, by.Owner.Epoch, by.Owner.Word, by.Tail.Index, from, to)
}

// Low implements remote.Driver. The room of a database is not visible to its clients.
func (d *driver) Low(context.Context) (bool, error) { return false, nil }

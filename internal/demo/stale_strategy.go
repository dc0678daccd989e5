package demo

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/guard/file"
)

// strategy is a way in which two agents may change the same things.
type strategy struct {
	id, name string
	safe     bool // no change may be lost
	inTurn   bool // one agent begins when the other has finished
	counts   bool // the balance is the counter
	work     func(*editAgent, context.Context) error
}

var strategies = []strategy{
	{id: "unguarded", name: "unguarded", work: (*editAgent).unguarded},
	{id: "leases", name: "leases", safe: true, inTurn: true, work: (*editAgent).underLease},
	{id: "versions", name: "versions", safe: true, work: (*editAgent).byVersion},
	{id: "additions", name: "additions, merges", safe: true, counts: true, work: (*editAgent).byAddition},
}

// unguarded reads, thinks and writes as if it were alone, over whatever is there by then.
func (w *editAgent) unguarded(ctx context.Context) error {
	doc, err := w.client.Document(ctx, w.account)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(w.path())
	if err != nil {
		return err
	}
	w.hasRead()
	if err := w.think(ctx); err != nil {
		return err
	}
	put, err := w.book(doc)
	if err != nil {
		return err
	}
	if _, err := w.client.Commit(
		ctx, client.Commit{Reads: client.SomeVersion(w.account), Writes: []interlock.Write{put}, Note: w.note},
	); err != nil {
		return err
	}
	if err := os.WriteFile(w.path(), w.edited(content), 0o644); err != nil {
		return err
	}
	w.say("%s writes what it decided", w.name)
	return nil
}

// underLease holds both keys from before it reads until it has written.
func (w *editAgent) underLease(ctx context.Context) error {
	asked := w.since()
	lease, err := w.client.Acquire(ctx, client.Request{
		Keys: []interlock.Key{w.account, w.source}, Purpose: w.note, OnConflict: interlock.Wait,
	})
	if err != nil {
		return err
	}
	if waited := w.since() - asked; w.name == support.name {
		w.mu.Lock()
		w.waiting += waited
		w.mu.Unlock()
		w.say("%s has waited %.1f s in line; now it reads what is true", w.name, waited.Seconds())
	}
	doc, err := w.client.Document(lease.Context(), w.account)
	if err != nil {
		return err
	}
	current, err := w.files.Read(sourceFile)
	if err != nil {
		return err
	}
	w.hasRead()
	if err := w.think(lease.Context()); err != nil {
		return err
	}
	put, err := w.book(doc)
	if err != nil {
		return err
	}
	if _, err := w.client.Commit(ctx, client.Commit{
		Reads: client.Seen(doc), Writes: []interlock.Write{put}, Leases: []interlock.LeaseID{lease.ID()}, Note: w.note,
	}); err != nil {
		return err
	}
	if err := w.save(ctx, current); err != nil {
		return err
	}
	w.say("%s writes under fence %s and releases", w.name, lease.Fence())
	return lease.Release(ctx, client.Outcome{Outcome: "done", Note: w.note})
}

// byVersion holds nothing. If something changed while it thought, it thinks again, with
// what changed in its prompt.
func (w *editAgent) byVersion(ctx context.Context) error {
	for {
		doc, err := w.client.Document(ctx, w.account)
		if err != nil {
			return err
		}
		current, err := w.files.Read(sourceFile)
		if err != nil {
			return err
		}
		w.hasRead()
		if err := w.think(ctx); err != nil {
			return err
		}
		put, err := w.book(doc)
		if err != nil {
			return err
		}
		done, err := w.client.Commit(
			ctx, client.Commit{Reads: client.Seen(doc), Writes: []interlock.Write{put}, Note: w.note},
		)
		if stale, ok := errors.AsType[*client.StaleError](err); ok {
			w.mu.Lock()
			w.packet = stale.Message
			w.mu.Unlock()
			w.say(
				"%s is refused: it read version %s, and now there is %s; it thinks again", w.name, doc.Version,
				stale.Changes[0].Now.Version,
			)
			continue
		}
		if err != nil {
			return err
		}
		w.say("%s commits version %s", w.name, done.Version)
		return w.save(ctx, current)
	}
}

// byAddition adds to a counter, which is right whatever others add meanwhile.
func (w *editAgent) byAddition(ctx context.Context) error {
	current, err := w.files.Read(sourceFile)
	if err != nil {
		return err
	}
	w.hasRead()
	if err := w.think(ctx); err != nil {
		return err
	}
	done, err := w.client.Commit(
		ctx, client.Commit{Writes: []interlock.Write{client.Add(w.balance, int64(w.amount))}, Note: w.note},
	)
	if err != nil {
		return err
	}
	w.say("%s adds %s: version %s", w.name, w.amount.signed(), done.Version)
	return w.save(ctx, current)
}

// save writes its change of the file, on the content that it was made from. A change of
// other lines meanwhile is merged.
func (w *editAgent) save(ctx context.Context, current *file.File) error {
	res, err := w.files.Write(
		ctx, file.Change{Path: sourceFile, Base: current.Version, Body: w.edited(current.Body), Agent: w.name, Note: w.note},
	)
	if err != nil {
		return err
	}
	if res.Merged {
		w.mu.Lock()
		w.merged++
		w.mu.Unlock()
		w.say("%s's change of %s is merged with what was written meanwhile", w.name, sourceFile)
	}
	return nil
}

// book is the account with the agent's amount.
func (w *editAgent) book(doc interlock.Document) (interlock.Write, error) {
	var a bookedDocument
	if err := json.Unmarshal(doc.Body, &a); err != nil {
		return interlock.Write{}, err
	}
	a.Balance += w.amount
	a.Entries = append(a.Entries, w.note)
	body, err := json.Marshal(a)
	return client.Put(w.account, body), err
}

// edited is the file with the agent's line.
func (w *editAgent) edited(content []byte) []byte {
	return []byte(strings.Replace(string(content), w.after+"\n", w.after+"\n"+w.comment+"\n", 1))
}

func (g *stage) path() string { return filepath.Join(g.dir, sourceFile) }

// found returns the account and the file in the end.
func (g *stage) found(ctx context.Context) (balance cents, edits int, err error) {
	key := g.account
	if g.strategy.counts {
		key = g.balance
	}
	doc, err := g.billing.Document(ctx, key)
	if err != nil {
		return 0, 0, err
	}
	if g.strategy.counts {
		err = json.Unmarshal(doc.Body, (*int64)(&balance))
	} else {
		var a bookedDocument
		err = json.Unmarshal(doc.Body, &a)
		balance = a.Balance
	}
	if err != nil {
		return 0, 0, err
	}
	content, err := os.ReadFile(g.path())
	for _, x := range []editor{billing, support} {
		if strings.Contains(string(content), x.comment) {
			edits++
		}
	}
	return balance, edits, err
}

// expected is the balance when no change is lost.
func expected() cents { return accountOpens + billing.amount + support.amount }

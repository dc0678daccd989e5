package hook

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/invisible"
)

// before decides whether a tool may run: it takes the files that the tool writes, and waits for them.
func (v *visit) before(ctx context.Context) (Verdict, error) {
	v.learnReads()
	if err := v.giveWay(ctx, v.ev.Takes); err != nil {
		return Verdict{}, err
	}
	files := v.locator.files(v.ev.Writes)
	var outer []api.Lease
	if len(files)+len(v.ev.Trees) > 0 {
		outer = v.outer(ctx)
	}
	if deny, err := v.trees(ctx, outer); err != nil || deny != "" {
		return v.verdict(deny, ""), err
	}
	if len(files) == 0 {
		return Verdict{Tell: v.news()}, nil
	}
	files = v.within(files, outer)
	if err := v.yield(ctx, files); err != nil {
		return Verdict{}, err
	}
	var tell string
	for part := range slices.Chunk(files, interlock.MaxClaims) {
		deny, more, err := v.take(ctx, part)
		if err != nil {
			return Verdict{}, err
		}
		if tell = lines(tell, more); deny != "" {
			return v.verdict(deny, tell), nil
		}
	}
	return v.verdict("", lines(tell, v.news())), nil
}

// lines joins two texts; an empty one leaves the other.
func lines(a, b string) string { return strings.TrimSpace(a + "\n" + b) }

// verdict denies, or only tells where the mode is to warn.
func (v *visit) verdict(deny, tell string) Verdict {
	if v.o.mode == "warn" {
		deny, tell = "", lines(deny, tell)
	}
	if !v.hears {
		tell = ""
	}
	return Verdict{Deny: deny, Tell: tell}
}

// take acquires files, all or none. deny is why the tool may not run, tell what the model should know.
func (v *visit) take(ctx context.Context, files []File) (deny, tell string, err error) {
	r := api.AcquireRequest{
		Flow: v.flowName(), Purpose: v.purposeNow(), TTL: sessionTTL.Milliseconds(), OnConflict: "wait",
	}
	if v.o.mode == "warn" {
		r.OnConflict = "skip"
	}
	for _, file := range files {
		r.Claims = append(r.Claims, api.ClaimRequest{Key: file.Key})
	}
	reply, err := v.caller.Acquire(ctx, r, "")
	if err != nil {
		return "", "", err
	}
	waited := reply.Queued != nil
	if queued := reply.Queued; queued != nil && !v.memory.allowed(v.space, files) {
		if reply, err = v.wait(ctx, queued, files); err != nil {
			return "", "", err
		}
	}
	if reply.Queued != nil || reply.Refused != nil && conflict(reply.Refused) {
		if deny, tell, done, err := v.pass(ctx, reply, files); done {
			return deny, tell, err
		}
	}
	switch {
	case reply.Granted != nil:
		deny, tell = v.granted(reply.Granted, files, waited)
		return deny, tell, nil
	case reply.Queued != nil:
		return queuedText(reply.Queued, files, v.own()), "", nil
	case reply.Skipped != nil:
		return "", warning(reply.Skipped, files, v.own()), nil
	}
	p := reply.Refused
	switch {
	case failed(p) != nil:
		return "", "", p
	case conflict(p):
		return conflictText(p), "", nil
	case !slices.ContainsFunc(files, func(file File) bool { return file.Key == file.self() }):
		return "", "", nil // the leases around them protect them
	case v.o.mode == "strict":
		return unprotected(p, true), "", nil
	}
	return "", unprotected(p, false), nil
}

// wait follows a ticket until the time of the hook is up. The door goes on following it.
func (v *visit) wait(ctx context.Context, q *api.Queued, files []File) (*agent.Reply, error) {
	ticket, asked := q.Ticket.ID, time.Now()
	reply, err := &agent.Reply{Queued: q}, error(nil)
	if v.o.wait > 0 {
		reply, err = v.caller.Wait(ctx, v.flowName(), ticket, v.o.wait)
	}
	if err == nil && reply.Queued == nil {
		return reply, nil
	}
	place := agent.Place{Ticket: ticket, Flow: v.flowName()}
	for _, file := range files {
		place.Keys = append(place.Keys, string(file.Key))
	}
	v.with(v.flowName(), func(f *flow) {
		forgetOldest(f.waits, maxCalls, func([]File) time.Time { return time.Time{} })
		f.waits[ticket] = files
		f.refuse(files, q.Holders, asked)
	})
	v.caller.Follow(place)
	return reply, err
}

// granted looks for changes that the agent has not seen.
func (v *visit) granted(g *api.Granted, files []File, waited bool) (deny, tell string) {
	v.learnSession(g)
	ticket := api.TicketOf(g.Lease.ID)
	v.with(v.flowName(), func(f *flow) {
		came := !g.Reused || !f.seen[g.Lease.ID]
		f.seen[g.Lease.ID] = true
		told := f.told[ticket]
		delete(f.told, ticket)
		delete(f.waits, ticket)
		if told {
			f.know(files)
			f.edit(files)
			return
		}
		for _, file := range files {
			c, when := v.changeOf(f, g, file, came)
			if c == nil {
				continue
			}
			// Between the question and the grant of one call the agent cannot have read the file. Otherwise
			// it may have, unless the harness reports that.
			if certain := waited || v.reads; certain && v.o.mode != "warn" {
				deny = lines(deny, staleText(file.Name, c, when, true))
			} else {
				tell = lines(tell, staleText(file.Name, c, when, false))
			}
		}
		if deny != "" || tell != "" {
			f.know(files)
		}
		if deny == "" {
			f.edit(files)
		}
	})
	if deny == "" {
		v.memory.wrote(v.conversation, v.caller.Agent(), v.flowName(), files)
	}
	return deny, tell
}

// changeOf returns the change of a file that the agent has not seen, nil for none. v.mu is held.
func (v *visit) changeOf(f *flow, g *api.Granted, file File, came bool) (c *change, when string) {
	knows, known := f.knows[file.self()]
	when = "since you read it"
	if !known {
		knows, known = f.refused[file.self()]
		when = "while you waited for it"
	}
	unseen := func(age time.Duration) bool { return !known || time.Now().Add(-age).After(knows) }
	w, ok := v.memory.lastWrite(v.conversation, v.flowName(), file.self())
	if ok && unseen(time.Since(w.at)) && (known || came && g.Changed) {
		by := api.Name{Agent: w.agent, Flow: w.flow, Session: w.agent}
		own := ""
		if w.by == v.conversation {
			own = w.agent
		}
		c = &change{agent: name(&by, own), ago: time.Since(w.at), text: w.purpose}
	}
	if c == nil && came && known {
		for _, note := range slices.Backward(g.Notes) {
			age := milliseconds(note.Age)
			if note.Key == file.Key && note.Outcome == edited && note.Agent != v.caller.Agent() && unseen(age) {
				c = &change{agent: name(&api.Name{Agent: note.Agent}, ""), ago: age, text: note.Text}
				break
			}
		}
	}
	if c == nil && came && g.Changed {
		if c = v.changeIn(g); c != nil && c.agent != "" && !unseen(c.ago) {
			c = nil
		}
	}
	return c, when
}

func (v *visit) purposeNow() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	text := v.purposeOf(v.flowName())
	if v.ev.Flow != mainFlow && v.ev.Type != "" {
		text = strings.TrimSuffix(firstLine(v.ev.Type)+": "+text, ": ")
	}
	return invisible.Clip(text, maxLine)
}

// yield releases what the main agent of the session holds of files that its sub-agent wants: the main
// agent waits for the sub-agent, and would wait for itself.
func (v *visit) yield(ctx context.Context, files []File) error {
	if v.ev.Flow == mainFlow {
		return nil
	}
	for _, place := range v.caller.News(mainFlow) { // kept for the main agent, which has not come for it
		if slices.ContainsFunc(place.Keys, func(key string) bool { return overlaps(key, files) }) {
			if err := ignoreProblem(v.caller.Leave(ctx, place.Ticket)); err != nil {
				return err
			}
		}
	}
	for _, held := range v.caller.Leases(mainFlow) {
		if slices.ContainsFunc(held.Keys, func(key string) bool { return overlaps(key, files) }) {
			if err := v.release(ctx, mainFlow, held); err != nil {
				return err
			}
		}
	}
	return nil
}

// overlaps reports whether a key is one of the files, or lies above or below one.
func overlaps(key string, files []File) bool {
	key = selfOf(key)
	return slices.ContainsFunc(files, func(file File) bool {
		k := string(file.self())
		return k == key || strings.HasPrefix(k, key+"/") || strings.HasPrefix(key, k+"/")
	})
}

// trees denies a command that changes files at large while another session holds one of them. It takes
// nothing: a lease on a whole checkout would stop all others.
func (v *visit) trees(ctx context.Context, outer []api.Lease) (deny string, err error) {
	var trees []File
	for _, folder := range v.ev.Trees {
		tree := v.locator.file(folder)
		trees = append(trees, tree)
		if inside := v.within([]File{tree}, outer)[0]; inside != tree {
			trees = append(trees, inside)
		}
	}
	for _, tree := range trees {
		var view api.KeyView
		if err := v.get(ctx, "/v1/keys/"+url.PathEscape(string(tree.Key)), nil, &view); err != nil {
			if err := ignoreProblem(err); err != nil {
				return "", err
			}
			continue
		}
		holders := view.Holders
		if view.More > 0 { // the session's own files may hide those of others
			more, err := v.holdersBelow(ctx, tree)
			if err != nil {
				return "", err
			}
			holders = append(holders, more...)
		}
		own := v.own()
		for i := range holders {
			h := &holders[i]
			if own != "" && h.Session == own || isOf(h, outer) {
				continue
			}
			files := []File{tree}
			if prefix := string(tree.Key) + "/"; strings.HasPrefix(string(h.Key), prefix) {
				files = append(files, File{Key: h.Key, Name: shown(strings.TrimPrefix(string(h.Key), prefix))})
			}
			return treeText(firstWord(v.ev.Tool), tree, h, files, own), nil
		}
	}
	return "", nil
}

// isOf reports whether a holder holds one of some leases. A listing of leases has no fences.
func isOf(h *api.Holder, leases []api.Lease) bool {
	return slices.ContainsFunc(leases, func(l api.Lease) bool {
		return h.Fence == l.Fence || h.Fence == 0 && h.Session == l.Holder.Session && h.Flow == l.Holder.Flow
	})
}

// holdersBelow lists the holders of files below a folder.
func (v *visit) holdersBelow(ctx context.Context, tree File) (holders []api.Holder, err error) {
	prefix := string(tree.Key) + "/"
	query := url.Values{"prefix": {prefix}, "limit": {"1000"}}
	for {
		var list api.LeaseList
		if err := v.get(ctx, "/v1/leases", query, &list); err != nil {
			return holders, ignoreProblem(err)
		}
		for _, lease := range list.Leases {
			for _, claim := range lease.Claims {
				if strings.HasPrefix(string(claim.Key), prefix) {
					holders = append(holders, api.Holder{
						Name: lease.Name, Purpose: lease.Purpose, Key: claim.Key, Liveness: lease.Liveness,
						HeartbeatAge: lease.HeartbeatAge, Held: lease.Held,
					})
					break
				}
			}
		}
		if list.Cursor == "" {
			return holders, nil
		}
		query.Set("cursor", list.Cursor)
	}
}

func firstWord(tool string) string { return invisible.Clip(strings.ToLower(shown(tool)), 32) }

// learnReads notes what the agent reads.
func (v *visit) learnReads() {
	if len(v.ev.Reads) == 0 {
		return
	}
	targets := make([]Target, 0, len(v.ev.Reads))
	for _, path := range v.ev.Reads {
		targets = append(targets, Target{Path: path})
	}
	files := v.locator.files(targets)
	v.with(v.flowName(), func(f *flow) {
		v.reads = true
		f.know(files)
	})
}

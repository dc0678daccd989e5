package hook

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/hook/shell"
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
	files := v.files(v.ev.Writes)
	var outer []api.Lease
	if len(files)+len(v.ev.Trees) > 0 || v.ev.Unknown != "" {
		outer = v.outer(ctx)
	}
	deny, command, err := v.trees(ctx, outer)
	if err != nil || deny != "" {
		return v.verdict(deny, ""), err
	}
	doubt, err := v.unknown(ctx, outer)
	if err != nil || doubt != "" && (v.o.unknown == "deny" || !v.asks) {
		return v.verdict(doubt, ""), err
	}
	var tell string
	if command != "" {
		tell = narrowedText(command)
	}
	if len(files) > 0 {
		files = v.within(files, outer)
		if err := v.yield(ctx, files); err != nil {
			return Verdict{}, err
		}
		var more string
		if deny, more, err = v.take(ctx, files); err != nil {
			return Verdict{}, err
		}
		tell = lines(tell, more)
	}
	if deny == "" {
		deny = v.beginWrites(ctx, files)
	}
	if deny == "" {
		v.with(v.flowName(), func(f *flow) { f.run(files) })
	}
	verdict := v.verdict(deny, tell)
	switch {
	case deny != "":
		return verdict, nil
	case doubt != "":
		verdict = v.verdict(doubt, tell)
		verdict.Ask = true
	default:
		verdict = v.verdict("", lines(tell, v.news()))
	}
	if verdict.Command = command; v.o.mode == "warn" {
		verdict.Command = ""
	}
	v.stage()
	return verdict, nil
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
	own := r.Claims
	for _, file := range files {
		if file.Shared != "" {
			r.Claims = append(r.Claims, api.ClaimRequest{Key: file.Shared, Mode: interlock.IntentExclusive.String()})
		}
	}
	reply, err := v.caller.Acquire(ctx, r, "")
	refused := err == nil && reply.Refused != nil
	if refused && len(own) < len(r.Claims) && reply.Refused.Code == interlock.CodeModeForbidden {
		r.Claims = own // a pattern allows no intents
		reply, err = v.caller.Acquire(ctx, r, "")
	}
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
	if left := time.Until(v.until); left > 0 {
		reply, err = v.caller.Wait(ctx, v.flowName(), ticket, left)
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
	knows, known := f.lastSaw(file)
	when = "since you read it"
	if !known {
		knows, known = f.refused[file.self()]
		when = "while you waited for it"
	}
	unseen := func(age time.Duration) bool { return !known || time.Now().Add(-age).After(knows) }
	w, ok := v.memory.lastWrite(v.conversation, v.flowName(), file)
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
	return slices.ContainsFunc(files, func(file File) bool { return related(key, string(file.self())) })
}

// related reports whether two keys are one, or one lies above the other.
func related(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// meets reports whether a lease on a key may stand in the way of an edit of the file.
func (f File) meets(key string) bool {
	return overlaps(key, []File{f}) || f.Shared != "" && related(key, string(f.Shared))
}

// trees denies a command that changes files at large, brings them into a commit or moves HEAD while another session
// holds one of them. It takes nothing: a lease on a whole checkout would stop all others. command is what the harness
// is to run instead, "" without one.
func (v *visit) trees(ctx context.Context, outer []api.Lease) (deny, command string, err error) {
	tree, h, files, err := v.heldTree(ctx, v.ev.Trees, outer)
	if err != nil || h == nil {
		return "", "", err
	}
	if commits(tree.Effect) && v.o.ownOnly && v.rewrites {
		narrowed, ok := shell.Narrow(v.ev.Command, v.ev.Dir, func(dir string) []string { return v.ownFiles(ctx, dir) })
		if ok && v.narrow(narrowed) {
			_, other, _, err := v.heldTree(ctx, v.ev.Trees, outer)
			if err != nil || other == nil {
				return "", narrowed, err
			}
		}
	}
	deny = treeText(firstWord(v.ev.Tool), tree.Effect, files, h, v.own(), v.remedy(ctx, tree), v.o.files)
	return deny, "", nil
}

// heldTree returns the first tree of a command that another session holds a file of, with what heldBelow tells of it.
func (v *visit) heldTree(ctx context.Context, trees []shell.Tree, outer []api.Lease) (
	tree shell.Tree, h *api.Holder, files []File, err error,
) {
	find := v.holderOf
	if len(trees) > maxAsked {
		find = v.holdersListed()
	}
	for _, tree := range trees {
		if h, files, err := v.heldBelow(ctx, tree, outer, find); err != nil || h != nil {
			return tree, h, files, err
		}
	}
	return shell.Tree{}, nil, nil, nil
}

// maxAsked is how many folders and paths of a command the server is asked about one by one.
const maxAsked = 4

// A finder returns the first holder of a file, or of one below it, that is one of others, nil for none.
type finder func(ctx context.Context, file File, foreign func(*api.Holder) bool) (*api.Holder, error)

// unknown returns what is to be said of a command that is not understood, "" for nothing: while another session holds a
// file of the checkout it may change that.
func (v *visit) unknown(ctx context.Context, outer []api.Lease) (doubt string, err error) {
	if v.ev.Unknown == "" || v.o.unknown == "allow" || v.ev.Dir == "" {
		return "", nil
	}
	h, files, err := v.heldBelow(ctx, shell.Tree{Path: v.ev.Dir, Whole: true}, outer, v.holderOf)
	if err != nil || h == nil {
		return "", err
	}
	return unknownText(firstWord(v.ev.Tool), v.ev.Unknown, files, h, v.own()), nil
}

// heldBelow returns a holder of another session that has a file of a tree, nil for none, and the tree and that file as
// the model knows them.
func (v *visit) heldBelow(ctx context.Context, tree shell.Tree, outer []api.Lease, find finder) (
	*api.Holder, []File, error,
) {
	folder := tree.Path
	if tree.Whole {
		folder = v.locator.checkout(folder)
	}
	file := v.locator.file(folder)
	roots := []File{file}
	if inside := v.within([]File{file}, outer)[0]; inside != file {
		roots = append(roots, inside)
	}
	if file.Shared != "" {
		roots = append(roots, File{Key: file.Shared, Name: file.Name})
	}
	own := v.own()
	foreign := func(h *api.Holder) bool {
		// Intents on the repository are those of edits in other copies.
		return (own == "" || h.Session != own) && !isOf(h, outer) && !isIntent(h.Mode)
	}
	if tree.Effect == shell.Records { // only what agents have staged
		anyone := foreign
		foreign = func(h *api.Holder) bool { return anyone(h) && v.index.has(v.conversation, roots[0].Key, h.Key) }
	}
	for _, root := range roots {
		h, err := find(ctx, root, foreign)
		if err != nil {
			return nil, nil, err
		}
		if h == nil {
			continue
		}
		files := []File{root}
		if prefix := string(root.Key) + "/"; strings.HasPrefix(string(h.Key), prefix) {
			files = append(files, File{Key: h.Key, Name: shown(strings.TrimPrefix(string(h.Key), prefix))})
		}
		return h, files, nil
	}
	return nil, nil, nil
}

// holderOf is a finder that asks for the key of the file.
func (v *visit) holderOf(ctx context.Context, file File, foreign func(*api.Holder) bool) (*api.Holder, error) {
	var view api.KeyView
	if err := v.get(ctx, "/v1/keys/"+url.PathEscape(string(file.Key)), nil, &view); err != nil {
		return nil, ignoreProblem(err)
	}
	if i := slices.IndexFunc(view.Holders, func(h api.Holder) bool { return foreign(&h) }); i >= 0 {
		return &view.Holders[i], nil
	}
	if view.More > 0 { // the session's own files may hide those of others
		return v.holderBelow(ctx, file, foreign)
	}
	return nil, nil
}

// holdersListed returns a finder that asks once for all leases of a repository.
func (v *visit) holdersListed() finder {
	listed := map[interlock.Key][]*api.Holder{}
	return func(ctx context.Context, file File, foreign func(*api.Holder) bool) (*api.Holder, error) {
		name, _, _ := strings.Cut(string(file.Key), "/")
		repository := File{Key: interlock.Key(name)}
		all, asked := listed[repository.Key]
		if !asked {
			collect := func(h *api.Holder) bool {
				all = append(all, h)
				return false
			}
			if _, err := v.holderOf(ctx, repository, collect); err != nil {
				return nil, err
			}
			listed[repository.Key] = all
		}
		i := slices.IndexFunc(all, func(h *api.Holder) bool {
			return related(string(h.Key), string(file.Key)) && foreign(h)
		})
		if i < 0 {
			return nil, nil
		}
		return all[i], nil
	}
}

// isIntent reports whether a claim is on something below its key alone.
func isIntent(mode api.Mode) bool {
	return mode == interlock.IntentExclusive.String() || mode == interlock.IntentShared.String()
}

// isOf reports whether a holder holds one of some leases. A listing of leases has no fences.
func isOf(h *api.Holder, leases []api.Lease) bool {
	return slices.ContainsFunc(leases, func(l api.Lease) bool {
		return h.Fence == l.Fence || h.Fence == 0 && h.Session == l.Holder.Session && h.Flow == l.Holder.Flow
	})
}

// holderBelow returns the first holder of a file below a folder that is one of others, nil for none.
func (v *visit) holderBelow(ctx context.Context, tree File, foreign func(*api.Holder) bool) (*api.Holder, error) {
	prefix := string(tree.Key) + "/"
	query := url.Values{"prefix": {prefix}, "limit": {"1000"}}
	for {
		var list api.LeaseList
		if err := v.get(ctx, "/v1/leases", query, &list); err != nil {
			return nil, ignoreProblem(err)
		}
		for _, lease := range list.Leases {
			for _, claim := range lease.Claims {
				h := &api.Holder{
					Name: lease.Name, Purpose: lease.Purpose, Key: claim.Key, Mode: claim.Mode,
					Liveness: lease.Liveness, HeartbeatAge: lease.HeartbeatAge, Held: lease.Held,
				}
				if strings.HasPrefix(string(claim.Key), prefix) && foreign(h) {
					return h, nil
				}
			}
		}
		if list.Cursor == "" {
			return nil, nil
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
	targets := make([]shell.Target, 0, len(v.ev.Reads))
	for _, path := range v.ev.Reads {
		targets = append(targets, shell.Target{Path: path})
	}
	files := v.files(targets)
	v.with(v.flowName(), func(f *flow) {
		v.reads = true
		f.know(files)
	})
}

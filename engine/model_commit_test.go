package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// written is one write of a commit. The model forgets none.
type written struct {
	ns  interlock.Namespace
	at  engine.Time
	doc interlock.Document
}

// version is that of a namespace's last commit.
func (m *model) version(ns interlock.Namespace) (v interlock.Version) {
	v = m.beginning(ns)
	for _, w := range m.written {
		if w.ns == ns {
			v = max(v, w.doc.Version)
		}
	}
	return v
}

// readable reports whether a caller can have read as of a version. After a jump only later
// versions are distinct from those assigned elsewhere.
func (m *model) readable(asOf interlock.Version, ns interlock.Namespace) bool {
	last := m.version(ns)
	return asOf <= last && (asOf == 0 || last <= m.base || asOf > m.base)
}

// document returns the edition of a key as of a version of the namespace.
func (m *model) document(ns interlock.Namespace, key interlock.Key, v interlock.Version) interlock.Document {
	doc := interlock.Document{Key: key, Absent: true}
	for _, w := range m.written {
		if w.ns == ns && w.doc.Key == key && w.doc.Version <= v {
			doc = w.doc
			doc.Age = m.now.Sub(w.at)
		}
	}
	return doc
}

func (m *model) documentNow(ns interlock.Namespace, key interlock.Key) interlock.Document {
	doc := m.document(ns, key, m.version(ns))
	doc.Version = max(doc.Version, m.beginning(ns))
	return doc
}

// documents are those of a namespace that are there, in the order of their keys.
func (m *model) documents(ns interlock.Namespace) (list []interlock.Document) {
	var keys []interlock.Key
	for _, w := range m.written {
		if w.ns == ns && !slices.Contains(keys, w.doc.Key) {
			keys = append(keys, w.doc.Key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if doc := m.documentNow(ns, key); !doc.Absent {
			list = append(list, doc)
		}
	}
	return list
}

// spelledCommit is a commit with each key in its one spelling.
func (m *model) spelledCommit(c *engine.Commit) *engine.Commit {
	own := *c
	own.Reads, own.Writes = slices.Clone(c.Reads), slices.Clone(c.Writes)
	for i := range own.Reads {
		own.Reads[i].Key = m.spell(c.Namespace, own.Reads[i].Key)
	}
	for i := range own.Writes {
		own.Writes[i].Key = m.spell(c.Namespace, own.Writes[i].Key)
	}
	return &own
}

// expectCommit: a commit is carried out if nothing speaks against it.
func (m *model) expectCommit(c *engine.Commit) answer {
	if !c.Session.IsZero() {
		if s := m.sessionByID(c.Namespace, c.Session); s == nil {
			return refusalKey(interlock.CodeUnknownSession)
		} else if s.ended {
			return refusalKey(interlock.CodeSessionEnded)
		}
	}
	return m.expectWrites(c)
}

// expectWrites is expectCommit whether or not its session lives: a lease in grace may still be
// used to commit.
func (m *model) expectWrites(c *engine.Commit) answer {
	if codes := m.malformed(c); len(codes) > 0 {
		return refusalKey(codes...)
	}
	c = m.spelledCommit(c)
	var codes []interlock.Code
	for _, id := range c.Leases {
		about := m.withLease(&c.Head, id, func(r *request) answer {
			if codes := m.notTaken(&c.Head, r); len(codes) > 0 {
				return refusalKey(codes...)
			}
			if r.active() {
				return answer{outcome: engine.Done}
			}
			return refusalKey(interlock.CodeParked)
		})
		if about.outcome == 0 {
			return answer{} // what is said of such a lease is open
		}
		codes = append(codes, about.codes...)
	}
	codes = append(codes, m.notAdmitted(c)...)
	stale := m.staleIn(c)
	if len(stale) > 0 {
		codes = append(codes, interlock.CodeStale)
	}
	_, wrong := m.outcomes(c)
	if codes = append(codes, wrong...); len(codes) > 0 {
		return answer{outcome: engine.Refused, codes: codes, check: func(got *engine.Effect) error {
			return errors.Join(m.checkStale(stale, got), m.checkKeeper(c, got))
		}}
	}
	version := m.version(c.Namespace)
	if len(c.Writes) > 0 {
		version = max(version, m.base) + 1
	}
	return m.expectCommitted(c, version)
}

// expectCommitted: a commit tells what it wrote, and so it does when it is repeated.
func (m *model) expectCommitted(c *engine.Commit, version interlock.Version) answer {
	c = m.spelledCommit(c)
	return answer{outcome: engine.Done, check: func(got *engine.Effect) error {
		if got.Version != version || len(got.Documents) != len(c.Writes) {
			return fmt.Errorf(
				"a commit of %d writes made version %d with %d documents, want version %d", len(c.Writes), got.Version,
				len(got.Documents), version,
			)
		}
		for i := range got.Documents {
			want := m.document(c.Namespace, c.Writes[i].Key, version)
			if c.Writes[i].Op != interlock.Add {
				want.Body = nil
			}
			if got.Repeated && want.Version != version { // written under another spelling of the key
				w := c.Writes[i]
				want = interlock.Document{Key: w.Key, Version: version, Op: w.Op, Absent: w.Op == interlock.Delete}
			}
			if err := sameDocument(want, got.Documents[i]); err != nil {
				return err
			}
		}
		return nil
	}}
}

// malformed returns the codes for errors of a commit that do not depend on the state.
func (m *model) malformed(c *engine.Commit) (codes []interlock.Code) {
	for _, r := range c.Reads {
		if _, err := engine.ParseKey(string(r.Key)); err != nil {
			codes = append(codes, interlock.CodeInvalidKey)
		}
		if r.Present && (r.Absent || r.Version != 0) {
			codes = append(codes, interlock.CodeInvalidRequest)
		}
	}
	for _, w := range c.Writes {
		if _, err := engine.ParseKey(string(w.Key)); err != nil {
			codes = append(codes, interlock.CodeInvalidKey)
		}
		adds := w.Delta != 0 || w.Min != nil || w.Max != nil
		switch {
		case w.Op == 0 || w.Op > interlock.Add, adds && w.Op != interlock.Add, w.ContentType != "" && w.Op != interlock.Put,
			len(w.Body) > 0 && (w.Op == interlock.Delete || w.Op == interlock.Add), w.Min != nil && w.Max != nil && *w.Min > *w.Max:
			codes = append(codes, interlock.CodeInvalidRequest)
		case w.Op == interlock.Put && jsonType(w.ContentType) && !json.Valid(w.Body):
			codes = append(codes, interlock.CodeInvalidRequest)
		case w.Op == interlock.Put && w.ContentType != "" && !strings.Contains(w.ContentType, "/"):
			codes = append(codes, interlock.CodeInvalidRequest)
		case w.Op == interlock.Merge && !json.Valid(w.Body):
			codes = append(codes, interlock.CodeBadPatch)
		}
	}
	return codes
}

func jsonType(contentType string) bool {
	return contentType == "" || contentType == interlock.JSONType || strings.HasSuffix(contentType, "+json")
}

// notAdmitted names the rules of keys, versions and patterns that a commit breaks.
func (m *model) notAdmitted(c *engine.Commit) (codes []interlock.Code) {
	var reads, versioned, writes []interlock.Key
	unknown := func(key interlock.Key) {
		if m.pattern(c.Namespace, key) == nil && m.settings[c.Namespace].Closed {
			codes = append(codes, interlock.CodeUnmatchedKey)
		}
	}
	for _, r := range c.Reads {
		unknown(r.Key)
		if slices.Contains(reads, r.Key) {
			codes = append(codes, interlock.CodeDuplicateClaim)
		}
		if !r.Absent && r.Version > m.version(c.Namespace) {
			codes = append(codes, interlock.CodeFutureVersion)
		}
		reads = append(reads, r.Key)
		if !r.Present {
			versioned = append(versioned, r.Key)
		}
	}
	if !m.readable(c.AsOf, c.Namespace) {
		codes = append(codes, interlock.CodeFutureVersion)
	}
	for _, w := range c.Writes {
		unknown(w.Key)
		if slices.Contains(writes, w.Key) {
			codes = append(codes, interlock.CodeDuplicateClaim)
		}
		writes = append(writes, w.Key)
		p := m.pattern(c.Namespace, w.Key)
		codes = append(codes, reserved(w.Key, principalOf(c.Actor))...)
		codes = append(codes, m.notChanged(c, p, &w)...)
		switch {
		case p == nil:
		case p.Write == interlock.WriteVersion && w.Op != interlock.Add && c.AsOf == 0 && !slices.Contains(versioned, w.Key):
			codes = append(codes, interlock.CodeVersionRequired)
		case p.Write == interlock.WriteSingle && p.WriterQueue == "" && c.Actor != p.Writer,
			p.WriterQueue != "" && (!m.answered(c.Namespace).isFor(p.WriterQueue) || m.fenceFor(c, w.Key) == 0):
			codes = append(codes, interlock.CodeWriterOnly)
		case p.Write == interlock.WriteLease && m.fenceFor(c, w.Key) == 0:
			codes = append(codes, interlock.CodeLeaseRequired)
		case p.Write == interlock.WriteLease, p.WriterQueue != "":
			codes = append(codes, m.notWritten(c, p, w.Key)...)
		}
	}
	return codes
}

// notChanged returns the codes that forbid a write to change the document at its key, under
// pattern p: another holder has the key, or the write does not name the edition that it
// replaces.
func (m *model) notChanged(c *engine.Commit, p *interlock.Pattern, w *interlock.Write) (codes []interlock.Code) {
	if p == nil {
		p = &interlock.Pattern{}
	}
	if p.Write == interlock.WriteOpen || w.Op == interlock.Add {
		return nil
	}
	covered := m.fenceFor(c, w.Key) != 0
	if !covered && len(m.keepersOf(c, w.Key)) > 0 {
		codes = append(codes, interlock.CodeHeld)
	}
	named := c.AsOf > 0 || slices.ContainsFunc(c.Reads, func(r interlock.Read) bool { return r.Key == w.Key })
	switch {
	case p.Write != interlock.WriteGuarded || named || m.documentNow(c.Namespace, w.Key).Absent:
	case covered:
		codes = append(codes, m.notWritten(c, p, w.Key)...)
	default:
		codes = append(codes, interlock.CodeVersionRequired)
	}
	return codes
}

// keepersOf returns the requests that hold a key, or one above it, exclusively and do not
// belong to the committing flow. A flow may have several.
func (m *model) keepersOf(c *engine.Commit, key interlock.Key) (list []*request) {
	flow := c.Flow
	if flow == "" {
		flow = "main"
	}
	for _, r := range m.requests {
		if r.ns != c.Namespace || !r.holds() || r.phase == closed ||
			r.session != nil && r.session.id == c.Session && r.ask.Flow == flow {
			continue
		}
		for _, claim := range r.claims {
			if claim.Mode == interlock.Exclusive && (claim.Key == key || above(claim.Key, key)) {
				list = append(list, r)
				break
			}
		}
	}
	return list
}

// checkKeeper compares the holder that a refused commit names.
func (m *model) checkKeeper(c *engine.Commit, got *engine.Effect) error {
	if got.Code != interlock.CodeHeld {
		return nil
	}
	x := got.Conflict
	if x == nil || !x.Writing || len(x.Holders) != 1 {
		return fmt.Errorf("a commit that meets a lease names its holder, and not %+v", x)
	}
	list := m.keepersOf(c, x.Key)
	if !slices.ContainsFunc(list, func(r *request) bool { return r.fence == x.Holders[0].Fence }) {
		return fmt.Errorf("the holder of %s that is named has fence %d, and it is one of %v", x.Key, x.Holders[0].Fence, list)
	}
	return nil
}

// fenceFor is that of the first lease of a commit that claims a key, or one above it,
// exclusively; 0 for none.
func (m *model) fenceFor(c *engine.Commit, key interlock.Key) interlock.Fence {
	_, r := m.coverFor(c, key)
	if r == nil {
		return 0
	}
	return r.fence
}

// coverFor is that lease, and its claim; nil for none.
func (m *model) coverFor(c *engine.Commit, key interlock.Key) (interlock.Claim, *request) {
	for _, id := range c.Leases {
		r := m.byID(c.Namespace, id)
		if r == nil {
			continue
		}
		for _, claim := range r.claims {
			if claim.Mode == interlock.Exclusive && (claim.Key == key || above(claim.Key, key)) {
				return claim, r
			}
		}
	}
	return interlock.Claim{}, nil
}

// staleIn lists what of a commit's reads is not as it was read.
func (m *model) staleIn(c *engine.Commit) (list []interlock.Stale) {
	ns := c.Namespace
	add := func(key interlock.Key, v interlock.Version, then interlock.Document, known bool) {
		stale := interlock.Stale{Then: then, Known: known, Now: m.documentNow(ns, key)}
		m.tellWrites(&stale, ns, v)
		list = append(list, stale)
	}
	read := func(key interlock.Key) bool {
		return slices.ContainsFunc(c.Reads, func(r interlock.Read) bool { return r.Key == key })
	}
	asOf := func(key interlock.Key) {
		if c.AsOf > 0 && m.documentNow(ns, key).Version > c.AsOf {
			then, known := m.document(ns, key, c.AsOf), true
			if c.AsOf < m.beginning(ns) { // nothing is known of documents from before the namespace began
				then, known = interlock.Document{Key: key, Version: c.AsOf}, false
			}
			add(key, c.AsOf, then, known)
		}
	}
	for _, r := range c.Reads {
		now, then := m.documentNow(ns, r.Key), m.document(ns, r.Key, r.Version)
		switch {
		case r.Present && now.Absent:
			var since interlock.Version
			for _, w := range m.written {
				if w.ns == ns && w.doc.Key == r.Key && !w.doc.Absent {
					since = max(since, w.doc.Version)
				}
			}
			add(r.Key, since, interlock.Document{Key: r.Key}, false)
		case r.Present:
			asOf(r.Key)
		case (r.Absent || r.Version == 0) && !now.Absent:
			since := r.Version
			for _, w := range m.written {
				if w.ns == ns && w.doc.Key == r.Key && w.doc.Absent {
					since = max(since, w.doc.Version)
				}
			}
			add(r.Key, since, interlock.Document{Key: r.Key, Version: r.Version, Absent: true}, true)
		case r.Absent || r.Version == 0 || now.Version == r.Version:
			asOf(r.Key)
		case then.Version == r.Version || then.Version == 0 && r.Version >= m.beginning(ns):
			add(r.Key, r.Version, then, true)
		default:
			add(r.Key, r.Version, interlock.Document{Key: r.Key, Version: r.Version}, false)
		}
	}
	for _, w := range c.Writes {
		if w.Op != interlock.Add && !read(w.Key) {
			asOf(w.Key)
		}
	}
	return list
}

// tellWrites records the authors of a document after a version.
func (m *model) tellWrites(s *interlock.Stale, ns interlock.Namespace, v interlock.Version) {
	for _, w := range m.written {
		if w.ns == ns && w.doc.Key == s.Now.Key && w.doc.Version > v {
			s.Writes++
			doc := w.doc
			doc.Age = m.now.Sub(w.at)
			s.Between = append(s.Between, doc)
		}
	}
	if n := len(s.Between); n > 0 {
		s.Between = s.Between[max(0, n-1-interlock.MaxBetween) : n-1]
	}
}

// sameWrites compares the authors of a document.
func sameWrites(want, got *interlock.Stale) error {
	if got.Writes != want.Writes || len(got.Between) != len(want.Between) {
		return fmt.Errorf("%s was written %d times and tells %d before the last, want %d and %d",
			got.Now.Key, got.Writes, len(got.Between), want.Writes, len(want.Between))
	}
	for i := range want.Between {
		want := want.Between[i]
		want.Body = nil
		if err := sameDocument(want, got.Between[i]); err != nil {
			return fmt.Errorf("%s in between: %w", got.Now.Key, err)
		}
	}
	return nil
}

// checkStale compares what a refusal tells about what changed.
func (m *model) checkStale(want []interlock.Stale, got *engine.Effect) error {
	if got.Code != interlock.CodeStale {
		if len(got.Stale) > 0 {
			return errors.New("a refusal for another reason tells what is stale")
		}
		return nil
	}
	if shown := min(len(want), interlock.MaxStale); len(got.Stale) != shown || got.StaleMore != (len(want) > shown) {
		return fmt.Errorf("told of %d stale documents, want %d", len(got.Stale), len(want))
	}
	if got.Conflict == nil || got.Conflict.Kind != interlock.VersionMoved || got.Conflict.Key != want[0].Now.Key {
		return fmt.Errorf("a stale commit is a conflict about versions, and not %+v", got.Conflict)
	}
	return m.sameStale(want, got.Stale)
}

// sameStale compares descriptions of changes, as far as they are expected.
func (m *model) sameStale(want, got []interlock.Stale) error {
	for i, s := range got {
		if err := sameDocument(want[i].Then, s.Then); err != nil {
			return fmt.Errorf("as it was read: %w", err)
		}
		if err := sameDocument(want[i].Now, s.Now); err != nil {
			return fmt.Errorf("as it is: %w", err)
		}
		if s.Known != want[i].Known {
			return fmt.Errorf("%s: known %v, want %v", s.Now.Key, s.Known, want[i].Known)
		}
		if err := sameWrites(&want[i], &s); err != nil {
			return err
		}
	}
	return nil
}

// outcomes returns the documents that a commit writes, or the rules that forbid it.
func (m *model) outcomes(c *engine.Commit) (list []interlock.Document, codes []interlock.Code) {
	state := map[interlock.Key]int{} // what each document takes
	for _, doc := range m.documents(c.Namespace) {
		state[doc.Key] = counts(doc)
	}
	before, size := len(state), sum(state)
	by := interlock.Document{Agent: c.Agent, Flow: c.Flow, Principal: c.Actor, Note: c.Note}
	if s := m.sessionByID(c.Namespace, c.Session); s != nil {
		by.Agent, by.Session = s.agent, s.name
		if c.Flow == "" {
			by.Flow = "main"
		}
	}
	for _, w := range c.Writes {
		old, doc := m.documentNow(c.Namespace, w.Key), by
		doc.Key, doc.Op, doc.ContentType = w.Key, w.Op, interlock.JSONType
		switch w.Op {
		case interlock.Put:
			doc.Body = w.Body
			if w.ContentType != "" {
				doc.ContentType = w.ContentType
			}
		case interlock.Delete:
			doc.Absent, doc.ContentType = true, ""
		case interlock.Merge:
			if !old.Absent {
				doc.ContentType = old.ContentType
			} else {
				old.Body = []byte("null")
			}
			if !jsonType(doc.ContentType) {
				codes = append(codes, interlock.CodeBadPatch)
				continue
			}
			doc.Body = modelMerge(old.Body, w.Body)
		case interlock.Add:
			total, ok := big.NewInt(0), true
			if !old.Absent {
				total, ok = total.SetString(string(bytes.TrimSpace(old.Body)), 10)
				ok = ok && total.IsInt64() && jsonType(old.ContentType)
			}
			if !ok {
				codes = append(codes, interlock.CodeNotACounter)
				continue
			}
			total.Add(total, big.NewInt(w.Delta))
			if !total.IsInt64() || w.Min != nil && total.Int64() < *w.Min || w.Max != nil && total.Int64() > *w.Max {
				codes = append(codes, interlock.CodeOutOfBounds)
				continue
			}
			doc.Body = []byte(total.String())
		}
		doc.Size = len(doc.Body)
		if state[w.Key] = counts(doc); doc.Absent {
			delete(state, w.Key)
		}
		list = append(list, doc)
	}
	quota := m.settings[c.Namespace].Quota
	if quota.Documents > 0 && len(state) > max(before, quota.Documents) {
		codes = append(codes, interlock.CodeTooManyDocuments)
	}
	if quota.State > 0 && sum(state) > max(size, quota.State) {
		codes = append(codes, interlock.CodeTooMuchState)
	}
	return list, codes
}

// counts returns what a document counts in the state of its namespace.
func counts(d interlock.Document) int {
	n := interlock.DocumentBytes + len(d.Body)
	for _, text := range []string{string(d.Key), d.ContentType, d.Agent, d.Flow, d.Principal, d.Note} {
		n += len(text)
	}
	return n
}

func sum(of map[interlock.Key]int) (n int) {
	for _, v := range of {
		n += v
	}
	return n
}

// modelMerge is the pseudo-code of RFC 7396.
func modelMerge(target, patch []byte) []byte {
	var merge func(target, patch any) any
	merge = func(target, patch any) any {
		p, ok := patch.(map[string]any)
		if !ok {
			return patch
		}
		t, ok := target.(map[string]any)
		if !ok {
			t = map[string]any{}
		}
		for name, value := range p {
			if value == nil {
				delete(t, name)
			} else {
				t[name] = merge(t[name], value)
			}
		}
		return t
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // what is not escaped takes less
	if err := enc.Encode(merge(decodedJSON(target), decodedJSON(patch))); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// decodedJSON reads a value, with its numbers as they are written.
func decodedJSON(b []byte) (v any) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

// permitWritten: a commit makes exactly its writes, all with the next version.
func (m *model) permitWritten(cmd engine.Command, ev *record.Event) error {
	c := m.commitOf(cmd)
	if c == nil || len(ev.Claims) != 1 {
		return errors.New("nobody commits")
	}
	c = m.spelledCommit(c)
	if m.committing == 0 {
		m.outcome, _ = m.outcomes(c)
		m.committing = max(m.version(c.Namespace), m.base) + 1
	}
	i := slices.IndexFunc(c.Writes, func(w interlock.Write) bool { return w.Key == ev.Claims[0].Key })
	if i < 0 || len(m.outcome) != len(c.Writes) {
		return fmt.Errorf("the commit does not write %s, or cannot", ev.Claims[0].Key)
	}
	want := m.outcome[i]
	if ev.Version != m.committing || m.documentNow(c.Namespace, want.Key).Version >= ev.Version {
		return fmt.Errorf("%s gets version %d, want %d (I11)", want.Key, ev.Version, m.committing)
	}
	by := ev.Agent == want.Agent && ev.Flow == want.Flow && ev.SessionName == want.Session && ev.Actor == want.Principal
	same := interlock.WriteOp(ev.Op) == want.Op && ev.ContentType == want.ContentType && sameBody(want, ev.Blob)
	if !same || !by || ev.Fence != m.fenceFor(c, want.Key) || ev.Note != want.Note {
		return fmt.Errorf("%+v with %s is not what the commit makes of it: %+v with %s", ev, ev.Blob, want, want.Body)
	}
	return nil
}

// sameBody: how a merged document is spelled is open.
func sameBody(want interlock.Document, got []byte) bool {
	if want.Op == interlock.Merge {
		return reflect.DeepEqual(decodedJSON(want.Body), decodedJSON(got))
	}
	return bytes.Equal(want.Body, got)
}

func (m *model) foldWritten(ev *record.Event) {
	doc := interlock.Document{
		Key: ev.Claims[0].Key, Version: ev.Version, Absent: interlock.WriteOp(ev.Op) == interlock.Delete,
		ContentType: ev.ContentType, Body: ev.Blob, Size: len(ev.Blob), Op: interlock.WriteOp(ev.Op), Agent: ev.Agent,
		Session: ev.SessionName, Flow: ev.Flow, Principal: ev.Actor, Fence: ev.Fence, Note: ev.Note,
	}
	m.written = append(m.written, written{ev.Namespace, ev.At, doc})
}

func sameDocument(want, got interlock.Document) error {
	if len(want.Body) == 0 {
		want.Body = nil
	}
	if len(got.Body) == 0 {
		got.Body = nil
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("the document %+v with the body %s, want %+v with %s", got, got.Body, want, want.Body)
	}
	return nil
}

// checkState compares how many documents there are, and how large.
func (m *model) checkState(c engine.Counts, namespaces []interlock.Namespace) error {
	count, size := 0, 0
	for _, ns := range namespaces {
		for _, doc := range m.documents(ns) {
			count++
			size += counts(doc)
		}
	}
	if c.Documents != count || c.StateBytes != size {
		return fmt.Errorf("the engine counts %d documents of %d bytes, want %d of %d", c.Documents, c.StateBytes, count, size)
	}
	return nil
}

// checkDocuments compares what can be read of the state.
func (m *model) checkDocuments(e *engine.Engine, ns interlock.Namespace, keys []interlock.Key) error {
	list, asOf, err := e.Documents(ns, keys, true)
	if err != nil || asOf != m.version(ns) {
		return fmt.Errorf("Documents(%s) as of %d, want %d: %w", ns, asOf, m.version(ns), err)
	}
	for i, got := range list {
		if err := sameDocument(m.documentNow(ns, m.spell(ns, keys[i])), got); err != nil {
			return err
		}
	}
	for v := m.beginning(ns); v <= asOf; v++ {
		key := keys[int(v)%len(keys)]
		got, err := e.DocumentAt(ns, key, v)
		if err != nil {
			return fmt.Errorf("DocumentAt(%s, %s, %d): %w", ns, key, v, err)
		}
		if err := sameDocument(m.document(ns, m.spell(ns, key), v), got); err != nil {
			return fmt.Errorf("with version %d: %w", v, err)
		}
	}
	if _, err := e.DocumentAt(ns, keys[0], asOf+1); !errors.Is(err, &interlock.Error{Code: interlock.CodeFutureVersion}) {
		return fmt.Errorf("version %d was never given out, and the answer is %w", asOf+1, err)
	}
	all, want := e.DocumentsFrom(ns, "", "", 0, true), m.documents(ns)
	if len(all) != len(want) {
		return fmt.Errorf("%d documents are listed, want %d", len(all), len(want))
	}
	for i := range all {
		if err := sameDocument(want[i], all[i]); err != nil {
			return err
		}
	}
	return nil
}

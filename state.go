package interlock

import "time"

// Document is the guarded state of a key: a JSON value or bytes, with the version that it got
// when it was last written. Versions count a namespace's commits: all writes of one commit
// carry one version, and a later commit's is higher, for any keys. So a version also names a
// moment: the state of the whole namespace after that commit.
type Document struct {
	Key Key
	// Version is that of the commit that wrote it, or deleted it. Of a key that was
	// never written it is 0, or the highest version of a deletion that is forgotten.
	Version Version
	// Absent reports that there is no document: never written, or deleted.
	Absent bool

	ContentType string
	Body        []byte // never changed; nil when it was not asked for
	Size        int    // of Body

	// The writer, and how and when it wrote. Agent, Flow and Note are other agents' text.
	Op        WriteOp
	Agent     string
	Session   string // public name
	Flow      string
	Principal string
	Fence     Fence // of the lease that it was written under; 0 for none
	Note      string
	Age       time.Duration

	// Earlier are the writes before that one, oldest first and without bodies, of a
	// document that came with a grant: at most MaxEarlier.
	Earlier []Document
}

// JSONType is the content type of JSON documents. A type that ends in +json is JSON, too; only
// they can be merged and compared member by member.
const JSONType = "application/json"

// Read is a version that a commit depends on: it is refused if the key's state has
// another one by now.
type Read struct {
	Key     Key
	Version Version // 0 means Absent, unless Present is set
	Absent  bool    // there must be no document, whatever version its deletion had
	// Present requires a document of any version; Version is 0 then. It prevents a write to a
	// deleted document, but not the overwriting of a change: under WriteGuarded a commit
	// declares with it that it overwrites a version that it has not read.
	Present bool
}

// WriteOp is the operation of a write on a document. The numbers are in journals.
type WriteOp uint8

const (
	// Put replaces the document by Body.
	Put WriteOp = 1 + iota
	// Delete removes it. Its version stays behind.
	Delete
	// Merge applies Body, a JSON merge patch (RFC 7396), to a JSON document; an absent one
	// counts as null.
	Merge
	// Add adds Delta to a counter: a JSON document that is an integer of 64 bits; an
	// absent one is 0. Additions commute, so they need neither a version nor a lease to
	// be right, and two of them are never in conflict.
	Add
)

var writeOpNames = [...]string{Put: "put", Delete: "delete", Merge: "merge", Add: "add"}

// String returns the name that the HTTP API uses.
func (o WriteOp) String() string { return nameOf(writeOpNames[:], o) }

// ParseWriteOp parses the text of WriteOp.String.
func ParseWriteOp(s string) (WriteOp, bool) {
	if s == "" {
		return 0, false
	}
	return parseName[WriteOp](writeOpNames[:], s)
}

// Write is one change of a commit.
type Write struct {
	Key         Key
	Op          WriteOp
	ContentType string // of Put; "" means JSONType
	Body        []byte // of Put and Merge

	Delta    int64  // of Add
	Min, Max *int64 // of Add: the bounds within which the sum must be; nil for none
}

// Stale is a document that is not as it was read.
type Stale struct {
	// as it was read: at least its Key and Version, 0 for Read.Present; with Body if that version is
	// still kept
	Then   Document
	Known  bool     // Then is known in full
	Now    Document // as it is
	Writes int      // how many commits wrote it since, as far as they are kept
	// Between are the documents after each of these commits except the one that made Now,
	// oldest first and without bodies. At most MaxBetween, the newest; Left returns the number
	// of the earlier ones.
	Between []Document
}

// Left counts the writes before the last that are not in Between.
func (s *Stale) Left() int { return max(0, s.Writes-1-len(s.Between)) }

// WritePolicy defines which callers may commit to the keys of a pattern, and how.
type WritePolicy uint8

const (
	// WriteGuarded protects documents from being overwritten unseen: a commit that puts,
	// merges or deletes an existing document names the version that it read, or a lease that
	// claims the key, or an ancestor of it, exclusively, or declares with Read.Present that any
	// version will do. The first write of a document needs none of these. An exclusive lease of
	// another holder blocks each write that does not name it, also the first one of a
	// document. Additions commute, so they are always free. It is also the policy of keys that
	// match no pattern.
	WriteGuarded WritePolicy = iota
	// WriteVersion demands that a commit names the version that it read of each key
	// that it puts, deletes or merges.
	WriteVersion
	// WriteLease demands that a commit names a lease that claims the key, or an
	// ancestor of it, exclusively. That the lease still lives is checked in the step
	// that writes.
	WriteLease
	// WriteSingle lets only Pattern.Writer commit, or an acknowledgement of a message
	// to the key by a worker of Pattern.WriterQueue.
	WriteSingle
	// WriteOpen lets every caller commit; only the versions that a commit names are checked. It
	// is the only policy under which the lease of another holder is not looked at.
	WriteOpen
)

var writePolicyNames = [...]string{
	WriteGuarded: "guarded", WriteVersion: "version", WriteLease: "lease", WriteSingle: "single-writer", WriteOpen: "open",
}

// String returns the name that the HTTP API uses.
func (p WritePolicy) String() string { return nameOf(writePolicyNames[:], p) }

// ParseWritePolicy parses the text of WritePolicy.String.
func ParseWritePolicy(s string) (WritePolicy, bool) {
	return parseName[WritePolicy](writePolicyNames[:], s)
}

// Contention counts, for the keys of one pattern (or of one class of keys that fit
// none), how the two strategies fare: since the server began its term, the older
// counts fading.
type Contention struct {
	Pattern   string      // its name, or the class
	Commits   uint64      // that went through by version, without a lease
	Conflicts uint64      // that were refused as stale
	Retries   uint64      // that went through after a refusal of the same caller
	Leased    uint64      // that went through in the name of a lease
	Leases    uint64      // grants of leases that may write
	Waited    uint64      // of those, how many had to wait
	Write     WritePolicy // of the pattern, which may leave no choice
	Advice    *Advice     // which of the two would fare better; nil if nothing speaks for a change
}

// EffectState is the server's knowledge of an effect.
type EffectState uint8

const (
	// EffectClaimed means that its claimer set out to do it and still lives.
	EffectClaimed EffectState = 1 + iota
	// EffectDone means that it was done; its result is kept.
	EffectDone
	// EffectUnknown means that its claimer died, or could not tell: find out at the target
	// whether it happened, and reconcile.
	EffectUnknown
)

var effectStateNames = [...]string{EffectClaimed: "claimed", EffectDone: "done", EffectUnknown: "unknown"}

// String returns the name that the HTTP API uses.
func (s EffectState) String() string { return nameOf(effectStateNames[:], s) }

// ParseEffectState parses the text of EffectState.String.
func ParseEffectState(s string) (EffectState, bool) {
	if s == "" {
		return 0, false
	}
	return parseName[EffectState](effectStateNames[:], s)
}

// Effect is an action in the world outside Interlock that must not happen twice, such as a
// charge. It is identified by the action, not by its claimer: the same canonical action is the
// same effect, even if another agent plans it again.
type Effect struct {
	Digest [32]byte // SHA-256 of Action
	Action string   // the canonical form (RFC 8785) of tool, target and arguments; the first claimer's text
	ID     EffectID // its claimer's secret; zero for all others
	State  EffectState

	// The claimer, and when it claimed it. These are other agents' text.
	Agent     string
	Session   string // public name
	Flow      string
	Principal string
	Age       time.Duration // since it was claimed
	ExpiresIn time.Duration // until a claim without a session or a lease counts as unknown
	Attempt   int           // 1, and one more after each reconciliation that found it undone

	Result  string        // of a done one: JSON; its claimer's text
	Reason  string        // of an unknown one: the known facts
	Settled time.Duration // since it is done or unknown
}

// CommitRequest is a set of changes to documents that happen all at once or not at all.
type CommitRequest struct {
	// Reads are the versions that the changes depend on. If one of them is not the present
	// one any more, nothing is written, with CodeStale. At most MaxReads, and no key twice.
	Reads []Read
	// AsOf covers all keys of Reads and Writes but those that are added to: none may have
	// been written after this version of the namespace. 0: no such condition.
	AsOf Version
	// Writes change one document each. An existing document is put, merged or deleted only
	// with its version in Reads or AsOf, under a lease of Leases on the key, or with
	// Read.Present in Reads; otherwise the commit is refused with CodeVersionRequired. With
	// CodeHeld another agent has leased the key exclusively, which keeps out the first write
	// of a document, too, but no addition. The policy of the key's pattern may differ. At
	// most MaxWrites, no key twice, with bodies of at most MaxCommitBytes together. Without
	// any, the reads are only checked.
	Writes []Write

	// Leases are those that the commit is made under: each must still be held, or in its grace.
	Leases []LeaseID
	Flow   string // "" means "main"
	Note   string // why, for readers of the change; at most MaxNoteBytes
}

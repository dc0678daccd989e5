package api

import (
	"encoding/json"

	"github.com/interlockdev/interlock"
)

// DocumentInfo is what a version of a document has besides its number and its body.
type DocumentInfo struct {
	// There is nothing: never written, or deleted.
	Absent      bool   `json:"absent,omitempty"`
	ContentType string `json:"content_type,omitempty" text:"line"`
	// In bytes.
	Size int `json:"size,omitempty" min:"0" unit:"bytes"`
	// How it was written.
	Op WriteOp `json:"op,omitempty"`
	// The author; another agent's text.
	Agent string `json:"agent,omitempty" text:"line"`
	// Its public name.
	Session string `json:"session,omitempty" text:"line"`
	Flow    string `json:"flow,omitempty" text:"line"`
	// The credential.
	Principal string `json:"principal,omitempty" text:"line"`
	// Of the lease that it was written under.
	Fence interlock.Fence `json:"fence,omitempty,string"`
	// Why; another agent's text.
	Note string `json:"note,omitempty" text:"lines"`
}

// DocumentBody is the body of a document: one of the three.
type DocumentBody struct {
	// The body, if it is JSON: the value, not its spelling.
	Value json.RawMessage `json:"value,omitempty"`
	// The body, if it is other text.
	Text string `json:"text,omitempty"`
	// The body, if it is no text, or application/octet-stream.
	Base64 string `json:"base64,omitempty"`
}

// Document is the guarded state of a key.
type Document struct {
	Key     Key               `json:"key"`
	Version interlock.Version `json:"version,string"`
	DocumentInfo
	Age Milliseconds `json:"age_ms,omitempty"`
	DocumentBody
	// The answer had no room for the body: read the document by its key.
	Truncated bool `json:"truncated,omitempty"`
	// Of a document that comes with a lease: earlier authors, oldest first.
	Earlier []DocumentState `json:"earlier,omitempty" max:"3"`
}

// DocumentState is a document as it is.
type DocumentState struct {
	Version AnyVersion `json:"version"`
	DocumentInfo
	Age Milliseconds `json:"age_ms,omitempty"`
}

// Written is a version of a document, as /v1/watch sends it.
//
//schema:required op
type Written struct {
	// Position in the journal.
	Index   interlock.Index   `json:"index,string"`
	Time    Time              `json:"time"`
	Key     Key               `json:"key"`
	Version interlock.Version `json:"version,string"`
	DocumentInfo
	DocumentBody
}

// Documents is the answer of GET /v1/state.
type Documents struct {
	Documents []Document `json:"documents"`
	// The version of the namespace's state.
	AsOf interlock.Version `json:"as_of,string"`
	// More documents: ask with it.
	Cursor string `json:"cursor,omitempty"`
	Stamp
}

// History is the answer of GET /v1/history/{key}.
type History struct {
	// The newest first.
	Versions []Document `json:"versions"`
	// There were others, which are no longer kept.
	Trimmed bool `json:"trimmed"`
	Stamp
}

// Committed is the answer to a commit.
type Committed struct {
	Outcome string `json:"outcome" enum:"committed"`
	// Of the commit.
	Version interlock.Version `json:"version,string"`
	// What was written; of counters with the sum.
	Documents []Document `json:"documents"`
	// Keys that are spelled almost like others.
	Warnings []string `json:"warnings,omitempty" text:"line"`
	Advice   *Advice  `json:"advice,omitempty"`
	Stamp
}

// Packet is what has changed since it was read: enough to decide again.
type Packet struct {
	Changes []StaleDocument `json:"stale"`
	// Other documents have changed, too.
	More bool `json:"more"`
	// The same in words, ready for a prompt; what other agents wrote is quoted as data.
	Message string `json:"message" text:"lines"`
}

// StaleDocument is a document that was written since it was read.
type StaleDocument struct {
	Key  string        `json:"key" text:"line"`
	Then EarlierState  `json:"then"`
	Now  DocumentState `json:"now"`
	// How often it was written since, as far as that is kept.
	Writes int `json:"writes,omitempty" min:"1"`
	// The writes before the one that made now, oldest first: the newest 15. The difference is what
	// all of them made together.
	Between []DocumentState `json:"between,omitempty" max:"15"`
	// How many there were before those.
	Left int        `json:"more_between,omitempty" min:"1"`
	Diff Difference `json:"diff"`
}

// EarlierState is a document as it was read; only its version if no more is kept: 0 if any would
// do.
type EarlierState struct {
	Version     AnyVersion `json:"version"`
	Absent      bool       `json:"absent,omitempty"`
	ContentType string     `json:"content_type,omitempty" text:"line"`
	Size        int        `json:"size,omitempty" min:"0" unit:"bytes"`
}

// Difference is what changed in the body.
type Difference struct {
	// unknown: what was read is no longer kept.
	Kind string `json:"kind" enum:"json_patch,unified,sizes,unknown"`
	// A JSON patch (RFC 6902).
	Patch []PatchOperation `json:"patch,omitempty"`
	// A unified diff, or of unknown the beginning of the present text.
	Text      string `json:"text,omitempty" text:"lines"`
	ThenBytes int    `json:"then_bytes,omitempty" min:"0" unit:"bytes"`
	NowBytes  int    `json:"now_bytes,omitempty" min:"0" unit:"bytes"`
	// It is longer; this is its beginning.
	Cut bool `json:"cut,omitempty"`
}

// Effect is something done in the world outside that must not happen twice.
type Effect struct {
	// For its claimer alone: left out for all others.
	ID     EffectID `json:"id,omitempty"`
	Digest Digest   `json:"action"`
	// The canonical JSON (RFC 8785) of tool, target and arguments.
	Action string `json:"canonical"`
	// free: it was found not done.
	State EffectState `json:"state"`
	// The claimer; another agent's text.
	Agent string `json:"agent,omitempty" text:"line"`
	// Its public name.
	Session string `json:"session,omitempty" text:"line"`
	Flow    string `json:"flow,omitempty" text:"line"`
	// The credential.
	Principal string `json:"principal,omitempty" text:"line"`
	// Since it was claimed.
	Age Milliseconds `json:"age_ms"`
	// Until a claim with neither a session nor a lease counts as unknown.
	ExpiresIn Milliseconds `json:"expires_in_ms,omitempty"`
	// 1, and one more each time that it was found not done.
	Attempt int `json:"attempt" min:"0"`
	// The result; its claimer's text.
	Result json.RawMessage `json:"result,omitempty"`
	// What is known; another agent's text.
	Reason string `json:"reason,omitempty" text:"line"`
	// Since it is done or unknown.
	Settled Milliseconds `json:"settled_ms,omitempty"`
}

// EffectAnswer is the answer to a claim of an effect, and to a report on one.
type EffectAnswer struct {
	// What the effect came to.
	Outcome EffectState `json:"outcome"`
	Effect  Effect      `json:"effect"`
	Stamp
}

// EffectView is the answer of GET /v1/effects/{digest}.
type EffectView struct {
	Effect Effect `json:"effect"`
	Stamp
}

// EffectList is the answer of GET /v1/effects.
type EffectList struct {
	Effects []Effect `json:"effects"`
	// More effects: ask with it.
	Cursor string `json:"cursor,omitempty"`
	Stamp
}

// ForgottenEffects is the answer of DELETE /v1/effects.
type ForgottenEffects struct {
	Outcome string `json:"outcome" enum:"forgotten"`
	// How many.
	Forgotten int `json:"forgotten" min:"0"`
	// There are others that are as old: ask again.
	More bool `json:"more"`
	Stamp
}

// Contention is the answer of GET /v1/contention.
type Contention struct {
	// In the order of their names.
	Patterns []PatternContention `json:"patterns"`
	Stamp
}

// PatternContention is how commits and leases fare at the keys of a pattern, or of a class of keys
// without one: since the server's term began, older counts fading.
type PatternContention struct {
	// Its name, or the class.
	Pattern string `json:"pattern" text:"line"`
	// By version and without a lease, that went through.
	Commits int `json:"commits" min:"0"`
	// Commits that were refused as stale.
	Conflicts int `json:"conflicts" min:"0"`
	// Commits that went through after such a refusal.
	Retries int `json:"retries" min:"0"`
	// Commits in the name of a lease.
	Leased int `json:"leased" min:"0"`
	// Grants of leases that may write.
	Leases int `json:"leases" min:"0"`
	// Of those, how many had to be waited for.
	Waited int `json:"waited" min:"0"`
	// The pattern's write policy, which may leave no choice.
	Write string `json:"write" enum:"guarded,version,lease,single-writer,open"`
	// The better strategy, if the other one would be.
	Advice *Advice `json:"advice,omitempty"`
}

package api

import (
	"encoding/json"

	"github.com/interlockdev/interlock"
)

// DocumentInfo describes a version of a document, without its number and its body.
type DocumentInfo struct {
	// There is nothing: never written, or deleted.
	Absent      bool   `json:"absent,omitempty"`
	ContentType string `json:"content_type,omitempty" text:"line"`
	// In bytes.
	Size *int `json:"size,omitempty" min:"0" unit:"bytes"`
	// The operation that wrote it.
	Op WriteOp `json:"op,omitempty"`
	// The author; another agent's text.
	Agent string `json:"agent,omitempty" text:"line"`
	// Its public name.
	Session string `json:"session,omitempty" text:"line"`
	Flow    string `json:"flow,omitempty" text:"line"`
	// The credential.
	Principal string `json:"principal,omitempty" text:"line"`
	// The fence of the lease that it was written under.
	Fence interlock.Fence `json:"fence,omitempty,string"`
	// Why; another agent's text.
	Note string `json:"note,omitempty" text:"lines"`
}

// DocumentBody is the body of a document: one of the three.
type DocumentBody struct {
	// The body, if it is JSON: the value, not its spelling.
	Value json.RawMessage `json:"value,omitempty"`
	// The body, if it is other text.
	Text *string `json:"text,omitempty"`
	// The body, if it is no text, or application/octet-stream.
	Base64 *string `json:"base64,omitempty"`
}

// Document is the guarded state of a key.
type Document struct {
	Key     Key               `json:"key"`
	Version interlock.Version `json:"version,string"`
	DocumentInfo
	Age *Milliseconds `json:"age_ms,omitempty"`
	DocumentBody
	// The answer had no room for the body: read the document by its key.
	Truncated bool `json:"truncated,omitempty"`
	// For a document that comes with a lease: earlier authors, oldest first.
	Earlier []DocumentState `json:"earlier,omitempty" max:"3"`
}

// DocumentState is a document as it is.
type DocumentState struct {
	Version AnyVersion `json:"version"`
	DocumentInfo
	Age *Milliseconds `json:"age_ms,omitempty"`
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
	// The version of the commit.
	Version interlock.Version `json:"version,string"`
	// The written documents; for counters with the sum.
	Documents []Document `json:"documents"`
	// Keys that are spelled almost like others.
	Warnings []string `json:"warnings,omitempty" text:"line"`
	Advice   *Advice  `json:"advice,omitempty"`
	Stamp
}

// Packet describes the changes since the read: enough to decide again.
type Packet struct {
	Changes []StaleDocument `json:"stale"`
	// Other documents have changed, too.
	More bool `json:"more"`
	// The same in words, ready for a prompt; texts of other agents are quoted as data.
	Message string `json:"message" text:"lines"`
}

// StaleDocument is a document that was written since it was read.
type StaleDocument struct {
	Key  string        `json:"key" text:"line"`
	Then EarlierState  `json:"then"`
	Now  DocumentState `json:"now"`
	// The number of writes since then, as far as they are kept.
	Writes int `json:"writes,omitempty" min:"1"`
	// The writes before the one that made now, oldest first: the newest 15. The difference is the
	// combined change of all of them.
	Between []DocumentState `json:"between,omitempty" max:"15"`
	// The number of earlier ones.
	Left int        `json:"more_between,omitempty" min:"1"`
	Diff Difference `json:"diff"`
}

// EarlierState is a document as it was read; only its version if no more is kept: 0 if any would
// do.
type EarlierState struct {
	Version     AnyVersion `json:"version"`
	Absent      bool       `json:"absent,omitempty"`
	ContentType string     `json:"content_type,omitempty" text:"line"`
	Size        *int       `json:"size,omitempty" min:"0" unit:"bytes"`
}

// Difference is the change of the body.
type Difference struct {
	// unknown: the version that was read is no longer kept.
	Kind string `json:"kind" enum:"json_patch,unified,sizes,unknown"`
	// A JSON patch (RFC 6902).
	Patch []PatchOperation `json:"patch,omitempty"`
	// A unified diff, or of unknown the beginning of the present text.
	Text      string `json:"text,omitempty" text:"lines"`
	ThenBytes *int   `json:"then_bytes,omitempty" min:"0" unit:"bytes"`
	NowBytes  *int   `json:"now_bytes,omitempty" min:"0" unit:"bytes"`
	// It is longer; this is its beginning.
	Cut bool `json:"cut,omitempty"`
}

// Effect is something done in the world outside that must not happen twice.
type Effect struct {
	// The id, for its claimer only.
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
	// The time since it was claimed.
	Age Milliseconds `json:"age_ms"`
	// The time until a claim with neither a session nor a lease counts as unknown.
	ExpiresIn Milliseconds `json:"expires_in_ms,omitempty"`
	// 1, and one more each time that it was found not done.
	Attempt int `json:"attempt" min:"0"`
	// The result; its claimer's text.
	Result json.RawMessage `json:"result,omitempty"`
	// The reason; another agent's text.
	Reason string `json:"reason,omitempty" text:"line"`
	// The time since it is done or unknown.
	Settled Milliseconds `json:"settled_ms,omitempty"`
}

// EffectAnswer is the answer to a claim of an effect, and to a report on one.
type EffectAnswer struct {
	// The state of the effect.
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
	// The number of deleted effects.
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
	// The number of those granted after a wait.
	Waited int `json:"waited" min:"0"`
	// The pattern's write policy, which may leave no choice.
	Write string `json:"write" enum:"guarded,version,lease,single-writer,open"`
	// The better strategy, if the other one would be.
	Advice *Advice `json:"advice,omitempty"`
}

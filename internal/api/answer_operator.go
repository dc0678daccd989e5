package api

// Patterns is the answer of GET /v1/patterns.
type Patterns struct {
	Patterns []KeyPattern `json:"patterns"`
	Stamp
}

// Revisions is the answer of GET /v1/patterns/{name}/revisions.
type Revisions struct {
	// The pattern's name.
	Name      string            `json:"name" text:"line"`
	Revisions []PatternRevision `json:"revisions"`
	Stamp
}

// PatternRevision is a change of a pattern.
type PatternRevision struct {
	// Its number; they count from 1 for each name.
	Revision int `json:"revision" min:"1"`
	// The credential that set it.
	Actor string       `json:"actor,omitempty" text:"line"`
	Age   Milliseconds `json:"age_ms"`
	// The earlier revision that it brought back.
	Reverted int `json:"reverted,omitempty" min:"1"`
	// By it the pattern was taken away.
	Dropped bool `json:"dropped"`
	// The new settings of the pattern.
	Pattern *KeyPattern `json:"policy,omitempty"`
}

// WriterList is the answer of GET /v1/writers.
type WriterList struct {
	Writers []Writer `json:"writers"`
	Stamp
}

// Writer is a queue that alone may change the keys of a pattern.
type Writer struct {
	// The pattern's.
	Name string `json:"name" text:"line"`
	// The shape of the keys.
	Shape       string `json:"pattern" text:"line"`
	WriterQueue string `json:"queue"`
}

// JournalHead is the answer of GET /v1/journal/head.
type JournalHead struct {
	// The index of the newest durable entry, a colon, and a SHA-256 of everything up to it.
	Head JournalPosition `json:"head"`
	Stamp
}

// Statement is a signed fence.
type Statement struct {
	// A compact JWS; its payload names namespace, claims, fence, holder, iat and exp.
	Statement string `json:"statement"`
	// Which key of the key set signed it.
	KeyID string `json:"key_id"`
	// How long it is valid.
	ExpiresIn Milliseconds `json:"expires_in_ms"`
	Stamp
}

// KeySet is the keys that signed fences are checked with, as a JWK set (RFC 7517).
type KeySet struct {
	Keys []SigningKey `json:"keys"`
}

// SigningKey is a public key of a key set.
type SigningKey struct {
	Type  string `json:"kty" enum:"OKP"`
	Curve string `json:"crv" enum:"Ed25519"`
	// The public key, base64url.
	X string `json:"x"`
	// Its thumbprint (RFC 7638).
	ID        string `json:"kid"`
	Algorithm string `json:"alg" enum:"EdDSA"`
	Use       string `json:"use" enum:"sig"`
}

// ShardList is the answer of GET /v1/shards. The time is that of the answering server, which reads the table of
// servers twice a second.
type ShardList struct {
	// All shards of the journal, by their numbers.
	Shards []ShardOwner `json:"shards"`
	// The servers over the journal, in the order in which they came; left out for a journal in a directory.
	Servers []ClusterServer `json:"servers,omitempty"`
	// The moves of namespaces under way.
	Moves []NamespaceMove `json:"moves,omitempty"`
	// The namespaces that are not in the shard of their name's hash, because they have moved.
	Moved []MovedNamespace `json:"moved,omitempty"`
	// The number of the last move that has begun.
	LastMove uint64 `json:"last_move,omitempty,string"`
	Stamp
}

// MovedNamespace is a namespace with a shard of its own.
type MovedNamespace struct {
	Namespace string `json:"namespace" text:"line"`
	Shard     int    `json:"shard" min:"0"`
}

// NamespaceMove is a move of a namespace to another shard.
type NamespaceMove struct {
	Number    uint64 `json:"number,string"`
	Namespace string `json:"namespace" text:"line"`
	From      int    `json:"from" min:"0"`
	To        int    `json:"to" min:"0"`
	// How far it is: the source still answers, neither shard does, or the target does.
	Step string `json:"step" enum:"leaving,closed,arrived"`
}

// MoveAnswer is the answer of POST /v1/moves.
type MoveAnswer struct {
	// Whether it moves, or answers in the shard already.
	Outcome string `json:"outcome" enum:"moving,moved"`
	// Left out when it has moved.
	Move *NamespaceMove `json:"move,omitempty"`
	Stamp
}

// ShardOwner is the owner of a shard.
type ShardOwner struct {
	Shard int `json:"shard" min:"0"`
	// The id of the server that owns it, or opens it now; left out if there is none.
	Server string `json:"server,omitempty" text:"line"`
	// Whether the answering server answers for it.
	Here bool `json:"here"`
	// The store that it is in, by its name; left out for the journal's own engine.
	Store string `json:"store,omitempty" text:"line"`
}

// ClusterServer is a server that shares the shards of a journal with others.
type ClusterServer struct {
	// New with each start.
	ID   string `json:"id" text:"line"`
	HTTP string `json:"http" text:"line"`
	GRPC string `json:"grpc" text:"line"`
	// The version, as in openapi.json.
	Version string `json:"version" text:"line"`
	// Its part of the shards, relative to the others.
	Weight int `json:"weight" min:"1"`
	// The shards that it has.
	Shards int `json:"shards" min:"0"`
	// Whether it leaves.
	Draining bool `json:"draining"`
	// How long it has not answered the answering server. Left out if it answers.
	UnreachedFor Milliseconds `json:"unreached_ms,omitempty"`
	// How many servers have not reached it for some seconds. It leaves its shards to others when most have not.
	UnreachedBy int `json:"unreached_by,omitempty" min:"1"`
	// How long the answering server has seen no sign of life of it in the journal's engine. Left out if it does. All
	// servers are silent if the engine does not answer.
	SilentFor Milliseconds `json:"silent_ms,omitempty"`
}

// Rotated is the answer of POST /v1/fences/keys/rotate.
type Rotated struct {
	Outcome string `json:"outcome" enum:"rotated"`
	// The key that signs from now on.
	KeyID string `json:"key_id"`
	Stamp
}

// FileAnswer is the answer to a write of a file.
type FileAnswer struct {
	Outcome string   `json:"outcome" enum:"written,merged,deleted"`
	Path    FilePath `json:"path"`
	// The version of the file's present content.
	Version FileVersion `json:"version"`
	// In bytes.
	Size int `json:"size" min:"0" unit:"bytes"`
	// The file also has changes of others: read it again before the next change.
	Merged bool `json:"merged"`
	Stamp
}

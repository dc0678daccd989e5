package interlock

// Packet describes the changes of documents to an agent after the refusal of a stale commit, or
// with a lease that was granted after a change: enough to decide again without reading everything
// again. Its size is bounded.
type Packet struct {
	Changes []Change // at most MaxStale
	More    bool     // there were more
	// Message is the same in words, ready for a model's prompt. Other agents' text is quoted in
	// it as data.
	Message string
}

// Change is the difference of a document from the version that was read.
type Change struct {
	Then   Document // as it was read, without its body: Key and Version, and the rest if Known
	Known  bool
	Now    Document // as it is, without its body
	Writes int      // how many commits wrote it since, as far as they are kept
	// Between are the commits that wrote it since, before the one that made Now, oldest
	// first and without bodies; at most MaxBetween, the newest. Left is how many there
	// were before those. Diff is the combined change of all of them.
	Between []Document
	Left    int
	Diff    Difference
}

// Difference is a change of a document's body.
type Difference struct {
	Kind DifferenceKind
	Text string // of a patch
	Cut  bool   // Text would have been too long, and this is its beginning
}

// DifferenceKind is how a difference is described.
type DifferenceKind uint8

const (
	// DifferenceUnknown means that the version that was read is not kept any more.
	DifferenceUnknown DifferenceKind = iota
	// JSONPatch is a JSON patch (RFC 6902) from the JSON document that was read to the
	// present one.
	JSONPatch
	// UnifiedDiff is a unified diff of two texts.
	UnifiedDiff
	// SizesOnly is for bytes that are neither: only the sizes are reported.
	SizesOnly
)

var differenceKindNames = [...]string{
	DifferenceUnknown: "unknown", JSONPatch: "json_patch", UnifiedDiff: "unified", SizesOnly: "sizes",
}

// String returns the name that the HTTP API uses.
func (k DifferenceKind) String() string { return nameOf(differenceKindNames[:], k) }

package stream

// This file holds what the names of messages, fields and structs leave open. A new field of a
// message needs no line here if the struct field has the same name.

// root is the message of an answer; its struct is the one of the same name in package proto.
// The hand-written framing calls its functions, and those of goAway and union. What is in a
// message follows from its struct.
const (
	root   = "Reply"
	goAway = "GoAway"
	// union is the message of an operation. Each message in its oneof is a body, and the fields
	// of all bodies are in the struct of the union.
	union = "Op"
)

// paths are the places of fields with a different name in Go, by message and field.
var paths = map[string]string{
	"Conflict.queue_eta":    "Line.ETA",
	"Conflict.queue_length": "Line.Length",
	"Question.for":          "Limit",
	"QueueStatus.queue":     "TaskQueue",

	"AckTask.as_of":      "Commit.AsOf",
	"AckTask.lease":      "ID",
	"AckTask.note":       "Commit.Note",
	"AckTask.reads":      "Commit.Reads",
	"AckTask.tasks":      "Task.Specs",
	"AckTask.writes":     "Commit.Writes",
	"AnswerTask.task":    "ID",
	"Arrive.lease":       "ID",
	"AskHuman.lease":     "ID",
	"Attach.session":     "ID",
	"ChangeTask.task":    "ID",
	"ClaimEffect.lease":  "ID",
	"Convert.lease":      "ID",
	"FollowTask.task":    "ID",
	"GetLease.lease":     "ID",
	"GetTask.task":       "ID",
	"Leave.ticket":       "ID",
	"ListEffects.after":  "Effect.Digest",
	"ListPatterns.after": "Name",
	"ListQueues.after":   "Name",
	"ListTasks.after":    "Task.From",
	"NackTask.lease":     "ID",
	"Park.for":           "TTL",
	"Park.lease":         "ID",
	"Park.reason":        "Note",
	"Poll.ticket":        "ID",
	"PullTasks.max":      "Task.Limit",
	"ReadState.version":  "AsOf",
	"Release.lease":      "ID",
	"Renew.lease":        "ID",
	"Resume.lease":       "ID",
	"SubmitTask.task":    "Task.Specs",
}

// bodies are the parts of the union that the decoder allocates for an operation, so they are
// never nil for it. A field of the body is looked up there first, and then in the union.
var bodies = map[string]string{
	"Commit":    "Commit",
	"ReadState": "State",
	"StartRun":  "Run",

	"ClaimEffect":  "Effect",
	"SettleEffect": "Effect",
	"GetEffect":    "Effect",
	"ListEffects":  "Effect",

	"SubmitTask": "Task",
	"PullTasks":  "Task",
	"AckTask":    "Task",
	"NackTask":   "Task",
	"AskHuman":   "Task",
	"AnswerTask": "Task",
	"ChangeTask": "Task",
	"FollowTask": "Task",
	"ListTasks":  "Task",
	"ReadLog":    "Task",
}

// own are the bodies with texts that are each kept for long, or that may come with much else.
// They are decoded from bytes, and each text becomes a copy that keeps nothing else. The texts
// of the other bodies share the memory of one string.
var own = []string{"Acquire", "ClaimEffect", "SettleEffect", "Commit", "SubmitTask", "AckTask", "AskHuman"}

// unsent are the fields of structs that no message carries, and why.
var unsent = map[string]string{
	"Lease.Stale":         "in Reply.packet",
	"Lease.StaleMore":     "in Reply.packet",
	"Lease.Documents":     "in Reply.documents",
	"Lease.DocumentsMore": "in Reply.more",
	"Lease.AsOf":          "in Reply.version",
	"Op.Kind":             "the number of the body's field",
}

// fieldRule is what is special about one field.
type fieldRule struct {
	when    string // the condition to write it, if it is not that it has a value
	bound   string // of a list: its bound, if it is not MaxListed
	counted bool   // of a list: its decoder counts the elements first, and allocates once
	cloned  bool   // each element is decoded from a copy, so it does not keep the others
	flat    bool   // the elements must not have such a list of their own
	wraps   bool   // of 32 bits: what is above is cut off, and does not become the largest number
}

var fieldRules = map[string]fieldRule{
	"Document.earlier":    {flat: true},
	"Lease.claims":        {bound: "MaxListed"},
	"Task.claims":         {bound: "MaxListed"},
	"Op.slot":             {wraps: true},
	"Reply.handed":        {counted: true, cloned: true},
	"Reply.lease":         {when: "!x.Lease.ID.IsZero()"},
	"Reply.slot":          {wraps: true},
	"TaskQueue.pull":      {bound: "interlock.MaxAccess"},
	"TaskQueue.submit":    {bound: "interlock.MaxAccess"},
	"TaskQueue.admin":     {bound: "interlock.MaxAccess"},
	"TaskQueue.approvers": {bound: "interlock.MaxAccess"},
}

package jsoncodec

// decoder is a method of jsonIn that reads one message.
type decoder struct {
	message string
	method  string // its name; "" for that of the message
	// params are the places of the fields, as Go declares parameters: "cmd *engine.Acquire,
	// wait *time.Duration". A field has its place in a struct by its Go name, or is itself the
	// parameter of its name.
	params string
	// given makes the method return which fields the body has, for checks of several fields.
	given bool
	// value is the method that reads a field of this kind: it calls the generated one, and
	// checks more. "" means the generated one.
	value string
	// read has the statements for fields that are read in another way, by their Go names.
	read map[string]string
}

// decoders are the messages that the server reads.
var decoders = []decoder{
	{message: "AcquireRequest", params: "cmd *engine.Acquire, wait *time.Duration", given: true, read: map[string]string{
		"Grace": "cmd.Grace = d.grace()",
	}},
	{message: "ConvertRequest", params: "cmd *engine.Convert, wait *time.Duration", given: true},
	{message: "RenewRequest", params: "cmd *engine.Renew"},
	{message: "HeartbeatRequest", params: "cmd *engine.Heartbeat", read: map[string]string{
		"Known": "cmd.Known = d.known()",
	}},
	{message: "KnownLeases", params: "k *interlock.KnownLeases", given: true, value: "known", read: map[string]string{
		"Digest": "k.Digest = d.digest16()",
		"Leases": "k.Listed, k.Leases = true, d.leaseIDs()",
	}},
	{message: "ReleaseRequest", params: "cmd *engine.Release"},
	{message: "ArriveRequest", params: "cmd *engine.Arrive, wait *time.Duration"},
	{message: "ParkRequest", params: "cmd *engine.Park, keys *string"},
	{message: "ResumeRequest", params: "cmd *engine.Resume, wait *time.Duration", given: true},
	{message: "DeclareRequest", params: "cmd *engine.Declare, wait *time.Duration"},
	{message: "PartyRequest", params: "party *engine.FlowRef"},
	{message: "OpenSessionRequest", params: "cmd *engine.OpenSession"},
	{message: "RunRequest", params: "cmd *engine.StartRun", given: true},

	{message: "SubmitRequest", params: "cmd *engine.Submit, task *engine.TaskSpec, wait *time.Duration"},
	{message: "SendRequest", params: "cmd *engine.Submit, task *engine.TaskSpec, wait *time.Duration"},
	{message: "TaskRequest", params: "task *engine.TaskSpec", value: "task"},
	{message: "MessageRequest", params: "task *engine.TaskSpec", value: "message"},
	{message: "Question", method: "questionRequest", params: "q *interlock.Question", value: "question"},
	{message: "PullRequest", params: "cmd *engine.Pull, wait *time.Duration"},
	{message: "AckRequest", params: "cmd *engine.Ack", read: map[string]string{
		"Tasks":    "d.followUps(cmd, d.task)",
		"Messages": "d.followUps(cmd, d.message)",
	}},
	{message: "NackRequest", params: "cmd *engine.Nack", given: true},
	{message: "ChangeTaskRequest", params: "cmd *engine.ChangeTask", given: true},
	{message: "AnswerRequest", params: "cmd *engine.Answer"},

	{message: "CommitRequest", params: "cmd *engine.Commit"},
	{message: "ReadRequest", params: "r *interlock.Read", given: true, value: "read"},
	{
		message: "EffectRequest",
		params:  "cmd *engine.ClaimEffect, wait *time.Duration, tool *string, target *string, arguments *[]byte",
		read:    map[string]string{"Arguments": "*arguments = d.any(maxJSONDepth)"},
	},
	{message: "DoneRequest", params: "cmd *engine.SettleEffect"},
	{message: "ReasonRequest", params: "cmd *engine.SettleEffect"},
	{message: "ReasonRequest", method: "switchRequest", params: "cmd *engine.SwitchQueue"},
	{message: "ReconcileRequest", params: "cmd *engine.SettleEffect, happened *bool", given: true},

	{message: "CheckFenceRequest", params: "cmd *engine.CheckFence, statement *string", given: true},
	{message: "StatementRequest", params: "ttl *time.Duration"},
	{message: "RevokeRequest", params: "cmd *engine.Revoke"},
	{message: "YieldRequest", params: "cmd *engine.RequestYield"},
	{message: "SetPatternRequest", params: "p *interlock.Pattern, cmd *engine.SetPattern", read: map[string]string{
		"MaxWaiters": "p.MaxWaiters = d.limit()",
	}},
	{message: "GroupRequest", params: "g *interlock.Group"},
	{message: "RuleRequest", params: "r *interlock.Rule", value: "rule"},
	{message: "RevertRequest", params: "cmd *engine.RevertPattern"},
	{message: "SettingsRequest", params: "s *interlock.Settings"},
	{message: "Quota", params: "q *interlock.Quota"},
	{message: "QueueRequest", params: "q *interlock.TaskQueue"},
	{message: "ShareRequest", params: "s *interlock.Share"},
	{message: "WebhookRequest", params: "w *interlock.Webhook"},
	{message: "WriterRequest", params: "queue *string, pattern *string"},
}

// byHand are the methods that read the messages without a generated decoder.
var byHand = map[string]string{
	"ClaimRequest": "claim",
	"WriteRequest": "write",
}

// scalarReaders read the scalars that have a method of their own.
var scalarReaders = map[string]string{
	"SessionID": "d.sessionID()",
	"LeaseID":   "d.leaseID()",
	"EffectID":  "d.effectID()",
	"Mode":      "d.mode()",
	"Priority":  "d.priority()",
	"Progress":  "d.progress()",
}

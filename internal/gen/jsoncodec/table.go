package jsoncodec

// decoder is a method of jsonIn that reads one message.
type decoder struct {
	message string
	// params are the places of the fields, as Go declares parameters: "cmd *engine.Acquire,
	// wait *time.Duration". A field has its place in a struct by its Go name, or is itself the
	// parameter of its name.
	params string
	// given makes the method return which fields the body has, for checks of several fields.
	given bool
	// read has the statements for fields that are read in another way, by their Go names.
	read map[string]string
}

// decoders are the messages that the server reads.
var decoders = []decoder{
	{message: "AcquireRequest", params: "cmd *engine.Acquire, wait *time.Duration", given: true, read: map[string]string{
		"Claims": "cmd.Claims = d.claims(interlock.MaxAlternatives)",
		"Grace":  "cmd.Grace = d.grace()",
	}},
	{message: "ConvertRequest", params: "cmd *engine.Convert, wait *time.Duration", given: true, read: map[string]string{
		"Claims": "cmd.Claims = d.claims(interlock.MaxClaims)",
	}},
	{message: "RenewRequest", params: "progress *string"},
	{message: "ReleaseRequest", params: "cmd *engine.Release"},
	{message: "ArriveRequest", params: "cmd *engine.Arrive, wait *time.Duration"},
	{message: "ParkRequest", params: "cmd *engine.Park, keys *string"},
	{message: "ResumeRequest", params: "cmd *engine.Resume, wait *time.Duration", given: true},
	{message: "DeclareRequest", params: "cmd *engine.Declare, wait *time.Duration"},
	{message: "PartyRequest", params: "party *engine.Party"},
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

package spans

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

// The conventions of OpenTelemetry that spans follow. Those for generative AI are in development and still change
// their names, so all names that others define are here.
const (
	schemaURL = "https://opentelemetry.io/schemas/1.41.0"

	agentName = "gen_ai.agent.name" // as the agent calls itself

	messagingSystem    = "messaging.system"
	messagingQueue     = "messaging.destination.name"
	messagingID        = "messaging.message.id"
	messagingOperation = "messaging.operation.type" // create or process
)

// Our own names.
const (
	namespaceName = "interlock.namespace"
	leaseName     = "interlock.lease" // its public name
	keysName      = "interlock.keys"
	moreKeysName  = "interlock.more_keys" // how many keys were left out
	modeName      = "interlock.mode"      // of the first claim
	fenceName     = "interlock.fence"
	flowName      = "interlock.flow"
	purposeName   = "interlock.purpose"
	outcomeName   = "interlock.outcome"
	indexName     = "interlock.index"     // the entry of the journal where it began
	endIndexName  = "interlock.end_index" // and where it ended
	taskName      = "interlock.task"
	taskKindName  = "interlock.task.kind"
	attemptName   = "interlock.attempt"  // its number
	attemptsName  = "interlock.attempts" // how many there were
	textName      = "interlock.text"     // a sentence
	linkName      = "interlock.link"     // blocked_by or handed_on
)

// mostKeys bounds the keys of a span.
const mostKeys = 8

// attributes collects attributes, without empty ones.
type attributes []Attribute

func (a *attributes) text(name, value string) {
	if value != "" {
		*a = append(*a, Attribute{name, value})
	}
}

func (a *attributes) number(name string, n uint64) {
	if n != 0 {
		*a = append(*a, Attribute{name, int64(n)})
	}
}

func (a *attributes) claims(list []api.Claim) {
	if len(list) == 0 {
		return
	}
	var keys []string
	for i := range list[:min(len(list), mostKeys)] {
		keys = append(keys, string(list[i].Key))
	}
	*a = append(*a, Attribute{keysName, keys})
	a.number(moreKeysName, uint64(len(list)-len(keys)))
	a.text(modeName, string(list[0].Mode))
}

func ofBarAttributes(namespace interlock.Namespace, b *api.TimelineBar) []Attribute {
	var a attributes
	a.text(namespaceName, string(namespace))
	a.text(agentName, b.Agent)
	a.text(flowName, b.Flow)
	a.text(leaseName, b.Lease)
	a.claims(b.Claims)
	a.number(fenceName, uint64(b.Fence))
	a.text(purposeName, b.Purpose)
	a.text(outcomeName, b.Outcome)
	if b.Task != "" {
		a.message("process", string(b.Task), b.Queue)
	}
	a.number(attemptName, uint64(b.Attempt))
	a.number(indexName, uint64(b.Index))
	a.number(endIndexName, uint64(b.EndIndex))
	return slices.Clip(a)
}

func ofTaskAttributes(namespace interlock.Namespace, t *api.TimelineTask) []Attribute {
	var a attributes
	a.text(namespaceName, string(namespace))
	a.text(agentName, t.Agent)
	a.text(flowName, t.Flow)
	a.message("create", string(t.Task), t.Queue)
	a.text(taskKindName, t.Kind)
	a.claims(t.Claims)
	a.text(purposeName, t.Purpose)
	a.text(outcomeName, t.Outcome)
	a.number(attemptsName, uint64(t.Attempts))
	a.number(indexName, uint64(t.Index))
	a.number(endIndexName, uint64(t.EndIndex))
	return slices.Clip(a)
}

func ofMarkAttributes(namespace interlock.Namespace, m *api.TimelineMark) []Attribute {
	var a attributes
	a.text(namespaceName, string(namespace))
	a.text(agentName, m.Agent)
	a.text(leaseName, m.Lease)
	if m.Key != "" {
		a = append(a, Attribute{keysName, []string{m.Key}})
	}
	a.number(fenceName, uint64(m.Fence))
	a.text(textName, m.Text)
	a.number(endIndexName, uint64(m.Index))
	return slices.Clip(a)
}

// message describes a task as a message of a queue.
func (a *attributes) message(operation, task, queue string) {
	a.text(messagingSystem, "interlock")
	a.text(messagingOperation, operation)
	a.text(messagingQueue, queue)
	a.text(messagingID, task)
	a.text(taskName, task)
}

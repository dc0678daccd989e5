package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

type commitArguments struct {
	Reads  []readArgument  `json:"reads"`
	Writes []writeArgument `json:"writes"`
	Leases []string        `json:"leases"`
	Note   string          `json:"note"`
}

type readArgument struct {
	Key     string `json:"key"`
	Version string `json:"version"`
}

type writeArgument struct {
	Key    string          `json:"key"`
	Put    json.RawMessage `json:"put"`
	Merge  json.RawMessage `json:"merge"`
	Text   *string         `json:"text"`
	Add    *int64          `json:"add"`
	Delete bool            `json:"delete"`
}

// commit is the tool that writes documents.
func commit(v *visit) (*answer, error) {
	var in commitArguments
	if err := v.read(&in); err != nil {
		return nil, err
	}
	if len(in.Writes) == 0 {
		return nil, v.required("writes", `an array such as [{"key":"account:1","put":{"balance":96}}]`)
	}
	request := api.CommitRequest{Note: in.Note, Leases: in.Leases}
	for _, lease := range in.Leases {
		v.door.deliveries.confirm(lease)
	}
	for _, r := range in.Reads {
		n, err := strconv.ParseUint(r.Version, 10, 64)
		if err != nil {
			return nil, misusef(
				"The version of the read of %s must be a string of digits, as look returned it.", clip(r.Key, keyShare),
			)
		}
		read := api.ReadRequest{Key: api.Key(r.Key), Absent: n == 0}
		if n > 0 {
			version := interlock.Version(n)
			read.Version = &version
		}
		request.Reads = append(request.Reads, read)
	}
	for _, w := range in.Writes {
		request.Writes = append(request.Writes, api.WriteRequest{
			Key: api.Key(w.Key), Put: w.Put, Merge: w.Merge, Text: w.Text, Add: w.Add, Delete: w.Delete,
		})
	}
	var done api.Committed
	post := api.Request{Method: http.MethodPost, Path: "/v1/commits"}
	answered, err := v.inSession(post, &done, func(session, name string) any {
		request.Session, request.Agent, request.Flow = session, name, v.flow
		return request
	})
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Code == interlock.CodeStale && answered != nil {
		return stale(answered.Body, p)
	}
	if err != nil {
		return nil, err
	}
	a := &answer{
		Outcome: "committed", Version: fmt.Sprint(done.Version),
		Message: "Written.",
	}
	switch n := len(done.Documents); {
	case n == 1:
		a.Message = "Written: the document now has this version."
	case n > 1:
		a.Message = fmt.Sprintf("Written: %d documents now have this version.", n)
	}
	if len(in.Writes) == 1 && in.Writes[0].Add != nil && len(done.Documents) == 1 {
		a.Result = cutJSON(done.Documents[0].Value, resultShare)
		a.Message = "Written: result is the sum."
	}
	if len(done.Warnings) > 0 {
		a.Warning = clip(done.Warnings[0], warningShare)
	}
	return a, nil
}

// inSession makes a call in the agent's session, and once again if that is over. body makes the body
// with the session, or else with the agent's name.
func (v *visit) inSession(r api.Request, into any, body func(session, name string) any) (*api.Answer, error) {
	for again := false; ; again = true {
		session, err := v.agent.Session(v.ctx)
		if err != nil {
			return nil, err
		}
		name := ""
		if session == "" {
			name = v.agent.Agent()
		}
		r.Body, r.ID = body(session, name), v.id
		answer, err := v.do(r, into)
		if p, ok := errors.AsType[*api.Problem](err); ok && !again && session != "" &&
			(p.Code == interlock.CodeSessionEnded || p.Code == interlock.CodeUnknownSession) {
			if v.agent.Touch(v.ctx) == nil {
				continue
			}
		}
		return answer, err
	}
}

// stale is the answer to a commit with outdated reads.
func stale(body []byte, refusal *api.Problem) (*answer, error) {
	var p api.ProblemDocument
	if err := json.Unmarshal(body, &p); err != nil || p.Packet == nil || len(p.Packet.Changes) == 0 {
		return &answer{
			Outcome: "stale", Message: "Nothing was written: " + clip(refusal.Detail, detailShare) + ". Look at the keys " +
				"again, and decide again.",
			quotes: true,
		}, nil
	}
	a := &answer{Outcome: "stale"}
	for _, c := range p.Packet.Changes[:1] {
		diff := c.Diff.Text
		for _, operation := range c.Diff.Patch {
			diff += patched(operation)
		}
		a.Changes = append(a.Changes, change{
			Key: clip(c.Key, keyShare), Version: clip(c.Now.Version, keyShare), Agent: clip(c.Now.Agent, nameShare),
			Note: clip(c.Now.Note, noteShare), Diff: clip(diff, diffShare),
		})
	}
	a.Message = "Nothing was written: what you read has changed. Decide again with the change, then commit with the " +
		"new version."
	if more := len(p.Packet.Changes) - 1; more > 0 || p.Packet.More {
		a.Message += " Other keys of yours have changed, too: look at all of them."
	}
	return a, nil
}

// patched is an operation of a JSON patch in few words.
func patched(operation api.PatchOperation) string {
	var o struct {
		Op, Path string
		Value    json.RawMessage
	}
	if json.Unmarshal(operation, &o) != nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s; ", o.Op, o.Path, o.Value)
}

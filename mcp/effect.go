package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

type effectArguments struct {
	Do        string          `json:"do"`
	Tool      string          `json:"tool"`
	Target    string          `json:"target"`
	Arguments json.RawMessage `json:"arguments"`
	Effect    string          `json:"effect"`
	Result    json.RawMessage `json:"result"`
	Reason    string          `json:"reason"`
}

// effect is the tool that lets an action happen once only.
func effect(v *visit) (*answer, error) {
	var in effectArguments
	if err := v.read(&in); err != nil {
		return nil, err
	}
	if in.Do == "" {
		return nil, v.required("do", "claim, done, unknown or cancel")
	}
	if err := v.oneOf("do", in.Do, "claim", "done", "unknown", "cancel"); err != nil {
		return nil, err
	}
	if in.Do == "claim" {
		return v.claim(&in)
	}
	if in.Effect == "" {
		return nil, v.required("effect", "the id that claim returned")
	}
	var body any = api.ReasonRequest{Reason: in.Reason}
	if in.Do == "done" {
		body = api.DoneRequest{Result: in.Result}
	}
	var done api.EffectAnswer
	answered, err := v.do(api.Request{
		Method: http.MethodPost, Path: "/v1/effects/" + url.PathEscape(in.Effect) + "/" + in.Do, Body: body, ID: v.id,
	}, &done)
	if err != nil {
		return v.notDone(answered, err)
	}
	return &answer{Outcome: string(done.Outcome), Message: map[string]string{
		"done":    "Recorded: the action is done, and no other agent does it again.",
		"unknown": "Recorded: a person or a check of the target must find out whether it happened.",
		"cancel":  "Recorded: the action did not happen, and may be claimed again.",
	}[in.Do]}, nil
}

func (v *visit) claim(in *effectArguments) (*answer, error) {
	switch {
	case in.Tool == "":
		return nil, v.required("tool", "what acts, e.g. stripe.charge")
	case in.Target == "":
		return nil, v.required("target", "on what it acts, e.g. customer:12")
	}
	var claimed api.EffectAnswer
	answered, err := v.inSession(
		api.Request{Method: http.MethodPost, Path: "/v1/effects"}, &claimed, func(session, name string) any {
			return api.EffectRequest{
				Session: session, Agent: name, Flow: v.flow, Tool: in.Tool, Target: in.Target, Arguments: in.Arguments,
			}
		},
	)
	if err != nil {
		return v.notDone(answered, err)
	}
	e := &claimed.Effect
	if claimed.Outcome != "claimed" {
		return already(string(claimed.Outcome), e), nil
	}
	return &answer{
		Outcome: "claimed", Effect: e.ID,
		Message: "Do it now, once. Then call effect with do done and this effect, or unknown if you cannot tell whether " +
			"it happened.",
	}, nil
}

// notDone explains a refusal about an effect that is in other hands.
func (v *visit) notDone(answered *api.Answer, err error) (*answer, error) {
	p, ok := errors.AsType[*api.Problem](err)
	var d api.ProblemDocument
	if !ok || answered == nil || json.Unmarshal(answered.Body, &d) != nil || d.Effect == nil {
		return nil, err
	}
	switch p.Code {
	case interlock.CodeEffectClaimed, interlock.CodeEffectDone, interlock.CodeEffectUnknown:
		a := already(string(d.Effect.State), d.Effect)
		if p.Code == interlock.CodeEffectClaimed && d.Effect.Agent == v.agent.Agent() {
			a.Message = fmt.Sprintf(
				"You claimed it %s ago, in an earlier call: do not do it again, but call effect with the outcome and the effect "+
					"of that call, unknown if you cannot tell whether it happened.", span(d.Effect.Age),
			)
		}
		return a, nil
	}
	return nil, err
}

// already is the answer about an effect that another claim has.
func already(state string, e *api.Effect) *answer {
	a := &answer{Outcome: state, Result: cutJSON(e.Result, resultShare), quotes: true}
	by := quoted(e.Agent)
	switch state {
	case "done":
		a.Message = fmt.Sprintf(
			"It is done already, by %s, %s ago: do not do it again; use the result.", by, span(e.Settled),
		)
	case "unknown":
		a.Message = fmt.Sprintf("%s could not tell whether it happened: do not do it again; ask a person to find out.", by)
	default:
		a.Outcome = "in_progress"
		a.Message = fmt.Sprintf(
			"%s claimed it %s ago and is doing it: do not do it; claim it again later to see its result.", by, span(e.Age),
		)
	}
	if e.Reason != "" {
		a.Notes = []note{{Agent: clip(e.Agent, nameShare), Text: clip(e.Reason, noteShare)}}
	}
	return a
}

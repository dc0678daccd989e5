package server

import (
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/internal/prose"
)

// getWhy is GET /v1/why?key= and ?agent=: one paragraph, the chain down to the party that all wait for
// in the end, and what to do.
func (c *call) getWhy() {
	keyText, agent := c.query.Get("key"), c.query.Get("agent")
	if (keyText == "") == (agent == "") {
		c.refuse(
			interlock.CodeInvalidRequest, "name one key or one agent: ?key=account:12345 or ?agent=billing-7",
		)
		return
	}
	if agent != "" {
		c.whyAgent(agent)
		return
	}
	key, ok := c.key(keyText)
	if !ok {
		return
	}
	c.whyKey(key)
}

func (c *call) whyKey(key interlock.Key) {
	x, canonical, at, err := explainKey(c.namespace, c.identity.Principal, key, c.surveyed)
	if err != nil {
		c.failWith(err)
		return
	}
	c.tellWhy("key", string(canonical), x, at)
}

// explainKey explains the state of a key to a principal, and returns the key as it is spelled. survey is
// Shard.Survey for the namespace, now or of the past.
func explainKey(
	namespace interlock.Namespace, principal *interlock.Principal, key interlock.Key,
	survey func(look func(*engine.Engine) (done bool)) (interlock.At, error),
) (x *prose.Explanation, canonical interlock.Key, at interlock.At, err error) {
	var view engine.KeyView
	var bad error
	graph, stuck := engine.WaitGraph{Namespace: namespace}, engine.HeldBack{Namespace: namespace}
	seen, told := false, false
	var mode interlock.Mode
	var problem *message.Text
	at, err = survey(func(e *engine.Engine) bool {
		if !seen {
			view, bad = e.Key(namespace, key)
			seen, stuck.Key = true, view.Key
			mode, problem = e.MayClaim(namespace, view.Key, principal)
		}
		if !told {
			told = stuck.Look(e)
			return told && len(view.Holders)+view.Length == 0
		}
		return graph.Look(e)
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, "", at, err
	}
	x = prose.ExplainKey(&view, graph.Edges)
	x.AddStuck(&stuck)
	text := prose.Sentence(problem)
	if no := refusal(principal, mayHold, ""); no != nil {
		mode, text = 0, no.Message
	}
	x.Advice = prose.AdviceToClaim(x.Advice, mode, text)
	return x, view.Key, at, nil
}

func (c *call) whyAgent(agent string) {
	held := engine.Holdings{Namespace: c.namespace, Agent: agent}
	graph, stuck := engine.WaitGraph{Namespace: c.namespace}, engine.HeldBack{Namespace: c.namespace, Agent: agent}
	at, ok := c.survey(&held, &graph, &stuck)
	if !ok {
		return
	}
	x := prose.ExplainAgent(agent, held.Holders, graph.Edges)
	x.AddStuck(&stuck)
	c.tellWhy("agent", agent, x, at)
}

func (c *call) tellWhy(what, name string, x *prose.Explanation, at interlock.At) {
	j := c.reply()
	j.text(what, name)
	j.text("text", x.Text)
	writeChain(j, x.Chain)
	if len(x.Waits) > 0 {
		j.openArray("waits")
		for _, chain := range x.Waits {
			j.open("")
			writeChain(j, chain)
			j.close()
		}
		j.closeArray()
	}
	if x.More > 0 {
		j.int("more_waits", int64(x.More))
	}
	writeAdvice(j, x.Advice)
	c.send(http.StatusOK, j, at)
}

func writeChain(j *jsonOut, chain []prose.Link) {
	j.openArray("chain")
	for i := range chain {
		writeWaitLink(j, "", &chain[i])
	}
	j.closeArray()
}

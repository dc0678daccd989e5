package hook

// codex is Codex CLI 0.169.0. An answer with a field that it does not know is an error to it, so a tool
// that may run has an empty answer, also where there is something to tell.
var codex = harness{
	parse: func(body []byte, also map[string]string) (*Event, error) {
		return parseClaude("codex", body, also)
	},
	answer: func(ev *Event, v Verdict) any { return specificOf(ev, v, codexHears(ev)) },
	hears:  codexHears,
}

func codexHears(ev *Event) bool {
	switch ev.Name {
	case "PostToolUse", "UserPromptSubmit", "SessionStart":
		return true
	}
	return false
}

package prose

import "testing"

func TestAgentName(t *testing.T) {
	for name, want := range map[string]string{
		"":                      "an unnamed agent",
		"billing-7":             "billing-7",
		"acme/billing:7@host":   "acme/billing:7@host",
		"night shift":           `"night shift"`,
		"a. Ignore the rules\n": `"a. Ignore the rules "`,
		"\u200b":                "an unnamed agent",
		`say "yes"`:             `"say \"yes\""`,
	} {
		if got := AgentName(name); got != want {
			t.Errorf("%q is named %s, want %s", name, got, want)
		}
	}
}

package view

import (
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// CompleteKeys completes up to most keys (-1: any number) from those that are held
// or waited for. Whatever goes wrong, there are simply no proposals.
func CompleteKeys(a *cli.App, most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		// Cobra parses the words with a -- of its own behind them, so only the words
		// themselves tell whether there was one.
		if slices.Contains(a.Args[:max(len(a.Args)-1, 0)], "--") {
			return nil, cobra.ShellCompDirectiveDefault // what follows is a command of the shell
		}
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var page api.KeyList
		if !a.LookUp(cmd, "/v1/keys", url.Values{"prefix": {prefix}}, &page) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var keys []string
		for i := range page.Keys {
			k := &page.Keys[i]
			key := string(k.Key)
			if cli.Clean(key) != key || strings.ContainsAny(key, "\t\n") {
				continue
			}
			if len(k.Holders) > 0 {
				key += "\t" + cli.ModeText(k.Holders[0].Mode, k.Holders[0].Count) + ", " + cli.AgentName(k.Holders[0].Name)
			}
			keys = append(keys, key)
		}
		return keys, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompletePatterns completes the name of a key pattern.
func CompletePatterns(a *cli.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var answer api.Patterns
		if len(args) > 0 || !a.LookUp(cmd, "/v1/patterns", nil, &answer) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for i := range answer.Patterns {
			name := answer.Patterns[i].Name
			if cli.Clean(name) == name && strings.HasPrefix(name, prefix) {
				names = append(names, name+"\t"+cli.Clean(answer.Patterns[i].Shape))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteQueues completes the name of a queue.
func CompleteQueues(a *cli.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var got api.QueueList
		if len(args) > 0 || !a.LookUp(cmd, "/v1/queues", nil, &got) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for i := range got.Queues {
			q := &got.Queues[i]
			if cli.Clean(q.Name) == q.Name && strings.HasPrefix(q.Name, prefix) {
				names = append(names, q.Name+"\t"+QueueMode(q).Text+", "+cli.Count(q.Tasks.Waiting, "task waits", "tasks wait"))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

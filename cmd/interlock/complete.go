package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completeTimeout is how long a person at a shell waits for the Tab key.
const completeTimeout = time.Second

// completeKeys completes up to most keys (-1: any number) from those that are held
// or waited for. Whatever goes wrong, there are simply no proposals.
func (a *app) completeKeys(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		// Cobra parses the words with a -- of its own behind them, so only the words
		// themselves tell whether there was one.
		if slices.Contains(a.args[:max(len(a.args)-1, 0)], "--") {
			return nil, cobra.ShellCompDirectiveDefault // what follows is a command of the shell
		}
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var page keysAnswer
		if !a.lookUp(cmd, "/v1/keys", url.Values{"prefix": {prefix}}, &page) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var keys []string
		for i := range page.Keys {
			k := &page.Keys[i]
			key := string(k.Key)
			if clean(key) != key || strings.ContainsAny(key, "\t\n") {
				continue
			}
			if len(k.Holders) > 0 {
				key += "\t" + k.Holders[0].what(k.Holders[0].Mode) + ", " + k.Holders[0].name()
			}
			keys = append(keys, key)
		}
		return keys, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePatterns completes the name of a key pattern.
func (a *app) completePatterns(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var answer struct {
		Patterns []patternAnswer `json:"patterns"`
	}
	if len(args) > 0 || !a.lookUp(cmd, "/v1/patterns", nil, &answer) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range answer.Patterns {
		name := answer.Patterns[i].Name
		if clean(name) == name && strings.HasPrefix(name, prefix) {
			names = append(names, name+"\t"+clean(answer.Patterns[i].Shape))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// lookUp asks the server for proposals; ok is false if the server cannot answer.
func (a *app) lookUp(cmd *cobra.Command, path string, query url.Values, v any) (ok bool) {
	if fromEnvironment(cmd.Flags()) != nil || a.server.complete() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	_, answer, err := a.api().do(ctx, request{Method: http.MethodGet, Path: path, Query: query})
	return err == nil && json.Unmarshal(answer, v) == nil
}

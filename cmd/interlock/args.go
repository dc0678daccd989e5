package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// noArgs, oneArg and atMostOneArg say in one sentence what is wrong with a command
// line.

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, and was given %s", cmd.CommandPath(), quote(clean(args[0])))
	}
	return nil
}

// noCommand is for commands that only have others below them.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := "there is no command " + quote(clean(args[0])) + " in " + cmd.CommandPath()
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage("%s", text)
}

func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usage("name %s: %s", what, useLine(cmd))
		case len(args) > 1:
			return usage("one %s at a time: %s", strings.TrimPrefix(strings.TrimPrefix(what, "a "), "the "), useLine(cmd))
		}
		return nil
	}
}

func atMostOneArg(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("too many arguments: %s", useLine(cmd))
	}
	return nil
}

// oneAndCommand takes apart what has one name before the --, of a key or a queue, and a
// command after it.
func oneAndCommand(cmd *cobra.Command, what string, args []string) (name string, argv []string, err error) {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash < 0:
		return "", nil, usage("put -- between the %s and the command: %s", what, useLine(cmd))
	case dash != 1:
		return "", nil, usage("name one %s before the --: %s", what, useLine(cmd))
	case len(args) == 1:
		return "", nil, usage("name a command after the --: %s", useLine(cmd))
	}
	return args[0], args[1:], nil
}

// useLine is how a command is typed.
func useLine(cmd *cobra.Command) string {
	parent := ""
	if cmd.HasParent() {
		parent = cmd.Parent().CommandPath() + " "
	}
	return parent + cmd.Use
}

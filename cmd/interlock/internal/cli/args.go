package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
)

// NoArgs refuses all arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments, and was given %s", cmd.CommandPath(), Quote(Clean(args[0])))
	}
	return nil
}

// Group returns a command that only has others below it.
func Group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// OneArg demands one argument; what describes it.
func OneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return Usagef("name %s: %s", what, UseLine(cmd))
		case len(args) > 1:
			return Usagef("one %s at a time: %s", strings.TrimPrefix(strings.TrimPrefix(what, "a "), "the "), UseLine(cmd))
		}
		return nil
	}
}

// TwoArgs demands two arguments.
func TwoArgs(first, second string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < 2:
			return Usagef("name %s and %s: %s", first, second, UseLine(cmd))
		case len(args) > 2:
			return Usagef("too many arguments: %s", UseLine(cmd))
		}
		return nil
	}
}

// AtMostOneArg refuses a second argument.
func AtMostOneArg(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return Usagef("too many arguments: %s", UseLine(cmd))
	}
	return nil
}

// OneAndCommand takes apart what has one name before the --, of a key or a queue, and a
// command after it.
func OneAndCommand(cmd *cobra.Command, what string, args []string) (name string, argv []string, err error) {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash < 0:
		return "", nil, Usagef("put -- between the %s and the command: %s", what, UseLine(cmd))
	case dash != 1:
		return "", nil, Usagef("name one %s before the --: %s", what, UseLine(cmd))
	case len(args) == 1:
		return "", nil, Usagef("name a command after the --: %s", UseLine(cmd))
	}
	return args[0], args[1:], nil
}

// ParseVersion reads the version that a flag names; "" is none.
func ParseVersion(flag, text string) (*interlock.Version, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, Usagef("%s %s: want a version, such as 41", flag, Clean(text))
	}
	return new(interlock.Version(n)), nil
}

// UseLine is how a command is typed.
func UseLine(cmd *cobra.Command) string {
	parent := ""
	if cmd.HasParent() {
		parent = cmd.Parent().CommandPath() + " "
	}
	return parent + cmd.Use
}

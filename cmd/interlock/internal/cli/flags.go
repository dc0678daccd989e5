package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
)

// ReasonVar adds the flag for the reason of an operator's change, which its event keeps.
func ReasonVar(f *pflag.FlagSet, p *string) {
	f.StringVar(p, "reason", "", "the reason, for the journal")
}

// CountFlag is a flag for a number of permits, parties or parts: 1 or more.
type CountFlag uint32

func (n *CountFlag) Set(s string) error {
	v, err := strconv.ParseUint(s, 10, 32)
	if err != nil || v < 1 || v > interlock.MaxCount {
		return Usagef("want a number from 1 to %d", interlock.MaxCount)
	}
	*n = CountFlag(v)
	return nil
}

func (n *CountFlag) String() string {
	if *n == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(*n), 10)
}

func (n *CountFlag) Type() string { return "number" }

// Listed is a list without what is empty, which stands for no list at all.
func Listed[T comparable](list []T) []T {
	kept := []T{}
	var zero T
	for _, v := range list {
		if v != zero {
			kept = append(kept, v)
		}
	}
	return kept
}

// Choice is a flag with one of a few words.
type Choice struct {
	Value string
	words []string
}

// Words are those of an enumeration of the root package.
func Words[T interface {
	~uint8
	String() string
}]() (list []string) {
	for v := T(0); v.String() != ""; v++ {
		list = append(list, v.String())
	}
	return list
}

// Among adds the flag; the first of the words is the default, which the text names.
func (c *Choice) Among(cmd *cobra.Command, flag, what string, words ...string) {
	c.words = words
	cmd.Flags().Var(
		c, flag, what+": "+strings.Join(words[:len(words)-1], ", ")+" or "+words[len(words)-1]+" (default "+words[0]+")",
	)
	cmd.Flags().Lookup(flag).DefValue = ""
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func (c *Choice) Set(s string) error {
	for _, word := range c.words {
		if s == word {
			c.Value = s
			return nil
		}
	}
	return fmt.Errorf("want %s", strings.Join(c.words, ", "))
}

func (c *Choice) String() string { return c.Value }

func (c *Choice) Type() string { return "word" }

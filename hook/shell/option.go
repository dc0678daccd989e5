package shell

import "strings"

// option is an option of a command, by the name that the table has for it.
type option struct {
	name  string
	value word // without one it has no text
}

// arguments are the words behind the name of a program.
type arguments struct {
	args     []word
	options  []option
	settings []word // NAME=VALUE before the operands
	operands []word
	// dashes is how many operands stand before "--", -1 without it.
	dashes int
}

// has reports whether a list of names, separated by blanks, has one.
func has(list, name string) bool {
	for list != "" {
		var one string
		one, list, _ = strings.Cut(list, " ")
		if one == name {
			return true
		}
	}
	return false
}

// any reports whether one of the options is given.
func (c *arguments) any(list string) bool {
	for i := range c.options {
		o := &c.options[i]
		if has(list, o.name) || strings.Contains(list, "=") && has(list, o.name+"="+o.value.text) {
			return true
		}
	}
	return false
}

// values returns the values of options.
func (c *arguments) values(list string) (all []word) {
	for i := range c.options {
		if has(list, c.options[i].name) && (c.options[i].value.text != "" || c.options[i].value.loose) {
			all = append(all, c.options[i].value)
		}
	}
	return all
}

// parse parts the options of a command from its operands, by the row of its program.
func (p *program) parse(args []word) *arguments {
	c := &arguments{args: args, dashes: -1}
	for i := 0; i < len(args); i++ {
		text := args[i].text
		switch {
		case text == "--" && !args[i].loose:
			c.dashes = len(c.operands)
			c.operands = append(c.operands, args[i+1:]...)
			return c
		case p.assigns && len(c.operands) == 0 && isAssignment(text):
			c.settings = append(c.settings, args[i])
			continue
		case !isOption(&args[i], p.plus):
			c.operands = append(c.operands, args[i])
			if p.first {
				c.operands = append(c.operands, args[i+1:]...)
				return c
			}
			continue
		}
		name, value, attached := text, "", false
		if strings.HasPrefix(text, "--") || p.whole {
			name, value, attached = strings.Cut(text, "=")
			if name = p.canonical(name); p.whole && value == "false" {
				name, value = name+"=false", ""
			}
		} else {
			name, value, attached = p.cluster(c, text)
		}
		if name == "" {
			continue
		}
		o := option{name, word{text: value, loose: args[i].loose, glob: -1}}
		if !attached && p.takesValue(name) && i+1 < len(args) {
			i++
			o.value = args[i]
		}
		if o.value.loose && !args[i].loose {
			o.value.loose = false
		}
		o.value.fixed = min(o.value.fixed, len(o.value.text))
		c.options = append(c.options, o)
		if has(p.ends, name) {
			c.operands = append(c.operands, args[i+1:]...)
			return c
		}
	}
	return c
}

// isAssignment reports whether a word is NAME=VALUE.
func isAssignment(text string) bool {
	name, _, ok := strings.Cut(text, "=")
	return ok && name != "" && strings.IndexFunc(name, func(c rune) bool {
		return c != '_' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
	}) < 0
}

func isOption(w *word, plus bool) bool {
	if len(w.text) < 2 {
		return false
	}
	return w.text[0] == '-' && w.glob != 0 || plus && w.text[0] == '+'
}

// canonical returns the name of a long option, which GNU programs let be cut short.
func (p *program) canonical(name string) string {
	if p.whole {
		return "-" + strings.TrimLeft(name, "-")
	}
	if len(name) < 5 {
		return name
	}
	found := ""
	for _, list := range p.lists() {
		for list != "" {
			var one string
			one, list, _ = strings.Cut(list, " ")
			if one == name {
				return name
			}
			if strings.HasPrefix(one, name) {
				found = one
			}
		}
	}
	if found != "" {
		return found
	}
	return name
}

// cluster takes short options apart, -abVALUE, and returns the last of them: the one that may have a value.
func (p *program) cluster(c *arguments, text string) (name, value string, attached bool) {
	sign := text[:1]
	for i := 1; i < len(text); i++ {
		name = sign + text[i:i+1]
		rest := text[i+1:]
		switch {
		case has(p.digits, name): // digits belong to it, and then others follow
			n := 0
			for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == 'x') {
				n++
			}
			i += n
		case has(p.maybe, name):
			return name, rest, true
		case p.takesValue(name):
			return name, strings.TrimPrefix(rest, "="), rest != ""
		case rest == "":
			return name, "", false
		}
		c.options = append(c.options, option{name: name})
	}
	return "", "", false
}

func (p *program) takesValue(name string) bool {
	if has(p.maybe, name) {
		return false
	}
	return has(p.value, name) || has(p.output, name) || has(p.folder, name) || has(p.chdir, name)
}

func (p *program) lists() [8]string {
	return [8]string{p.value, p.maybe, p.only, p.never, p.output, p.folder, p.chdir, p.script}
}

package shell

import (
	"regexp"
	"strings"
)

// language finds the files that a program in another language names and writes: with a text, or with a variable that
// is set to texts alone. The program may write others, too, so it stays not understood.
type language struct {
	sets   *regexp.Regexp   // a variable, and a text or several
	writes []*regexp.Regexp // calls that write; the groups are texts or variables
}

const (
	text1  = `"[^"\\\n]*"|'[^'\\\n]*'`
	value1 = `((?:` + text1 + `|[$@]?[A-Za-z_]\w*))`
)

var oneText = regexp.MustCompile(text1)

// call makes an expression: A stands for a value, and a blank for any blanks.
func call(pattern string) *regexp.Regexp {
	return regexp.MustCompile(strings.NewReplacer("A", value1, " ", `\s*`).Replace(pattern))
}

var (
	pythonText = language{
		sets: call(
			`(?m)(?:^|[;\s])(\w+)(?: = | in )[\[(]?[rbu]?(?:(?:pathlib\.)?Path\( )?` +
				`((?:` + text1 + `)(?: , (?:` + text1 + `))*)`,
		),
		writes: []*regexp.Regexp{
			call(`\bopen\( [rbu]?A , (?:mode = )?["'][rbt]*[wax+]`),
			call(`\bPath\( [rbu]?A \)\.(?:write_|unlink|touch|open\( ["'][wax])`),
			call(`(\w+)\.(?:write_text|write_bytes|unlink|touch)\(`),
			call(`\bos\.(?:remove|unlink|truncate)\( A`),
			call(`\b(?:os\.(?:rename|replace)|shutil\.move)\( A , A`),
			call(`\bshutil\.copy\w*\( [^,]*, A`),
		},
	}
	scriptText = language{
		sets: call(`(?m)(?:^|[;\s({])(\w+) = ((?:` + text1 + `))`),
		writes: []*regexp.Regexp{
			call(`\b(?:writeFile|appendFile|unlink|rm|truncate)(?:Sync)?\( A`), call(`\bcreateWriteStream\( A`),
			call(`\b(?:Bun\.write|Deno\.(?:writeTextFile|writeFile|remove)(?:Sync)?)\( A`),
			call(`\brename(?:Sync)?\( A , A`), call(`\bcopyFile(?:Sync)?\( [^,]*, A`),
		},
	}
	perlText = language{
		sets: call(`(?m)(?:^|[;\s({])([$]?\w+) = ((?:` + text1 + `))`),
		writes: []*regexp.Regexp{
			call(`\bopen\(? (?:my )?[$\w]+ , ["'] \+?>{1,2}[^"']*["'] , A`),
			call(`\bopen\(? (?:my )?[$\w]+ , ("\+?>[^"]+"|'\+?>[^']+')`),
			call(`\bunlink\(? A`), call(`\brename\(? A , A`),
			call(`\bFile\.(?:write|delete|unlink|binwrite|truncate)\(? A`), call(`\bFile\.rename\(? A , A`),
			call(`\b(?:File\.)?open\(? A , ["'][wa]`),
		},
	}
)

// maxNamed bounds the files of one program.
const maxNamed = 100

// read notes the files that a text names. They begin at the present folder, unless it goes to another one.
func (l *language) read(r *reader, text string) {
	if strings.Contains(text, "chdir") {
		return
	}
	vars := map[string][]string{}
	for _, set := range l.sets.FindAllStringSubmatch(text, maxNamed) {
		for _, one := range oneText.FindAllString(set[2], maxNamed) {
			vars[set[1]] = append(vars[set[1]], one[1:len(one)-1])
		}
	}
	for _, write := range l.writes {
		for _, match := range write.FindAllStringSubmatch(text, maxNamed) {
			for _, value := range match[1:] {
				files := vars[value]
				if files == nil && strings.ContainsAny(value[:1], `"'`) {
					files = []string{value[1 : len(value)-1]}
				}
				for _, file := range files {
					if file = strings.TrimLeft(file, "+> "); file != "" && !strings.ContainsAny(file, "${}\n") {
						r.write(ofText(file))
					}
				}
			}
		}
	}
}

// perl is perl or ruby: without -i what the program writes is not known.
func (r *reader) perl(c *arguments) stream {
	script, operands := scripted(c, "-e -E")
	switch {
	case c.any("-v -V -c"):
	case c.any("-i"):
		r.inPlace(operands, c.values("-i"))
	case c.any("-e -E"):
		for _, w := range append(script, c.values("-M -r")...) {
			perlText.read(r, w.source())
			if perlWrites.MatchString(w.text) || w.loose {
				r.unknown("a program of perl or ruby")
			}
		}
	case len(script) > 0 && script[0].text != "-":
		r.unknown(clip(script[0].text))
	default:
		perlText.read(r, r.in.text)
		r.unknown("perl or ruby")
	}
	return stream{}
}

// perlWrites has the words of programs that write, or run others.
var perlWrites = regexp.MustCompile(
	"open|unlink|rename|system|exec|`|qx|eval|require|File|fileutils|IO|write|mkdir|rmdir|symlink|link|chmod|utime|" +
		"truncate|spawn|Dir|sh\\b",
)

// python runs a module as the program of that name.
func (r *reader) python(c *arguments) stream {
	switch module := c.values("-m"); {
	case len(module) > 0:
		name := module[0].text
		switch p, ok := table[name]; {
		case name == "json.tool":
			if len(c.operands) > 1 {
				r.write(c.operands[1])
			}
		case ok && !module[0].loose:
			return r.program(name, &p, c.operands)
		case !has("http.server venv timeit this py_compile compileall tokenize dis calendar site sysconfig", name):
			r.unknown("python -m " + clip(name))
		}
	case c.any("-V -VV"):
	default:
		r.otherText(&pythonText, c, "-c")
		r.unknown("a program of python")
	}
	return stream{}
}

func (r *reader) node(c *arguments) stream {
	if !c.any("-v -c --check") {
		r.otherText(&scriptText, c, "-e -p --eval --print")
		r.unknown("a program of node")
	}
	return stream{}
}

// otherText reads a program in another language: the value of an option, or standard input.
func (r *reader) otherText(l *language, c *arguments, options string) {
	for _, w := range c.values(options) {
		l.read(r, w.source())
	}
	if !c.any(options) && (len(c.operands) == 0 || c.operands[0].text == "-") {
		l.read(r, r.in.text)
	}
}

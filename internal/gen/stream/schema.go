package stream

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"text/scanner"

	"github.com/interlockdev/interlock/internal/gen/source"
)

// schema is what the .proto files declare, by name.
type schema struct {
	files    []*protoFile
	messages map[string]*message
	enums    map[string]*enum
}

type protoFile struct {
	name     string // below the root
	messages []*message
}

// message is a message type. Its fields are in the order of the file, which is the order in
// which they are written.
type message struct {
	name   string
	file   *protoFile
	fields []*protoField
	oneof  []*protoField // the fields of its only oneof
}

type protoField struct {
	name     string
	number   int
	kind     string // a scalar type, or the name of a message or an enum
	repeated bool
	optional bool
}

type enum struct {
	name    string
	numbers []int64
}

// readSchema reads the .proto files of a folder, in the given order.
func readSchema(tree *source.Tree, folder string, names ...string) (*schema, error) {
	s := &schema{messages: map[string]*message{}, enums: map[string]*enum{}}
	for _, name := range names {
		name = path.Join(folder, name)
		text, err := tree.Read(name)
		if err != nil {
			return nil, err
		}
		if err := s.parse(name, string(text)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// protoParser reads the subset of proto3 that this repository uses: messages without nested
// types and maps, at most one oneof in a message, enums, services. It reports the first error
// by a panic with a protoError, which parse turns into an error.
type protoParser struct {
	scan scanner.Scanner
	tok  rune
}

type protoError string

func (s *schema) parse(name, text string) (err error) {
	p := &protoParser{}
	p.scan.Init(strings.NewReader(text))
	p.scan.Filename = name
	p.scan.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanStrings | scanner.ScanComments | scanner.SkipComments
	p.scan.Error = func(_ *scanner.Scanner, message string) { p.fail("%s", message) }
	defer func() {
		switch e := recover().(type) {
		case nil:
		case protoError:
			err = fmt.Errorf("%s: %s", p.scan.Position, string(e))
		default:
			panic(e)
		}
	}()
	file := &protoFile{name: name}
	s.files = append(s.files, file)
	p.next()
	for p.tok != scanner.EOF {
		switch word := p.ident(); word {
		case "syntax", "package", "import", "option":
			p.skipStatement()
		case "service":
			p.skipBlock()
		case "message":
			m := p.message()
			if s.messages[m.name] != nil {
				p.fail("message %s is declared twice", m.name)
			}
			m.file = file
			s.messages[m.name] = m
			file.messages = append(file.messages, m)
		case "enum":
			e := p.enum()
			s.enums[e.name] = e
		default:
			p.fail("unexpected %q", word)
		}
	}
	return nil
}

func (p *protoParser) fail(format string, args ...any) {
	panic(protoError(fmt.Sprintf(format, args...)))
}

func (p *protoParser) next() { p.tok = p.scan.Scan() }

func (p *protoParser) ident() string {
	if p.tok != scanner.Ident {
		p.fail("want a name, have %q", p.scan.TokenText())
	}
	text := p.scan.TokenText()
	p.next()
	return text
}

func (p *protoParser) number() int {
	text := ""
	if p.tok == '-' {
		text = "-"
		p.next()
	}
	n, err := strconv.Atoi(text + p.scan.TokenText())
	if err != nil {
		p.fail("want a number, have %q", p.scan.TokenText())
	}
	p.next()
	return n
}

func (p *protoParser) expect(tok rune) {
	if p.tok != tok {
		p.fail("want %q, have %q", tok, p.scan.TokenText())
	}
	p.next()
}

func (p *protoParser) accept(tok rune) bool {
	if p.tok != tok {
		return false
	}
	p.next()
	return true
}

func (p *protoParser) skipStatement() {
	for p.tok != ';' && p.tok != scanner.EOF {
		p.next()
	}
	p.expect(';')
}

func (p *protoParser) skipBlock() {
	for p.tok != '{' && p.tok != scanner.EOF {
		p.next()
	}
	p.expect('{')
	for depth := 1; depth > 0; p.next() {
		switch p.tok {
		case '{':
			depth++
		case '}':
			depth--
		case scanner.EOF:
			p.fail("a block has no end")
		}
	}
}

func (p *protoParser) message() *message {
	m := &message{name: p.ident()}
	p.expect('{')
	for !p.accept('}') {
		switch word := p.ident(); word {
		case "reserved":
			p.skipStatement()
		case "oneof":
			p.ident()
			if m.oneof != nil {
				p.fail("message %s has two oneofs", m.name)
			}
			p.expect('{')
			for !p.accept('}') {
				m.oneof = append(m.oneof, p.field(p.ident()))
			}
		default:
			m.fields = append(m.fields, p.field(word))
		}
	}
	return m
}

// field reads the rest of a field, behind its first word.
func (p *protoParser) field(word string) *protoField {
	f := &protoField{kind: word}
	if word == "repeated" || word == "optional" {
		f.repeated, f.optional = word == "repeated", word == "optional"
		f.kind = p.ident()
	}
	f.name = p.ident()
	p.expect('=')
	f.number = p.number()
	p.expect(';')
	// The codec writes the tag of a field in at most two bytes.
	if f.number < 1 || f.number > 255 {
		p.fail("field %s has the number %d, above 255", f.name, f.number)
	}
	return f
}

func (p *protoParser) enum() *enum {
	e := &enum{name: p.ident()}
	p.expect('{')
	for !p.accept('}') {
		if p.ident() == "reserved" {
			p.skipStatement()
			continue
		}
		p.expect('=')
		e.numbers = append(e.numbers, int64(p.number()))
		p.expect(';')
	}
	return e
}

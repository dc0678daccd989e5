package region

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxFile is the size of the largest file that has regions, in bytes.
const MaxFile = 1 << 20

// Edit replaces a text, which must be in the file once, by another one.
type Edit struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// Of returns the name of the region of a file that an edit changes; ok is false if it changes the whole file, or may.
func (e *Edit) Of(file string, text []byte) (name string, ok bool) {
	at := bytes.Index(text, []byte(e.Old))
	if e.Old == "" || at < 0 || len(text) > MaxFile || !utf8.Valid(text) || !utf8.ValidString(e.New) {
		return "", false
	}
	if bytes.Contains(text[at+1:], []byte(e.Old)) {
		return "", false
	}
	before, ok := cut(file, text)
	if !ok {
		return "", false
	}
	after, ok := cut(file, slices.Concat(text[:at], []byte(e.New), text[at+len(e.Old):]))
	if !ok || !slices.EqualFunc(before, after, func(a, b region) bool { return a.name == b.name }) {
		return "", false
	}
	// The last region that begins before the text, or with it.
	i, _ := slices.BinarySearchFunc(before, at+1, func(r region, at int) int { return cmp.Compare(r.start, at) })
	if i == 0 || i < len(before) && before[i].start < at+len(e.Old) {
		return "", false
	}
	found := before[i-1].name
	same := func(r region) bool { return r.name == found }
	if first := slices.IndexFunc(before, same); slices.ContainsFunc(before[first+1:], same) {
		return "", false
	}
	return found, true
}

// region begins at a byte of a file, and ends where the next one begins.
type region struct {
	start int
	name  string
}

// cut returns the regions of a file in their order; ok is false if it cannot be cut.
func cut(file string, text []byte) (list []region, ok bool) {
	switch ext := strings.ToLower(path.Ext(file)); {
	case ext == ".go":
		return cutGo(text)
	case languages[ext]:
		return cutLines(text), true
	}
	return nil, false
}

// cutGo cuts at the declarations, each with the comment above it.
func cutGo(text []byte) (list []region, ok bool) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, false
	}
	for _, d := range file.Decls {
		start, name := d.Pos(), ""
		var doc *ast.CommentGroup
		switch d := d.(type) {
		case *ast.FuncDecl:
			name, doc = "func "+receiver(d)+d.Name.Name, d.Doc
		case *ast.GenDecl:
			name, doc = d.Tok.String()+names(d), d.Doc
		default:
			return nil, false
		}
		if doc != nil {
			start = doc.Pos()
		}
		list = append(list, region{set.Position(start).Offset, name})
	}
	return list, true
}

// receiver returns the type of a method, with a dot behind it.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) != 1 {
		return ""
	}
	t := f.Recv.List[0].Type
	for {
		switch e := t.(type) {
		case *ast.StarExpr:
			t = e.X
		case *ast.IndexExpr:
			t = e.X
		case *ast.IndexListExpr:
			t = e.X
		case *ast.Ident:
			return e.Name + "."
		default:
			return "?." // it does not compile
		}
	}
}

// names returns what a declaration declares, each with a blank before it.
func names(d *ast.GenDecl) string {
	var b strings.Builder
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			b.WriteString(" " + spec.Name.Name)
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				b.WriteString(" " + name.Name)
			}
		case *ast.ImportSpec:
			b.WriteString(" " + spec.Path.Value)
		}
	}
	return b.String()
}

// languages are those with declarations in the first column, by the endings of their files.
var languages = setOf(
	".py .pyi .js .mjs .cjs .jsx .ts .mts .cts .tsx .rs .c .h .cc .cpp .hpp .java .kt .swift .scala .rb .php .sh " +
		".bash .lua .ex .exs .zig .dart",
)

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}

// cutLines cuts before each line that begins with a word in the first column.
func cutLines(text []byte) (list []region) {
	start := 0
	for line := range bytes.Lines(text) {
		if name := heading(string(line)); name != "" {
			list = append(list, region{start, name})
		}
		start += len(line)
	}
	return list
}

// heading returns the name of the declaration that a line begins; "" for a line that begins none.
func heading(line string) string {
	first, _ := utf8.DecodeRuneInString(line)
	if !unicode.IsLetter(first) && !strings.ContainsRune("_@$", first) {
		return ""
	}
	line = strings.TrimRight(line, "{:=>( \t\r\n")
	switch line {
	case "end", "else", "done", "fi", "esac": // they end what is above them
		return ""
	}
	return line
}

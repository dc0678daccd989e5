package shell

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxFrames bounds the stack, and so how deep parentheses and the like may stand in each other. The parser recurses
// without a bound of its own, and a stack that overflows ends the whole server.
const maxFrames = 2000

var errDeep = errors.New("the command nests too deep")

// source is a text for the parser. The parser takes it in parts from within its recursion, so a part is the place to
// look at the depth of the stack.
type source struct{ rest string }

// maxPart bounds what a part can add to the depth.
const maxPart = 512

func (s *source) Read(p []byte) (int, error) {
	if s.rest == "" {
		return 0, io.EOF
	}
	var frame [1]uintptr
	if runtime.Callers(maxFrames, frame[:]) > 0 {
		return 0, errDeep
	}
	n := copy(p[:min(len(p), maxPart)], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// parse returns the statements of a text, as far as it can be understood. A shell runs what stands before an error.
func parse(text string) (list []*syntax.Stmt, err error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	list, err = parseAs(text, syntax.LangBash)
	for range maxUnclosed {
		stop, unclosed := unclosedDocument(err)
		if !unclosed {
			break
		}
		text += "\n" + stop + "\n"
		list, err = parseAs(text, syntax.LangBash)
	}
	if err == nil {
		return list, nil
	}
	if other, bad := parseAs(text, syntax.LangZsh); bad == nil {
		return other, nil
	}
	return list, err
}

// maxUnclosed bounds how many here-documents of a text are closed for it.
const maxUnclosed = 8

// unclosedDocument returns the word that would close a here-document, if the error is that nothing does. A shell takes
// the end of the text for that.
func unclosedDocument(err error) (stop string, ok bool) {
	bad, ok := errors.AsType[syntax.ParseError](err)
	if !ok {
		return "", false
	}
	quoted, ok := strings.CutPrefix(bad.Text, "unclosed here-document ")
	if !ok {
		return "", false
	}
	stop, err = strconv.Unquote(quoted)
	return stop, err == nil
}

func parseAs(text string, lang syntax.LangVariant) (list []*syntax.Stmt, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the parser failed: %v", v)
		}
	}()
	for s, bad := range syntax.NewParser(syntax.Variant(lang)).StmtsSeq(&source{text}) {
		if bad != nil {
			return list, bad
		}
		list = append(list, s)
	}
	return list, nil
}

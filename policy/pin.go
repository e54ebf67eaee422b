package policy

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictyaml"
)

// SetPin returns the policy's text with the pin of one tool, named server/tool,
// set to pin, and every other byte as it was: comments, order and spelling are
// the operator's. The source must be one that Parse accepts and have a
// contract for the tool; so must the answer, or there is an error and no text.
func SetPin(source []byte, tool, pin string) ([]byte, error) {
	if !pinForm().MatchString(pin) {
		return nil, errors.New("not a pin: sha256: and 64 hexadecimal digits")
	}
	p, faults := Parse("policy", source)
	if len(faults) > 0 {
		return nil, fmt.Errorf("the policy has faults, the first at %d:%d: %s", faults[0].Line, faults[0].Column, faults[0].Message)
	}
	if p.Contracts[tool] == nil {
		return nil, errors.New("the policy has no contract for this tool")
	}
	if p.Contracts[tool].Method != CallTool {
		return nil, errors.New("a method has no definition that could be pinned")
	}
	contract := strictyaml.New("").Parse(source, "").Get("tools").Get(tool)
	out, ok := insertPin(source, contract, pin)
	if ok {
		if q, faults := Parse("policy", out); len(faults) == 0 && q.Contracts[tool] != nil && q.Contracts[tool].Pin == pin && len(q.Contracts) == len(p.Contracts) {
			return out, nil
		}
	}
	return nil, errors.New("the pin cannot be written without changing the layout; add it by hand: pin: " + pin)
}

func insertPin(source []byte, contract *strictyaml.Node, pin string) ([]byte, bool) {
	if contract == nil || contract.Kind != strictyaml.Mapping || len(contract.Items) == 0 {
		return nil, false
	}
	if old := contract.Get("pin"); old != nil {
		from, ok := offset(source, old.Line, old.Column)
		if !ok {
			return nil, false
		}
		to := from + len(old.Value)
		if old.Quoted {
			to += 2
		}
		if to > len(source) || !bytes.Contains(source[from:to], []byte(old.Value)) {
			return nil, false
		}
		return splice(source, from, to, pin), true
	}
	if contract.Flow {
		at, ok := offset(source, contract.Line, contract.Column)
		if !ok || source[at] != '{' {
			return nil, false
		}
		return splice(source, at+1, at+1, " pin: "+pin+","), true
	}
	first := contract.Items[0]
	at, ok := offset(source, first.Line, 1)
	end, ok2 := offset(source, first.Line, first.Column)
	if !ok || !ok2 || len(bytes.TrimLeft(source[at:end], " ")) > 0 {
		return nil, false
	}
	newline := "\n"
	if i := bytes.IndexByte(source, '\n'); i > 0 && source[i-1] == '\r' {
		newline = "\r\n"
	}
	return splice(source, end, end, "pin: "+pin+newline+string(source[at:end])), true
}

func splice(b []byte, from, to int, with string) []byte {
	out := make([]byte, 0, len(b)+len(with))
	out = append(out, b[:from]...)
	out = append(out, with...)
	return append(out, b[to:]...)
}

// offset turns a line and a column in characters, from 1, into a byte offset.
func offset(b []byte, line, col int) (int, bool) {
	at := 0
	for ; line > 1; line-- {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return 0, false
		}
		at += i + 1
	}
	for ; col > 1; col-- {
		if at >= len(b) || b[at] == '\n' {
			return 0, false
		}
		_, n := utf8.DecodeRune(b[at:])
		at += n
	}
	return at, at < len(b)
}

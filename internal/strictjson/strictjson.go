// Package strictjson reads JSON the one way Writ accepts it: RFC 8259 text in
// valid UTF-8, one value, no duplicate member names (compared after escapes are
// resolved), no lone surrogates, nothing after the value, and within stated
// bounds of size, depth, leaf count and number length.
//
// It hides the JSON library. Bytes that enter are read once, by Parse: a Value
// is what was accepted, with where everything in it stands, and its parts are
// sub-slices of the very bytes that are hashed and forwarded. Where a text is
// read in one place alone, the functions over byte slices do; they make the same
// table, and expect bytes that Check accepted.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits bounds a document. A zero field means no bound of that kind, but
// depth, which the decoder itself bounds at 10,000.
type Limits struct {
	Bytes  int // length of the text
	Depth  int // nesting of arrays and objects
	Leaves int // scalars, and empty arrays and objects
	Number int // length of a number literal; its exponent is bound to ±400
}

// The bounds of sizes and depths (attacks W15, W16).
var (
	// Request bounds what a client sends.
	Request = Limits{Bytes: 4 << 20, Depth: 100, Leaves: 100_000, Number: 64}
	// Result bounds what a server sends.
	Result = Limits{Bytes: 16 << 20, Depth: 100, Leaves: 100_000, Number: 64}
)

// Fault is the class of an Error.
type Fault string

// The faults Check reports.
const (
	Syntax  Fault = "syntax" // not strict JSON, or duplicate names, or bad UTF-8
	Size    Fault = "size"   // too many bytes or leaves
	Deep    Fault = "depth"
	Numeric Fault = "number"
)

// Error says where a text stops being acceptable. It never quotes the text.
type Error struct {
	Fault  Fault
	Offset int64 // byte offset, -1 if unknown
	Detail string
}

func (e *Error) Error() string {
	if e.Offset < 0 {
		return "json: " + e.Detail
	}
	return "json: " + e.Detail + " at byte " + strconv.FormatInt(e.Offset, 10)
}

// Check reports the first reason, as an *Error, why b is not one acceptable
// JSON value within l, or nil.
func Check(b []byte, l Limits) error {
	_, err := check(b, l)
	return err
}

// check is Check, and says how many values and member names there are.
func check(b []byte, l Limits) (nodes int, err error) {
	if l.Bytes > 0 && len(b) > l.Bytes {
		return 0, &Error{Size, -1, fmt.Sprintf("larger than %d bytes", l.Bytes)}
	}
	// AllowDuplicateNames and AllowInvalidUTF8 are off. What is accepted takes
	// two quick passes; what is not is read again for the reason.
	if jsontext.Value(b).IsValid() {
		if n, ok := within(b, l); ok {
			return n, nil
		}
	}
	return 0, firstFault(b, l)
}

// firstFault is Check token by token, without the bound of the length.
func firstFault(b []byte, l Limits) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(b))
	leaves, wasOpen := 0, false
	for first := true; ; first = false {
		if !first && dec.StackDepth() == 0 {
			break
		}
		tok, err := dec.ReadToken()
		if err != nil {
			return syntax(err, dec.InputOffset())
		}
		switch tok.Kind() {
		case '{', '[':
			if l.Depth > 0 && dec.StackDepth() > l.Depth {
				return &Error{Deep, dec.InputOffset(), fmt.Sprintf("nested deeper than %d", l.Depth)}
			}
			wasOpen = true
			continue
		case '}', ']':
			if wasOpen { // an empty container is a leaf
				leaves++
			}
		case '0':
			if err := checkNumber([]byte(tok.String()), l.Number); err != "" {
				return &Error{Numeric, dec.InputOffset(), err}
			}
			leaves++
		case '"':
			if k, n := dec.StackIndex(dec.StackDepth()); k == '{' && n%2 == 1 {
				break // a member name
			}
			leaves++
		default:
			leaves++
		}
		wasOpen = false
		if l.Leaves > 0 && leaves > l.Leaves {
			return &Error{Size, dec.InputOffset(), fmt.Sprintf("more than %d values", l.Leaves)}
		}
	}
	if rest := b[dec.InputOffset():]; len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
		return &Error{Syntax, dec.InputOffset(), "text after the value"}
	}
	return nil
}

func syntax(err error, off int64) error {
	var se *jsontext.SyntacticError
	detail := "not valid JSON"
	if errors.As(err, &se) {
		off = se.ByteOffset
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			detail = "a member name stands twice"
		case errors.Is(err, jsontext.ErrNonStringName):
			detail = "a member name is not a string"
		case strings.Contains(se.Err.Error(), "UTF-8") || strings.Contains(se.Err.Error(), "surrogate"):
			detail = "not valid UTF-8"
		case strings.Contains(se.Err.Error(), "depth"):
			return &Error{Deep, off, "nested too deep"}
		}
	}
	return &Error{Syntax, off, detail}
}

func checkNumber(lit []byte, limit int) string {
	if limit <= 0 {
		return ""
	}
	if len(lit) > limit {
		return fmt.Sprintf("number longer than %d characters", limit)
	}
	if i := bytes.IndexAny(lit, "eE"); i >= 0 {
		if e, err := strconv.Atoi(string(lit[i+1:])); err != nil || e > 400 || e < -400 {
			return "number with an exponent beyond ±400"
		}
	}
	return ""
}

// Kind is the type of a JSON value.
type Kind byte

// The kinds, by the first byte of the literal ('0' for every number and 't'
// for both booleans).
const (
	Null   Kind = 'n'
	Bool   Kind = 't'
	String Kind = '"'
	Number Kind = '0'
	Object Kind = '{'
	Array  Kind = '['
)

// KindOf returns the kind of the value raw starts with, 0 for none.
func KindOf(raw []byte) Kind {
	i := space(raw, 0)
	if i == len(raw) {
		return 0
	}
	return kindAt(raw[i])
}

func kindAt(c byte) Kind {
	switch {
	case c == 'f' || c == 't':
		return Bool
	case c == '-' || c >= '0' && c <= '9':
		return Number
	case c == 'n' || c == '"' || c == '{' || c == '[':
		return Kind(c)
	}
	return 0
}

// Text returns the decoded value of a JSON string literal; ok is false for any
// other value.
func Text(raw []byte) (s string, ok bool) {
	if KindOf(raw) != String {
		return "", false
	}
	raw = trim(raw)
	for i := 1; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"' && i == len(raw)-1:
			return string(raw[1:i]), true // nothing in it needs decoding or a check
		case c < ' ' || c >= utf8.RuneSelf || c == '\\' || c == '"':
			b, err := jsontext.AppendUnquote(nil, raw)
			return string(b), err == nil
		}
	}
	return "", false
}

// Quote returns s as a JSON string literal. Invalid UTF-8 is replaced.
func Quote(s string) []byte { return AppendQuote(make([]byte, 0, len(s)+2), s) }

// AppendQuote appends to b what Quote returns.
func AppendQuote(b []byte, s string) []byte {
	out, err := jsontext.AppendQuote(b, s)
	if err != nil {
		out, _ = jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return out
}

// Member is one member of an object: its decoded name, and its value as a
// sub-slice of the object's bytes that starts at Offset.
type Member struct {
	Name   string
	Value  []byte
	Offset int
}

// Pointer joins reference tokens to an RFC 6901 pointer.
func Pointer(path []string) string {
	if len(path) == 0 {
		return ""
	}
	var b strings.Builder
	for _, t := range path {
		b.WriteByte('/')
		for i := 0; i < len(t); i++ {
			switch t[i] {
			case '~':
				b.WriteString("~0")
			case '/':
				b.WriteString("~1")
			default:
				b.WriteByte(t[i])
			}
		}
	}
	return b.String()
}

// ParsePointer splits an RFC 6901 pointer into decoded reference tokens.
func ParsePointer(p string) ([]string, error) {
	if p == "" {
		return nil, nil
	}
	if p[0] != '/' {
		return nil, errors.New("a JSON pointer starts with /")
	}
	ts := strings.Split(p[1:], "/")
	for i, t := range ts {
		for j := 0; j < len(t); j++ {
			if t[j] == '~' && (j+1 == len(t) || t[j+1] != '0' && t[j+1] != '1') {
				return nil, errors.New("in a JSON pointer ~ is written ~0 and / is written ~1")
			}
		}
		ts[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return ts, nil
}

// Canonical returns the RFC 8785 form of a checked value, except that integers
// beyond 2^53 keep their digits.
func Canonical(raw []byte) ([]byte, error) {
	v := jsontext.Value(bytes.Clone(raw))
	if plainCanonical(raw) {
		return v, nil
	}
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return nil, &Error{Syntax, -1, "cannot be canonicalised"}
	}
	return v, nil
}

// CanonicalWithin is Canonical of bytes that nobody checked: the error is that of
// Check.
func CanonicalWithin(b []byte, l Limits) ([]byte, error) {
	if l.Bytes <= 0 || len(b) <= l.Bytes {
		if _, ok := within(b, l); ok {
			if c, err := Canonical(b); err == nil {
				return c, nil
			}
		}
	}
	if err := Check(b, l); err != nil {
		return nil, err
	}
	return Canonical(b)
}

// Compact returns a checked value without insignificant white space, every
// literal as it was written.
func Compact(raw []byte) []byte {
	v := jsontext.Value(bytes.Clone(raw))
	if v.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true)) != nil {
		return raw
	}
	return v
}

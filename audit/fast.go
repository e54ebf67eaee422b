package audit

import (
	"bytes"
	"encoding/hex"
	"time"
	"unicode/utf8"
)

// fastRecord reads a leaf of the usual shape in one pass. What it accepts is a
// subset of what ParseRecord accepts, with the same result; ok false only says
// that it did not recognise the leaf. Verifying a long log is mostly this.
func fastRecord(leaf []byte) (r *Record, ok bool) {
	if len(leaf) > 1<<20 { // bounds on the number of values hold by themselves
		return nil, false
	}
	c := cursor{b: leaf}
	r = &Record{}
	if !c.lit(`{"commit":{`) {
		return nil, false
	}
	for !c.lit(`},"data":`) {
		if len(r.Commit) > 0 && !c.lit(",") {
			return nil, false
		}
		name, ok := c.plain()
		if !ok || !validName(string(name)) || !c.lit(":") {
			return nil, false
		}
		text, ok := c.plain()
		if !ok || len(text) != 64 {
			return nil, false
		}
		m := Commitment{Name: intern(name)}
		for _, h := range text {
			if h >= 'A' && h <= 'F' {
				return nil, false
			}
		}
		if _, err := hex.Decode(m.Digest[:], text); err != nil {
			return nil, false
		}
		if n := len(r.Commit); n > 0 && r.Commit[n-1].Name >= m.Name {
			return nil, false
		}
		r.Commit = append(r.Commit, m)
	}
	from := c.i
	if from >= len(leaf) || leaf[from] != '{' || !c.value(0) {
		return nil, false
	}
	r.Data = leaf[from:c.i:c.i]
	if !c.lit(`,"kind":`) {
		return nil, false
	}
	kind, ok := c.plain()
	if !ok || !c.lit(`,"n":`) {
		return nil, false
	}
	r.Kind = Kind(intern(kind))
	from = c.i
	if !c.number() {
		return nil, false
	}
	if r.N = parseN(leaf[from:c.i]); !c.lit(`,"session":`) {
		return nil, false
	}
	session, ok := c.plain()
	if !ok || !c.lit(`,"time":`) {
		return nil, false
	}
	r.Session = string(session)
	at, ok := c.plain()
	if !ok || !c.lit(`,"v":1}`) || c.i != len(leaf) {
		return nil, false
	}
	t, err := time.Parse(time.RFC3339Nano, string(at))
	var buf [40]byte
	if r.Time = t.UTC(); err != nil || !bytes.Equal(r.Time.AppendFormat(buf[:0], time.RFC3339Nano), at) {
		return nil, false
	}
	return r, checkWords(r) == nil
}

// intern returns the usual words without a copy for each record.
func intern(b []byte) string {
	for _, w := range [...]string{"decision", "result", "open", "event", "close", "arguments"} {
		if string(b) == w {
			return w
		}
	}
	return string(b)
}

// fastMembers reads the members of data that this package knows, of data
// fastRecord accepted or any other canonical object; ok false as above.
func fastMembers(data []byte) (status string, decision uint64, shadow, ok bool) {
	c := cursor{b: data}
	if !c.lit("{") {
		return "", 0, false, false
	}
	if c.lit("}") {
		return "", 0, false, true
	}
	for {
		name, ok := c.plain()
		if !ok || !c.lit(":") {
			return "", 0, false, false
		}
		from := c.i
		if !c.value(1) {
			return "", 0, false, false
		}
		v := data[from:c.i]
		switch string(name) {
		case "status":
			if v[0] == '"' {
				if bytes.IndexByte(v, '\\') >= 0 {
					return "", 0, false, false
				}
				status = statusWord(v[1 : len(v)-1])
			}
		case "shadow":
			shadow = string(v) == "true"
		case "decision":
			decision = parseN(v)
		}
		switch {
		case c.lit(","):
		case c.lit("}"):
			return status, decision, shadow, true
		default:
			return "", 0, false, false
		}
	}
}

func statusWord(b []byte) string {
	for _, w := range [...]string{"accepted", "rejected", "transformed", "ok", "error", "unknown"} {
		if string(b) == w {
			return w
		}
	}
	return string(b)
}

// cursor steps over canonical JSON of the usual kind: strings without escapes
// in names, names in ASCII, numbers of at most 15 digits.
type cursor struct {
	b []byte
	i int
}

func (c *cursor) lit(s string) bool {
	if len(c.b)-c.i < len(s) || string(c.b[c.i:c.i+len(s)]) != s {
		return false
	}
	c.i += len(s)
	return true
}

// plain steps over a string of printable ASCII without escapes.
func (c *cursor) plain() ([]byte, bool) {
	if !c.lit(`"`) {
		return nil, false
	}
	for j := c.i; j < len(c.b); j++ {
		switch x := c.b[j]; {
		case x == '"':
			s := c.b[c.i:j]
			c.i = j + 1
			return s, true
		case x == '\\' || x < 0x20 || x >= 0x7f:
			return nil, false
		}
	}
	return nil, false
}

func (c *cursor) number() bool {
	b := c.b[c.i:]
	n := 0
	if len(b) > 1 && b[0] == '-' && b[1] != '0' {
		n++
	}
	from := n
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	if d := n - from; d == 0 || d > 15 || d > 1 && b[from] == '0' {
		return false
	}
	if n < len(b) && b[n] == '.' {
		// So few digits are the shortest that name their number, and RFC 8785
		// writes one that is not below 10^-4 without an exponent.
		point := n
		for n++; n < len(b) && b[n] >= '0' && b[n] <= '9'; n++ {
		}
		if n-from > 16 || b[n-1] == '0' || n == point+1 || bytes.HasPrefix(b[from:n], []byte("0.0000")) {
			return false
		}
	}
	if n < len(b) && (b[n] == 'e' || b[n] == 'E') {
		return false
	}
	c.i += n
	return true
}

// text steps over a canonical string: valid UTF-8, and no escape but those
// RFC 8785 demands.
func (c *cursor) text() bool {
	if !c.lit(`"`) {
		return false
	}
	ascii := true
	for from, j := c.i, c.i; j < len(c.b); j++ {
		switch x := c.b[j]; {
		case x == '"':
			c.i = j + 1
			return ascii || utf8.Valid(c.b[from:j])
		case x < 0x20:
			return false
		case x >= 0x80:
			ascii = false
		case x == '\\':
			j++
			if j == len(c.b) {
				return false
			}
			switch c.b[j] {
			case '"', '\\', 'b', 'f', 'n', 'r', 't':
			default:
				return false
			}
		}
	}
	return false
}

func (c *cursor) value(depth int) bool {
	if c.i >= len(c.b) || depth > 90 {
		return false
	}
	switch c.b[c.i] {
	case '"':
		return c.text()
	case 't':
		return c.lit("true")
	case 'f':
		return c.lit("false")
	case 'n':
		return c.lit("null")
	case '[':
		c.i++
		if c.lit("]") {
			return true
		}
		for c.value(depth + 1) {
			if c.lit("]") {
				return true
			}
			if !c.lit(",") {
				return false
			}
		}
		return false
	case '{':
		c.i++
		if c.lit("}") {
			return true
		}
		var last []byte
		for first := true; ; first = false {
			name, ok := c.plain()
			if !ok || !first && bytes.Compare(last, name) >= 0 || !c.lit(":") || !c.value(depth+1) {
				return false
			}
			if c.lit("}") {
				return true
			}
			if !c.lit(",") {
				return false
			}
			last = name
		}
	}
	return c.number()
}

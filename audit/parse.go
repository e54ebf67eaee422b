package audit

import (
	"bytes"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
)

// errNoRecord says that a leaf is not what Seal writes.
var errNoRecord = errors.New("audit: not a record as it is written, in canonical JSON")

// ParseRecord parses one leaf. It accepts exactly the bytes Seal writes: any
// other spelling of the same JSON, a member too many or too few, or a byte
// after the object is refused.
func ParseRecord(leaf []byte) (*Record, error) {
	r, _, err := parseRecord(leaf, "")
	return r, err
}

// known are the members of data that this package knows, in order.
var known = [3]string{"decision", "shadow", "status"}

// parseRecord is ParseRecord with the values of those, nil for one that is not there. It is likely of that
// session.
func parseRecord(leaf []byte, likely string) (r *Record, said [3][]byte, err error) {
	c := cursor{b: leaf}
	of := &struct {
		Record
		one [1]Commitment // most have no more
	}{}
	r = &of.Record
	r.Commit = of.one[:0]
	ok := c.commitments(r) && c.lit(`,"data":`) && c.data(r, &said)
	if len(r.Commit) == 0 {
		r.Commit = nil
	}
	var kind, session, at []byte
	kind = c.member(&ok, `,"kind":`)
	if ok = ok && c.lit(`,"n":`); ok {
		from := c.i
		for c.i < len(leaf) && leaf[c.i] >= '0' && leaf[c.i] <= '9' {
			c.i++
		}
		r.N = parseN(leaf[from:c.i])
		ok = c.i > from && leaf[from] != '0'
	}
	session = c.member(&ok, `,"session":`)
	at = c.member(&ok, `,"time":`)
	switch {
	case ok && c.lit(`,"v":1}`) && c.i == len(leaf):
	case ok && c.lit(`,"v":`):
		return nil, said, errors.New("audit: record is of a format this version does not know")
	default:
		return nil, said, errNoRecord
	}
	if r.Kind, r.Session = Kind(intern(kind)), likely; string(session) != likely {
		r.Session = string(session)
	}
	t, err := time.Parse(time.RFC3339Nano, string(at))
	var buf [40]byte
	if r.Time = t.UTC(); err != nil || !bytes.Equal(r.Time.AppendFormat(buf[:0], time.RFC3339Nano), at) {
		return nil, said, errNoRecord
	}
	if err := checkWords(r); err != nil {
		return nil, said, err
	}
	return r, said, nil
}

// member steps over a member's name and its plain string.
func (c *cursor) member(ok *bool, name string) (s []byte) {
	if *ok = *ok && c.lit(name); *ok {
		s, *ok = c.plain()
	}
	return s
}

// commitments reads the record's beginning, up to its data.
func (c *cursor) commitments(r *Record) bool {
	if !c.lit(`{"commit":{`) {
		return false
	}
	for !c.lit("}") {
		if len(r.Commit) > 0 && !c.lit(",") {
			return false
		}
		name, ok := c.plain()
		text := c.member(&ok, ":")
		d, err := parseDigest(text)
		if !ok || err != nil || !validName(string(name)) {
			return false
		}
		if n := len(r.Commit); n > 0 && r.Commit[n-1].Name >= string(name) {
			return false
		}
		r.Commit = append(r.Commit, Commitment{intern(name), d})
	}
	return true
}

// data reads the object a record holds: nearly always in one pass, which
// verifying a long log mostly is.
func (c *cursor) data(r *Record, said *[3][]byte) bool {
	from := c.i
	if from >= len(c.b) || c.b[from] != '{' {
		return false
	}
	// Within this length the bound on the number of values holds by itself.
	if len(c.b) > 1<<20 || !c.object(0, said) {
		canon, err := []byte(nil), strictjson.Check(c.b, leafLimits)
		if err == nil {
			canon, err = strictjson.Canonical(c.b)
		}
		if err != nil || !bytes.Equal(canon, c.b) {
			return false
		}
		data := strictjson.Get(c.b, "data")
		c.i = from + len(data)
		for i, name := range known {
			said[i] = strictjson.Get(data, name)
		}
	}
	r.Data = c.b[from:c.i:c.i]
	return true
}

// intern returns the usual words without a copy for each record.
func intern(b []byte) string {
	for _, w := range [...]string{"decision", "result", "call", "accepted", "ok", "open", "event", "close", "rejected", "error", "arguments", "input"} {
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
		return c.object(depth, nil)
	}
	return c.number()
}

// object steps over an object; said gets the values of those of its members that are known.
func (c *cursor) object(depth int, said *[3][]byte) bool {
	c.i++
	if c.lit("}") {
		return true
	}
	var last []byte
	for first := true; ; first = false {
		name, ok := c.plain()
		if !ok || !first && bytes.Compare(last, name) >= 0 || !c.lit(":") {
			return false
		}
		from := c.i
		if !c.value(depth + 1) {
			return false
		}
		if said != nil {
			for i := range known {
				if string(name) == known[i] {
					said[i] = c.b[from:c.i]
				}
			}
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

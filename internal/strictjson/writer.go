package strictjson

import "strconv"

// Writer writes the members of one object behind its bracket, in the order in which they come: canonical JSON
// where that is the order of RFC 8785. B ends in the bracket when it begins, and has no closing one.
type Writer struct{ B []byte }

// Name begins a member whose value the caller appends to B.
func (m *Writer) Name(s string) {
	if m.B[len(m.B)-1] != '{' {
		m.B = append(m.B, ',')
	}
	m.B = append(AppendQuote(m.B, s), ':')
}

// Text writes a text.
func (m *Writer) Text(name, s string) {
	m.Name(name)
	m.B = AppendQuote(m.B, s)
}

// Some is Text of what is not empty.
func (m *Writer) Some(name, s string) {
	if s != "" {
		m.Text(name, s)
	}
}

// True writes what is true, and nothing of what is not.
func (m *Writer) True(name string, is bool) {
	if is {
		m.Name(name)
		m.B = append(m.B, "true"...)
	}
}

// Number writes a number.
func (m *Writer) Number(name string, n int64) {
	m.Name(name)
	m.B = strconv.AppendInt(m.B, n, 10)
}

// Count is Number of what is not 0.
func (m *Writer) Count(name string, n int64) {
	if n != 0 {
		m.Number(name, n)
	}
}

package strictjson

import "bytes"

// Most of what is made canonical is so already: this program writes it. To see that
// takes one look at each byte; what is not seen here goes the long way.

// plainCanonical reports a text that is one JSON value in its RFC 8785 form, of integers
// of at most 15 digits and strings of printable ASCII without escapes. It is false for
// any other, canonical or not.
func plainCanonical(b []byte) bool {
	end := plainValue(b, 0, 0)
	return end == len(b)
}

const plainDepth = 32 // beyond, it is looked at the long way

// plainValue returns the index behind the plain canonical value at b[i], -1 for none.
func plainValue(b []byte, i, depth int) int {
	if i >= len(b) || depth > plainDepth {
		return -1
	}
	switch c := b[i]; {
	case c == '{':
		return plainObject(b, i+1, depth+1)
	case c == '[':
		return plainArray(b, i+1, depth+1)
	case c == '"':
		return plainText(b, i)
	case c == '-' || c >= '0' && c <= '9':
		return plainInteger(b, i)
	}
	for _, name := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(b[i:], []byte(name)) {
			return i + len(name)
		}
	}
	return -1
}

// plainObject goes on behind the brace. The names of ASCII stand in the order of their
// bytes, and none stands twice.
func plainObject(b []byte, i, depth int) int {
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for last := []byte(nil); ; i++ {
		end := plainText(b, i)
		if end < 0 || end >= len(b) || b[end] != ':' {
			return -1
		}
		name := b[i+1 : end-1]
		if last != nil && bytes.Compare(last, name) >= 0 {
			return -1
		}
		last = name
		if i = plainValue(b, end+1, depth); i < 0 || i >= len(b) {
			return -1
		}
		if b[i] == '}' {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
	}
}

// plainArray goes on behind the bracket.
func plainArray(b []byte, i, depth int) int {
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for ; ; i++ {
		if i = plainValue(b, i, depth); i < 0 || i >= len(b) {
			return -1
		}
		if b[i] == ']' {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
	}
}

func plainText(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < ' ' || c > '~' || c == '\\':
			return -1
		}
	}
	return -1
}

func plainInteger(b []byte, i int) int {
	start := i
	if b[i] == '-' {
		if i, start = i+1, i+1; i >= len(b) || b[i] == '0' { // there is no -0
			return -1
		}
	}
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if n := i - start; n == 0 || n > 15 || n > 1 && b[start] == '0' || i < len(b) && (b[i] == '.' || b[i] == 'e' || b[i] == 'E') {
		return -1
	}
	return i
}

package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/writ-project/writ/eval/measure"
)

// encode writes a value that measure.Decode read.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // of strings, numbers, lists and maps alone
	}
	return bytes.TrimSpace(b.Bytes())
}

// changed is JSON with what f makes of its scalar leaves.
func changed(raw json.RawMessage, f func(path []string, leaf any) any) json.RawMessage {
	return encode(measure.Walk(measure.Decode(raw), nil, f))
}

var pathToken = regexp.MustCompile(`\[(\d+|\*)\]|\.([A-Za-z_][\w]*)|\[["'](.+?)["']\]`)

// pathOf reads a corpus' path: $[2].body.
func pathOf(s string) (path []string) {
	for _, m := range pathToken.FindAllStringSubmatch(s, -1) {
		path = append(path, m[1]+m[2]+m[3])
	}
	return path
}

// fits reports whether a path is one of those a pattern names.
func fits(pattern, path []string) bool {
	return slices.EqualFunc(pattern, path, func(p, t string) bool { return p == "*" || p == t })
}

// text is a scalar as a field of text holds it.
func text(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case json.Number:
		return spell(x)
	}
	return fmt.Sprint(v)
}

// like is a value in the JSON type of another, and whether it can be.
func like(v, other any) (any, bool) {
	switch other.(type) {
	case json.Number:
		n := json.Number(text(v))
		_, err := n.Float64()
		return n, err == nil
	case string:
		return text(v), true
	}
	return nil, false
}

package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/writ-project/writ/eval/measure"
	"github.com/writ-project/writ/provenance"
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
func pathOf(s string) (path provenance.Pattern) {
	for _, m := range pathToken.FindAllStringSubmatch(s, -1) {
		path.Tokens = append(path.Tokens, m[1]+m[2]+m[3])
	}
	return path
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

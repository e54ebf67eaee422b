package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

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

// walk calls f with each scalar leaf and its path, keys in order. What f returns
// takes the leaf's place.
func walk(v any, path []string, f func(path []string, leaf any) any) any {
	path = slices.Clip(path)
	switch x := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			x[k] = walk(x[k], append(path, k), f)
		}
		return x
	case []any:
		for i := range x {
			x[i] = walk(x[i], append(path, strconv.Itoa(i)), f)
		}
		return x
	}
	return f(path, v)
}

// leaves calls f with each scalar leaf of JSON.
func leaves(raw json.RawMessage, f func(path []string, leaf any)) {
	walk(measure.Decode(raw), nil, func(path []string, leaf any) any { f(path, leaf); return leaf })
}

// changed is JSON with what f makes of its scalar leaves.
func changed(raw json.RawMessage, f func(path []string, leaf any) any) json.RawMessage {
	return encode(walk(measure.Decode(raw), nil, f))
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

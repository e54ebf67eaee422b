package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/writ-project/writ/internal/text"
)

// PrintJSON prints v as indented JSON, and nothing in it that a terminal would
// obey or hide.
func PrintJSON(w io.Writer, v any) error { return encodeJSON(w, v, "  ") }

// PrintLine is PrintJSON on one line.
func PrintLine(w io.Writer, v any) error { return encodeJSON(w, v, "") }

func encodeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return Fail(ExitIO, "", "cannot encode: %w", err)
	}
	_, err := io.WriteString(w, PlainJSON(b.Bytes()))
	return err
}

// PlainJSON escapes in JSON what a terminal would obey or hide, which leaves it
// the same JSON.
func PlainJSON(b []byte) string {
	var out strings.Builder
	for _, r := range string(b) {
		switch {
		case r == '\n' || r == unicode.ReplacementChar || !text.Hidden(r, text.Unprinted):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

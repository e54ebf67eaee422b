package main

import (
	"io"
	"strings"
	"testing"
)

// TestComplete: a line grows by what all continuations share, and never changes.
func TestComplete(t *testing.T) {
	tools := []string{"fetch_document ", "fetch_ticket ", "search_tickets "}
	for line, want := range map[string]string{
		"": "", "a": "ask ", "ask ": "", "t": "tools", "tools": "", "x": "", "call": "call ", "call ": "", "call f": "call fetch_",
		"call fetch_": "", "call fetch_t": "call fetch_ticket ", "call fetch_ticket ": "", "call fetch_ticket {": "",
		"call s": "call search_tickets ", "ask f": "", "call fetch_ticket f": "", "CALL f": "",
	} {
		got, ok := complete(line, tools)
		if ok != (want != "") || ok && (got != want || !strings.HasPrefix(got, line)) {
			t.Errorf("%q: %q %v, want %q", line, got, ok, want)
		}
	}
}

// TestKeys: a read ends with what ends a line, so that it is known what did;
// nothing is lost or moved.
func TestKeys(t *testing.T) {
	const typed = "ab\x03c\rdé\r\n\x04\x03\x03z"
	for size := 1; size < 10; size++ {
		k := &keys{r: strings.NewReader(typed)}
		all := ""
		b := make([]byte, size)
		k.begin()
		line := ""
		for {
			n, err := k.Read(b)
			if err == io.EOF && n == 0 {
				break
			}
			all += string(b[:n])
			line += string(b[:n])
			if i := strings.IndexAny(line, "\x03\x04\r\n"); i >= 0 {
				if i != len(line)-1 {
					t.Fatalf("%d at a time: %q goes on behind its end", size, line)
				}
				if k.interrupted != (line[i] == 3) || k.interrupted && k.typed != (i > 0) {
					t.Errorf("%d at a time: %q: interrupted %v, typed %v", size, line, k.interrupted, k.typed)
				}
				k.begin()
				line = ""
			}
		}
		if all != typed {
			t.Errorf("%d at a time: %q", size, all)
		}
	}
}
